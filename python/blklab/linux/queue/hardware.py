"""The hardware queues of a disk as its driver set them up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from blklab.linux.machine.kernel_files import text_or_empty

_SYS_BLOCK = Path("/sys/block")
_USUAL_DEPTH = 128
_USUAL_MAX_SECTORS_KB = 1280
_USUAL_SEGMENTS, _USUAL_SEGMENT_BYTES = 128, 65_536
"""`BLK_MAX_SEGMENTS` and `BLK_MAX_SEGMENT_SIZE` (include/linux/blkdev.h)."""


@dataclass(frozen=True)
class HardwareQueues:
    """The queues beneath the scheduler."""

    number: int
    depth: int
    """Commands that each takes at once (tags)."""
    max_sectors_kb: int
    """Largest command in force."""
    volatile_cache: bool
    """Whether the kernel sends flushes."""


def hardware_queues(name: str, sys_block: Path = _SYS_BLOCK) -> HardwareQueues:
    """Reads them from sysfs; what the kernel does not say has a usual value.

    Args:
        name: The kernel's name of the disk, e.g. ``vda``.
        sys_block: The folder of all disks.
    """
    folder = sys_block / name.replace("/", "!")
    queues = [queue for queue in (folder / "mq").glob("*") if queue.is_dir()]
    depths = [int(text) for queue in queues if (text := text_or_empty(queue / "nr_tags")).isdigit()]
    max_sectors = text_or_empty(folder / "queue" / "max_sectors_kb")
    return HardwareQueues(
        number=max(1, len(queues)),
        depth=min(depths, default=_USUAL_DEPTH),
        max_sectors_kb=int(max_sectors) if max_sectors.isdigit() else _USUAL_MAX_SECTORS_KB,
        volatile_cache=text_or_empty(folder / "queue" / "write_cache") == "write back",
    )


@dataclass(frozen=True)
class SegmentLimits:
    """The segments, pieces of memory that lie apart, that a driver takes in one request."""

    number: int
    bytes: int
    """Of one."""


def segment_limits(names: Iterable[str], sys_block: Path = _SYS_BLOCK) -> SegmentLimits:
    """The limits that all of these disks keep.

    Args:
        names: The kernel's names of the disks, at least one.
        sys_block: The folder of all disks.
    """
    queues = [sys_block / name.replace("/", "!") / "queue" for name in names]

    def least(attribute: str, usual: int) -> int:
        texts = [text_or_empty(queue / attribute) for queue in queues]
        return min(int(text) if text.isdigit() else usual for text in texts)

    return SegmentLimits(
        least("max_segments", _USUAL_SEGMENTS), least("max_segment_size", _USUAL_SEGMENT_BYTES)
    )
