"""Loads at chosen addresses: single commands that step from zone to zone, pause, or come in bursts."""

from __future__ import annotations

from dataclasses import dataclass

from blklab.execution.calibration.disk.loads import FILE
from blklab.spec.workloads import Workload, parse_workload

_SIZES = ((1 << 30, "g"), (1 << 20, "m"), (1 << 10, "k"))


@dataclass(frozen=True)
class Steps:
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
    steps: Steps | None = None
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
        """The load as a job file; see `Load`."""
        if self.offset_bytes + self.size_bytes > space_bytes:
            raise ValueError(f"{self.name} reaches beyond the {space_bytes} bytes that it may use")
        lines = [
            "; decide-by: iops",
            "[load]",
            f"rw={self.readwrite}",
            f"bs={self.block_kib}k",
            "direct=1",
            "ioengine=libaio",
            f"iodepth={self.depth}",
            f"filename={FILE}",
            f"offset={self.offset_bytes}",
            f"size={self.size_bytes}",
            "norandommap=1",
            "time_based",
            f"ramp_time={0 if self.from_rest else max(ramp_us, self.least_ramp_us)}us",
            f"runtime={runtime_us}us",
        ]
        if self.steps is not None:
            lines += [
                "zonemode=strided",
                f"zonesize={self.block_kib}k",
                f"zonerange={self.steps.zone_bytes}",
                f"zoneskip={self.steps.step_bytes - self.steps.zone_bytes}",
            ]
        if self.pauses is not None:
            lines += [f"thinktime={self.pauses.pause_us}us", f"thinktime_blocks={self.pauses.after}"]
        if self.syncs:
            lines.append("fdatasync=1")
        return parse_workload("\n".join([*lines, ""]), name=self.name, source=self.name)


def short_size(size_bytes: int) -> str:
    """A size for the name of a load: ``64m``; the largest whole unit."""
    for unit_bytes, unit in _SIZES:
        if size_bytes and size_bytes % unit_bytes == 0:
            return f"{size_bytes // unit_bytes}{unit}"
    return str(size_bytes)
