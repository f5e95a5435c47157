"""How fast guests are: boot, a comparison of four schedulers, and I/Os of modelled disks a second.

Real time says what a person waits; processor time says it on a busy machine as well. As any user::

    python benches/guests.py [--kernel NAME] [--ios N]
"""

from __future__ import annotations

import argparse
import functools
import os
import resource
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from blklab.backends.protocol import SessionOptions
from blklab.backends.uml import BACKEND
from blklab.spec.plan import Cell, CellKey
from blklab.spec.schedulers import parse_scheduler_choice
from blklab.spec.targets import parse_target
from blklab.spec.workloads import parse_workload

BOOT_AIM_S = 1.5
COMPARISON_AIM_S = 10.0
DISK_AIM_IOS_PER_S = 10_000
SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq")
FIXED = "uml:fixed,latency=100us,depth=32"
DISKS = ("uml:fixed,latency=100us,depth=32,jitter=10us", "uml:nvme-tlc", "uml:ssd-sata", "uml:hdd-7200")
JOB = (
    "[reader]\nrw=randread\nbs=4k\ndirect=1\nioengine={engine}\niodepth={depth}\nnumber_ios={ios}\nsize=8g\n"
)


@dataclass(frozen=True)
class Cost:
    """What something took."""

    real_s: float
    processor_s: float
    switches: int
    """Voluntary context switches: two for each system call or page fault of a guest program."""


def cost_of(work: Callable[[], None]) -> Cost:
    """Does it, and says what it took: of this process and all that ended beneath it."""
    real, before, switches = time.monotonic(), os.times(), _switches()
    work()
    after = os.times()
    return Cost(time.monotonic() - real, sum(after[:4]) - sum(before[:4]), _switches() - switches)


def _switches() -> int:
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_nvcsw


def compare(target: str, kernel: str, ios: int, depth: int, schedulers: tuple[str, ...]) -> Cost:
    """One run under each scheduler, as many at once as `blklab compare` would have."""
    text = JOB.format(engine="libaio" if depth > 1 else "psync", depth=depth, ios=ios)
    workload = parse_workload(text, name="bench", source="bench")
    options = SessionOptions(run_id="bench", kernels=(kernel,))

    def work() -> None:
        with BACKEND.open(parse_target(target), options) as session:
            cells = []
            for name in schedulers:
                choice = parse_scheduler_choice(f"{name}@{kernel}")
                key = CellKey(
                    block=0, sequence=0, position=0, workload="bench", scheduler=choice.label, seed=1
                )
                cells.append(Cell(key=key, scheduler=choice, workload=workload))
            with ThreadPoolExecutor(session.parallel) as executor:
                for sample in executor.map(session.run, cells):
                    if sample.status != "ok":
                        raise SystemExit(sample.error)

    return cost_of(work)


def main() -> None:
    """Measures and prints; see the module."""
    parser = argparse.ArgumentParser(description="Speed of guest kernels")
    parser.add_argument("--kernel", default="stock")
    parser.add_argument("--ios", type=int, default=25_000)
    arguments = parser.parse_args()
    kernel, ios = arguments.kernel, arguments.ios
    say = functools.partial(print, flush=True)
    processors = len(os.sched_getaffinity(0))
    say(f"{processors} processors, load {os.getloadavg()[0]:.1f} at the start")
    boots = [compare(FIXED, kernel, 1, 1, ("none",)) for _ in range(5)]
    real = statistics.median(boot.real_s for boot in boots)
    work = statistics.median(boot.processor_s for boot in boots)
    say(f"boot, one I/O, end: {real:.2f} s ({work:.2f} s of processors); aim {BOOT_AIM_S} s")
    for depth in (1, 32):
        cost = compare(FIXED, kernel, ios, depth, SCHEDULERS)
        say(
            f"4 schedulers x {ios} I/Os at depth {depth}: {cost.real_s:.1f} s "
            f"({cost.processor_s:.1f} s of processors); aim {COMPARISON_AIM_S:.0f} s"
        )
    for target in DISKS:
        for depth in (1, 32):
            cost = compare(target, kernel, ios, depth, ("mq-deadline",))
            say(
                f"{target}, depth {depth}: {ios / cost.real_s:,.0f} I/Os a second, "
                f"{ios / cost.processor_s:,.0f} a second of processor; aim {DISK_AIM_IOS_PER_S:,}; "
                f"{cost.switches / ios:.1f} switches each"
            )


if __name__ == "__main__":
    main()
