"""Who asks for the disk's time: the jobs, the kernel's background writeback, and cache flushes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from blklab.report.drawing.palette import Appearance
from blklab.simulator.timeline import FLUSH, MERGED, NO_HEAD, NO_JOB, Table, Timeline

WRITEBACK_NAME = "(background writeback)"
FLUSH_NAME = "(cache flush)"

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Party:
    """A job, or the kernel on nobody's behalf."""

    name: str
    appearance: Appearance
    job: int | None
    """Index of the job; nothing for the kernel."""


@dataclass(frozen=True)
class Cast:
    """The parties of a run, and the requests that the device served, each with its party."""

    timeline: Timeline
    parties: list[Party]
    served: Table
    """Requests given to the device, in order of completion; merged pieces count with theirs."""
    party_of: Indices
    """Index into `parties` for each of `served`."""

    @property
    def has_head(self) -> bool:
        """Whether the device is one disk with a head; the heads of an array are several."""
        return (
            self.disks == 1
            and bool(len(self.served))
            and bool((self.served["head_complete"] != NO_HEAD).all())
        )

    @property
    def disks(self) -> int:
        """Disks that served requests: several for an array."""
        return len(np.unique(self.served["disk"])) or 1

    def members(self) -> dict[int, Cast]:
        """What each disk of an array served, by its index; nothing if there is but one disk."""
        if self.disks == 1:
            return {}
        disks = self.served["disk"]
        return {
            int(disk): replace(self, served=self.served[disks == disk], party_of=self.party_of[disks == disk])
            for disk in np.unique(disks)
        }

    @property
    def end_ns(self) -> int:
        """When the run ended."""
        return max(1, self.timeline.run.simulated_ns)


def cast_of(timeline: Timeline) -> Cast:
    """Sorts the requests of a timeline by who is behind them."""
    served = timeline.requests[(timeline.requests["flags"] & MERGED) == 0]
    parties = [Party(job.name, Appearance(slot), slot) for slot, job in enumerate(timeline.run.jobs)]
    party_of = served["job"].astype(np.int64)
    nobody = served["job"] == NO_JOB
    flushes = served["operation"] == FLUSH
    for name, rows in ((WRITEBACK_NAME, nobody & ~flushes), (FLUSH_NAME, flushes)):
        if rows.any():
            party_of[rows] = len(parties)
            parties.append(Party(name, Appearance(len(parties)), None))
    return Cast(timeline, parties, served, party_of)
