#!/usr/bin/env python3
"""Determines io.cost's parameters of modelled disks drawn at random, and compares them with the truth.

    python benches/iocost_parameters.py --disks 6 --seed 11

The disks are those of disk_calibration.py. The truth of a coefficient is what one long simulation of its load
finds, that of a vrate what a sweep with four times as many other seeds finds. Printed for each disk: the
coefficients outside their 95 % intervals, and both vrates beside the truth. The last line sums up.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Sequence

import numpy as np
from disk_calibration import drawn_disk

from blklab.labs.calibration.disk.ground import opened_ground
from blklab.labs.iocost.determine import QUEUE
from blklab.labs.iocost.loads import coefficient_loads
from blklab.labs.iocost.stages import IocostStages, Measured, measured
from blklab.labs.iocost.sweep import SEEDS, SWEPT_VRATES, SweptDisk, swept
from blklab.labs.iocost.vrate_range import Vrate, VrateRange, vrate_range
from blklab.simulator.simulation import simulate
from blklab.spec.machines import DEFAULT_MACHINE, load_machine
from blklab.spec.targets import parse_target

MACHINE = load_machine(DEFAULT_MACHINE)
LONG = 10
"""Times as long as all rounds together."""
MORE = 4
"""Times as many seeds."""


class Quiet:
    """Follows the measurements without a word."""

    def announce(self, line: str) -> None:
        """Not shown."""

    def measuring(self, name: str, *, done: int, planned: int) -> None:
        """Not shown."""


def true_coefficient(
    device: str, name: str, found: Measured, stages: IocostStages, queue_depth: int
) -> float:
    """The rate of one long simulation."""
    load = coefficient_loads(stages.processes, queue_depth)[name]
    runtime_us = LONG * stages.rounds * stages.runtime_us
    workload = load.workload(space_bytes=found.space_bytes, ramp_us=stages.runtime_us, runtime_us=runtime_us)
    result = simulate(
        device, workload, scheduler="none", queue=QUEUE, costs=MACHINE, seed=99, arrangement="fixed"
    )
    entry = result.jobs[0].directions[0]
    return (entry.bytes if name.endswith("bps") else entry.ios) * 1e9 / entry.runtime_ns


def range_of(disk: SweptDisk, steps: Sequence[int]) -> VrateRange | None:
    """The range by a sweep with certain seeds."""
    runs = [swept(disk, step) for step in steps]
    return vrate_range(
        SWEPT_VRATES,
        np.array([[run.bandwidth for run in row] for row in runs]),
        np.array([[run.p99_ns for run in row] for row in runs]),
        np.array([[run.isolation for run in row] for row in runs]),
    )


def beside(vrate: Vrate, truth: Vrate) -> str:
    """A vrate and the truth, for a line."""
    return f"{vrate.value} [{vrate.low}, {vrate.high}] ({truth.value})"


def main() -> None:
    """Prints a line for each disk, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--disks", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-sweeps", action="store_true")
    arguments = parser.parse_args()
    stages = IocostStages(rounds=6, runtime_us=1_000_000, processes=1, seed=arguments.seed)
    coefficients: list[bool] = []
    vrates: list[bool] = []
    for number in range(arguments.disks):
        begun = time.monotonic()
        figures = drawn_disk(random.Random(1000 * arguments.seed + number))  # noqa: S311 - not for secrets
        device = "virtual," + ",".join(f"{key}={value}" for key, value in figures.items())
        target = parse_target(f"sim:{device}")
        with opened_ground(target, seed=stages.seed, machine=MACHINE, queue=QUEUE) as ground:
            depth = ground.facts.queues.depth
            found = measured(ground, stages, Quiet())
        outside = []
        for one in found.coefficients:
            truth = true_coefficient(device, one.name, found, stages, depth)
            coefficients.append(one.low <= truth <= one.high)
            if not coefficients[-1]:
                outside.append(f"{one.name} {one.value / truth - 1:+.2%}")
        line = f"{number}: outside: {', '.join(outside) or 'none'}"
        if not arguments.no_sweeps:
            disk = SweptDisk(
                device=device,
                model=found.model,
                space_bytes=found.space_bytes,
                machine=MACHINE,
                seed=stages.seed,
                latencies_us=found.latencies_us,
                queue=QUEUE,
            )
            few, many = range_of(disk, range(SEEDS)), range_of(disk, range(SEEDS, (1 + MORE) * SEEDS))
            if few is not None and many is not None:
                pairs = ((few.knee, many.knee), (few.saturation, many.saturation))
                vrates += [vrate.low <= truth.value <= vrate.high for vrate, truth in pairs]
                line += "; knee {}, saturation {}".format(*(beside(*pair) for pair in pairs))
        sys.stdout.write(f"{line}; {time.monotonic() - begun:.0f} s\n")
        sys.stdout.flush()
    sys.stdout.write(
        f"within 95 % intervals: {sum(coefficients)} of {len(coefficients)} coefficients,"
        f" {sum(vrates)} of {len(vrates)} vrates\n"
    )


if __name__ == "__main__":
    main()
