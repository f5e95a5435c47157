"""Loads that show what writes do to reads: a controller with few slots, and programs that hold reads.

Reads that share a job with writes share its submission queue, so they stand behind writes that find no slot.
Those of a job of their own come from another queue, so they wait for their turn only.
"""

from __future__ import annotations

from dataclasses import dataclass

from blklab.labs.calibration.disk.loads import parsed_load
from blklab.spec.workloads import Workload

RUNTIME_US = 200_000
_READS_PERCENT = 25
_ALIGNMENT_BYTES = 1 << 20
_MOST_DEPTH = 256


@dataclass(frozen=True)
class ReadsBesideWrites:
    """Random reads and random writes at once. The reads' latency and the writes' rate are measured."""

    read_kib: int
    write_kib: int
    depth: int
    """Writes in flight of a writing job; if reads share it, reads and writes."""
    writers: int = 0
    """Jobs that write beside a reader of depth 1; 0: one job reads and writes, a quarter of it reads."""

    @property
    def name(self) -> str:
        """Such as ``read-4k-with-write-64k-qd32``, ``read-4k-beside-2-write-64k-qd32``."""
        place = f"beside-{self.writers}" if self.writers else "with"
        return f"read-{self.read_kib}k-{place}-write-{self.write_kib}k-qd{self.depth}"

    @property
    def block_kib(self) -> int:
        """Size of a read."""
        return self.read_kib

    @property
    def syncs(self) -> bool:
        """No ``fdatasync``."""
        return False

    @property
    def reads_only(self) -> bool:
        """It writes."""
        return False

    @property
    def writes_in_flight(self) -> int:
        """Commands at once, about."""
        return self.depth * max(1, self.writers)

    def workload(self, *, space_bytes: int, ramp_us: int, runtime_us: int) -> Workload:
        """The load as a job file; see `CalibrationLoad`."""
        common: dict[str, str | int] = {"size": space_bytes // _ALIGNMENT_BYTES * _ALIGNMENT_BYTES}
        if not self.writers:
            both: dict[str, str | int] = {
                "rw": "randrw",
                "rwmixread": _READS_PERCENT,
                "bs": f"{self.read_kib}k,{self.write_kib}k",
                "iodepth": self.depth,
            }
            sections = {"load": both | common}
        else:
            reader: dict[str, str | int] = {"rw": "randread", "bs": f"{self.read_kib}k", "iodepth": 1}
            writer: dict[str, str | int] = {
                "rw": "randwrite",
                "bs": f"{self.write_kib}k",
                "iodepth": self.depth,
                "numjobs": self.writers,
            }
            sections = {"reader": reader | common, "writer": writer | common}
        return parsed_load(self.name, sections, ramp_us=ramp_us, runtime_us=runtime_us)


def contention_to_fit(queue_depth: int) -> list[ReadsBesideWrites]:
    """The loads to fit a front end to: writes of 64 KiB at several depths.

    Args:
        queue_depth: Commands that a queue of the drive takes; a deeper load would wait in the host.
    """
    most = min(_MOST_DEPTH, queue_depth)
    depths = sorted({min(depth, most) for depth in (2, 8, 32, 64, 128, _MOST_DEPTH)})
    beside = sorted({min(depth, most) for depth in (8, 32, 128, _MOST_DEPTH)})
    return [
        *(ReadsBesideWrites(4, 64, depth) for depth in depths),
        *(ReadsBesideWrites(4, 64, depth, writers=1) for depth in beside),
        ReadsBesideWrites(4, 64, most, writers=2),
    ]


def contention_to_test(queue_depth: int) -> list[ReadsBesideWrites]:
    """Loads that no front end is fitted to: other sizes and other depths, chosen beforehand."""
    most = min(_MOST_DEPTH, queue_depth)
    loads = [
        ReadsBesideWrites(4, 16, 24),
        ReadsBesideWrites(16, 128, 48),
        ReadsBesideWrites(4, 32, 192),
        ReadsBesideWrites(4, 4, 32, writers=1),
        ReadsBesideWrites(16, 128, 96, writers=1),
        ReadsBesideWrites(4, 32, 160, writers=2),
        ReadsBesideWrites(4, 16, 16, writers=4),
    ]
    return [
        ReadsBesideWrites(load.read_kib, load.write_kib, min(load.depth, most), load.writers)
        for load in loads
    ]
