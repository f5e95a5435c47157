"""The loads of a calibration. Those that test the profile are chosen here, before anything is fitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from blklab.spec.workloads import Workload, parse_workload

Direction = Literal["read", "write", "mixed"]
_READWRITE: dict[tuple[Direction, bool], str] = {
    ("read", False): "randread",
    ("write", False): "randwrite",
    ("mixed", False): "randrw",
    ("read", True): "read",
    ("write", True): "write",
    ("mixed", True): "rw",
}
_FILE = "disk"
"""All loads share a file (in a directory two: one is read, one is written)."""
_ALIGNMENT_BYTES = 1 << 20
LEAST_SPACE_BYTES = 16 << 20


class CalibrationLoad(Protocol):
    """A load that calibration can measure."""

    @property
    def name(self) -> str:
        """Tells it apart from all other loads of the calibration."""

    @property
    def block_kib(self) -> int:
        """Size of an I/O."""

    @property
    def depth(self) -> int:
        """I/Os in flight."""

    @property
    def syncs(self) -> bool:
        """Whether each write is followed by ``fdatasync``."""

    def workload(self, *, space_bytes: int, ramp_us: int, runtime_us: int) -> Workload:
        """The load as a job file.

        Args:
            space_bytes: The space that it may use.
            ramp_us: Least time for which it runs before it is measured.
            runtime_us: Time for which it is measured.
        """


def job_of(
    load: CalibrationLoad, options: Mapping[str, str | int], *, ramp_us: int, runtime_us: int
) -> Workload:
    """A load as a job file.

    Args:
        load: Gives its name, size, depth and whether it calls ``fdatasync``.
        options: Its direction and place, in fio's words.
        ramp_us: Time for which it runs before it is measured.
        runtime_us: Time for which it is measured.
    """
    own = {
        **options,
        "bs": f"{load.block_kib}k",
        "iodepth": load.depth,
        **({"fdatasync": 1} if load.syncs else {}),
    }
    return parsed_load(load.name, {"load": own}, ramp_us=ramp_us, runtime_us=runtime_us)


def parsed_load(
    name: str, sections: Mapping[str, Mapping[str, str | int]], *, ramp_us: int, runtime_us: int
) -> Workload:
    """Sections that run at once, as a job file.

    Args:
        name: Of the load.
        sections: Their options, in fio's words, but for those that all loads have.
        ramp_us: Time for which they run before they are measured.
        runtime_us: Time for which they are measured.
    """
    lines = ["; decide-by: iops"]
    for section, options in sections.items():
        lines += [
            f"[{section}]",
            *(f"{key}={value}" for key, value in options.items()),
            "direct=1",
            "ioengine=libaio",
            f"filename={_FILE}",
            "norandommap=1",
            "time_based",
            f"ramp_time={ramp_us}us",
            f"runtime={runtime_us}us",
        ]
    return parse_workload("\n".join([*lines, ""]), name=name, source=name)


@dataclass(frozen=True)
class DiskLoad:
    """One job that keeps some I/Os of one size in flight."""

    direction: Direction
    block_kib: int
    depth: int
    sequential: bool = False
    syncs: bool = False
    """Whether each write is followed by ``fdatasync``."""
    span_divisor: int = 1
    """The load stays in the first part of the space: the whole divided by this."""

    @property
    def name(self) -> str:
        """Such as ``randread-4k-qd8``, ``syncwrite-4k-qd1``, ``randread-4k-qd1-span32``."""
        kind = "syncwrite" if self.syncs else _READWRITE[self.direction, self.sequential]
        span = f"-span{self.span_divisor}" if self.span_divisor > 1 else ""
        return f"{kind}-{self.block_kib}k-qd{self.depth}{span}"

    @property
    def reads_only(self) -> bool:
        """Whether it never writes."""
        return self.direction == "read"

    def workload(self, *, space_bytes: int, ramp_us: int, runtime_us: int) -> Workload:
        """The load as a job file on a space of so many bytes."""
        size = max(space_bytes // self.span_divisor, LEAST_SPACE_BYTES) // _ALIGNMENT_BYTES * _ALIGNMENT_BYTES
        options: dict[str, str | int] = {"rw": _READWRITE[self.direction, self.sequential], "size": size}
        return job_of(self, options, ramp_us=ramp_us, runtime_us=runtime_us)


ARM_PROBES = tuple(DiskLoad("read", 4, 1, span_divisor=divisor) for divisor in (1, 32, 1024))
"""Single reads over the whole disk and over parts of it: an arm takes longer over longer ways."""

REFERENCE = DiskLoad("read", 4, 8)
"""Repeated within each round, to notice drift."""

_DEPTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_SIZES = ((16, 1), (64, 1), (256, 1), (64, 8), (256, 8))
"""Blocks in KiB, and depth."""

MIXED = (DiskLoad("mixed", 4, 16), DiskLoad("mixed", 64, 8))
FLUSHES = DiskLoad("write", 4, 1, syncs=True)

HOLDOUTS = (
    DiskLoad("read", 8, 6),
    DiskLoad("read", 32, 2),
    DiskLoad("read", 4, 24),
    DiskLoad("read", 128, 4, sequential=True),
    DiskLoad("write", 8, 6),
    DiskLoad("write", 32, 3),
    DiskLoad("write", 4, 24),
    DiskLoad("mixed", 8, 8),
    DiskLoad("mixed", 16, 32),
)
"""Loads that no figure is fitted to: they tell how well the profile predicts."""

LIMITED_HOLDOUTS = (DiskLoad("read", 16, 16), DiskLoad("mixed", 32, 16))
"""Further such loads, long ones, for a disk with limits."""

BUFFERED_HOLDOUTS = (
    DiskLoad("write", 128, 8, sequential=True),
    DiskLoad("write", 64, 16),
    DiskLoad("mixed", 32, 16),
)
"""Long ones for a disk with a write buffer: most of the time it is full."""

SMALLEST_KIB = 4
"""Size of the smallest I/Os."""

SINGLE_READS = DiskLoad("read", 4, 1)

SINGLE_WRITES = DiskLoad("write", 4, 1)
"""Shows how fast a disk with limits can take writes, which sets how long others may run."""


def fitted_loads(*, queue_depth: int, writes: bool) -> list[DiskLoad]:
    """The loads to fit to.

    Args:
        queue_depth: Commands that the disk takes at once; deeper loads than twice that tell nothing.
        writes: Whether the disk may be written to.
    """
    directions: list[Direction] = ["read", "write"] if writes else ["read"]
    found = []
    for direction in directions:
        found += [DiskLoad(direction, 4, depth) for depth in _DEPTHS if depth <= max(4, 2 * queue_depth)]
        found += [DiskLoad(direction, block_kib, depth) for block_kib, depth in _SIZES]
    return [*found, *MIXED, FLUSHES] if writes else found


def holdout_loads(*, writes: bool) -> list[DiskLoad]:
    """The loads to test with."""
    return _without_writes(HOLDOUTS, writes=writes)


def limited_holdouts(*, writes: bool) -> list[DiskLoad]:
    """Those of a disk with limits."""
    return _without_writes(LIMITED_HOLDOUTS, writes=writes)


def _without_writes(loads: Sequence[DiskLoad], *, writes: bool) -> list[DiskLoad]:
    return [load for load in loads if writes or load.reads_only]
