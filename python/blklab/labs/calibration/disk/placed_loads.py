"""Loads at chosen addresses: single commands that step from zone to zone, pause, or come in bursts."""

from __future__ import annotations

from dataclasses import dataclass

from blklab.labs.calibration.disk.loads import job_of
from blklab.spec.workloads import Workload

_SIZES = ((1 << 30, "g"), (1 << 20, "m"), (1 << 10, "k"))


@dataclass(frozen=True)
class LoadSteps:
    """One command in each zone, then on to the next; behind the end of the space, from the beginning again.

    fio's ``zonemode=strided`` does the same.
    """

    zone_bytes: int
    """The command's place is drawn within it, unless it has only the size of a command."""
    step_bytes: int
    """From the beginning of a zone to that of the next."""


@dataclass(frozen=True)
class Pauses:
    """The load rests after some commands."""

    after: int
    """Number of commands."""
    pause_us: int


@dataclass(frozen=True)
class PlacedLoad:
    """One job in a part of the space."""

    name: str
    readwrite: str
    """As in fio: ``randread``, ``read``, ``randwrite``, ``write``, ``randrw``."""
    block_kib: int
    depth: int
    offset_bytes: int
    size_bytes: int
    steps: LoadSteps | None = None
    pauses: Pauses | None = None
    syncs: bool = False
    least_ramp_us: int = 0
    """Until the caches have the state that is to be measured."""
    from_rest: bool = False
    """Measured from its first I/O on, for what a rested disk does differently."""

    @property
    def reads_only(self) -> bool:
        """Whether it never writes."""
        return self.readwrite in {"read", "randread"}

    def workload(self, *, space_bytes: int, ramp_us: int, runtime_us: int) -> Workload:
        """The load as a job file; see `CalibrationLoad`."""
        if self.offset_bytes + self.size_bytes > space_bytes:
            raise ValueError(f"{self.name} reaches beyond the {space_bytes} bytes that it may use")
        options: dict[str, str | int] = {
            "rw": self.readwrite,
            "offset": self.offset_bytes,
            "size": self.size_bytes,
        }
        if self.steps is not None:
            options |= {
                "zonemode": "strided",
                "zonesize": f"{self.block_kib}k",
                "zonerange": self.steps.zone_bytes,
                "zoneskip": self.steps.step_bytes - self.steps.zone_bytes,
            }
        if self.pauses is not None:
            options |= {"thinktime": f"{self.pauses.pause_us}us", "thinktime_blocks": self.pauses.after}
        ramp_us = 0 if self.from_rest else max(ramp_us, self.least_ramp_us)
        made = job_of(self, options, ramp_us=ramp_us, runtime_us=runtime_us)
        # On a device fio begins again at its end, not at the region's; steps are chosen to suit both.
        return made if self.steps is None else made.model_copy(update={"leaves_regions": True})


def short_size(size_bytes: int) -> str:
    """A size for the name of a load: ``64m``; the largest whole unit."""
    for unit_bytes, unit in _SIZES:
        if size_bytes and size_bytes % unit_bytes == 0:
            return f"{size_bytes // unit_bytes}{unit}"
    return str(size_bytes)
