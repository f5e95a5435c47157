#!/usr/bin/env python3
"""Measures in the simulator on which disks the order in which a plug is issued matters.

    python benches/court/plug_order.py

Without a scheduler, Linux 6.1 hands the requests of a plug to the disk newest first; with `kernel=7.3` the
simulator has them go oldest first. The two also differ in the order of tasks and in the waking of sleepers
for tags. Prints rates of the first as multiples of the second's, as a table for Markdown.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Sequence

from blklab.labs.judgement.loads import LOADS
from blklab.simulator.simulation import SimulationRequest, SimulationResult, simulate_many

LIKE = {
    "hdd-7200": "hdd-7200",
    "hdd-7200,queue_depth=1": "hdd-7200",
    "hdd-7200,starvation_limit=1ms": "hdd-7200",
    "sas-15k": "hdd-7200",
    "virtio-network": "virtio-network",
    "ssd-sata": "ssd-sata",
    "nvme-tlc": "nvme-tlc",
    "emmc": "ssd-sata",
    "sd-card": "ssd-sata",
}
"""Disks, each with the disk of the court whose length of runs it takes."""
BATCHES = ("batches", "strides")
NEWEST_FIRST, OLDEST_FIRST = "6.1", "7.3"


def ratios(disk: str, load: str, arrangements: int) -> list[float]:
    """The rate with requests newest first as a multiple of the rate with oldest first, by arrangement."""
    rates = [
        [_rate(result) for result in simulate_many(_requests(disk, load, kernel, arrangements))]
        for kernel in (NEWEST_FIRST, OLDEST_FIRST)
    ]
    return [newest / oldest for newest, oldest in zip(*rates, strict=True)]


def _requests(disk: str, load: str, kernel: str, arrangements: int) -> Sequence[SimulationRequest]:
    like = LIKE[disk]
    return [
        SimulationRequest(
            disk,
            LOADS[load].text(like),
            scheduler="none",
            costs="zero-cpu-time",
            parameters={"kernel": kernel, "zero_cpu_time": 1},
            seed=seed,
            arrangement="drawn",
            runtime=f"{LOADS[load].runtime_ns(like)}ns",
        )
        for seed in range(1, arrangements + 1)
    ]


def _rate(result: SimulationResult) -> float:
    (job,) = result.jobs
    (direction,) = job.directions
    return direction.ios / direction.runtime_ns


def main() -> int:
    """Prints the table."""
    lines = ["| Disk | Load | Newest first | Least | Most |", "|---|---|---|---|---|"]
    for disk in LIKE:
        for load in BATCHES:
            found = ratios(disk, load, arrangements=16)
            mean = math.exp(statistics.mean(map(math.log, found)))
            lines.append(f"| {disk} | {load} | {mean:.3f} | {min(found):.3f} | {max(found):.3f} |")
    print("\n".join(lines))  # noqa: T201 - a program's output
    return 0


if __name__ == "__main__":
    sys.exit(main())
