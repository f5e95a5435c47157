"""The loads that io.cost's parameters are measured with.

Six give the coefficients of the linear model, as tools/cgroup/iocost_coef_gen.py of the kernel's tree has
them: sequential and random I/O of 4 KiB, 64 at once, and large sequential I/O. Two more give the latencies:
random I/O at nine tenths of the rate found, as the script of the same name in resctl-demo has it.

Unlike there, a load has hardly more I/Os in flight than the disk has tags. A process that waits for a tag
does not collect what is complete, and what piles up before a short run begins would count in it.
"""

from __future__ import annotations

from dataclasses import dataclass

from blklab.labs.calibration.disk.loads import Direction, DiskLoad
from blklab.spec.workloads import Workload, parse_workload

_DEPTH = 64
_LARGE_KIB = 1024
_LARGE_DEPTH = 32
PACED_SHARE = 0.9
"""Of the random rate, for the loads that latencies are measured under."""


@dataclass(frozen=True)
class CostLoad(DiskLoad):
    """A load of one or several processes, at full speed or paced."""

    processes: int = 1
    rate_iops: int | None = None
    """I/Os a second that it makes if the disk can; None for as many as the disk can."""

    @property
    def name(self) -> str:
        """Such as ``randread-4k-qd64-2x`` and ``randread-4k-qd64-paced``."""
        processes = f"-{self.processes}x" if self.processes > 1 else ""
        return f"{super().name}{processes}{'' if self.rate_iops is None else '-paced'}"

    def workload(self, *, space_bytes: int, ramp_us: int, runtime_us: int) -> Workload:
        """The load as a job file; see `DiskLoad.workload`."""
        text = super().workload(space_bytes=space_bytes, ramp_us=ramp_us, runtime_us=runtime_us).text
        if self.processes > 1:
            text += f"numjobs={self.processes}\n"
        if self.rate_iops is not None:
            text += f"rate_iops={max(1, self.rate_iops // self.processes)}\n"
        return parse_workload(text, name=self.name, source=self.name)


def coefficient_loads(processes: int, queue_depth: int) -> dict[str, CostLoad]:
    """The load of each coefficient, by its name in ``io.cost.model``.

    Args:
        processes: Of the random loads. A sequential load has one: several would be random to the kernel.
        queue_depth: Commands that the disk takes at once.
    """
    found = {}
    directions: tuple[tuple[str, Direction], ...] = (("r", "read"), ("w", "write"))
    for letter, direction in directions:
        found[f"{letter}bps"] = CostLoad(
            direction, _LARGE_KIB, _within(_LARGE_DEPTH, queue_depth), sequential=True
        )
        found[f"{letter}seqiops"] = CostLoad(direction, 4, _within(_DEPTH, queue_depth), sequential=True)
        found[f"{letter}randiops"] = _random(direction, processes, queue_depth)
    return found


def latency_loads(
    processes: int, queue_depth: int, *, rrandiops: float, wrandiops: float
) -> dict[str, CostLoad]:
    """The load of each latency, by its name in ``io.cost.qos``.

    Args:
        processes: As of the random loads.
        queue_depth: Commands that the disk takes at once.
        rrandiops: Random reads a second that the disk makes.
        wrandiops: Random writes a second.
    """
    directions: tuple[tuple[str, Direction, float], ...] = (
        ("rlat", "read", rrandiops),
        ("wlat", "write", wrandiops),
    )
    return {
        name: _random(direction, processes, queue_depth, rate_iops=max(1, round(PACED_SHARE * iops)))
        for name, direction, iops in directions
    }


def _random(direction: Direction, processes: int, queue_depth: int, rate_iops: int | None = None) -> CostLoad:
    depth = _within(_DEPTH, queue_depth // processes)
    return CostLoad(direction, 4, depth, processes=processes, rate_iops=rate_iops)


def _within(depth: int, tags: int) -> int:
    """One more than the disk has tags at most, so that the next I/O is there when a tag is free."""
    return min(depth, tags + 1)
