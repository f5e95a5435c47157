#!/usr/bin/env python3
"""Counts dies and channels of flash drives drawn at random as a calibration does, and checks them.

    python benches/flash_dies.py --disks 60 --seed 700

This is one experiment of those in benches/disk_calibration.py, which takes minutes for each drive.
"""

from __future__ import annotations

import argparse
import json
import sys

from hidden_disks import drawn_disk

from blklab.labs.calibration.disk.flash.loads import READ_US, sized
from blklab.labs.calibration.disk.flash.structure import stripe_bytes, structure_of
from blklab.labs.calibration.disk.ground import DiskMeasurement, opened_ground
from blklab.labs.calibration.disk.loads import CalibrationLoad
from blklab.spec.machines import DEFAULT_MACHINE, load_machine
from blklab.spec.targets import parse_target


def counted(device: str, seed: int) -> tuple[int, int, int] | None:
    """Dies, bytes of a program unit, and channels; None if addresses make no difference."""
    machine = load_machine(DEFAULT_MACHINE)
    with opened_ground(parse_target(f"sim:{device}"), seed=seed, machine=machine) as ground:
        numbers = iter(range(1000))

        def measure(load: CalibrationLoad, runtime_us: int) -> DiskMeasurement:
            return ground.measure(load, number=next(numbers), runtime_us=runtime_us)

        space = ground.facts.space_bytes
        stripe = stripe_bytes(measure, space)
        if stripe is None:
            return None
        loads = sized(stripe, space, ground.facts.queues.max_sectors_kb)
        times = [measure(load, READ_US).mean_ns or 0.0 for load in loads]
        found = structure_of(stripe, [load.block_kib for load in loads], times)
        return found.dies, found.unit_bytes, found.channels


def main() -> int:
    """Prints a line for each drive that was counted amiss, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--disks", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    right = 0
    for number in range(arguments.disks):
        device, truth = drawn_disk("flash", 1000 * arguments.seed + number)
        found = counted(device, arguments.seed)
        true = (int(truth["dies"]), int(truth["planes"]) * int(truth["page"]), int(truth["channels"]))
        right += found == true
        if found != true:
            print(json.dumps({"device": device, "found": found}))  # noqa: T201 - a program's output
    print(json.dumps({"disks": arguments.disks, "right": right}))  # noqa: T201 - a program's output
    return 0


if __name__ == "__main__":
    sys.exit(main())
