"""The submitters of a run's requests: the jobs, the kernel's background writeback, and cache flushes."""

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
class Submitter:
    """A job, or the kernel if no job waits for the request."""

    name: str
    appearance: Appearance
    job: int | None
    """Index of the job; None for the kernel."""


@dataclass(frozen=True)
class TracedRun:
    """A run's timeline with the submitter of each served request."""

    timeline: Timeline
    submitters: list[Submitter]
    served: Table
    """Requests given to the device, in order of completion; merged pieces belong to their request."""
    submitter_of: Indices
    """Index into `submitters` for each of `served`."""

    @property
    def has_head(self) -> bool:
        """Whether the device is a single disk with a head."""
        return (
            self.disks == 1
            and bool(len(self.served))
            and bool((self.served["head_complete"] != NO_HEAD).all())
        )

    @property
    def disks(self) -> int:
        """Number of disks that served requests; more than one for an array."""
        return len(np.unique(self.served["disk"])) or 1

    def members(self) -> dict[int, TracedRun]:
        """The part of the run on each disk of an array, by index; empty for a single disk."""
        if self.disks == 1:
            return {}
        disks = self.served["disk"]
        return {
            int(disk): replace(
                self, served=self.served[disks == disk], submitter_of=self.submitter_of[disks == disk]
            )
            for disk in np.unique(disks)
        }

    @property
    def end_ns(self) -> int:
        """End of the run in nanoseconds."""
        return max(1, self.timeline.run.simulated_ns)


def traced_run(timeline: Timeline) -> TracedRun:
    """Assigns the requests of a timeline to their submitters."""
    served = timeline.requests[(timeline.requests["flags"] & MERGED) == 0]
    submitters = [Submitter(job.name, Appearance(slot), slot) for slot, job in enumerate(timeline.run.jobs)]
    submitter_of = served["job"].astype(np.int64)
    nobody = served["job"] == NO_JOB
    flushes = served["operation"] == FLUSH
    for name, rows in ((WRITEBACK_NAME, nobody & ~flushes), (FLUSH_NAME, flushes)):
        if rows.any():
            submitter_of[rows] = len(submitters)
            submitters.append(Submitter(name, Appearance(len(submitters)), None))
    return TracedRun(timeline, submitters, served, submitter_of)
