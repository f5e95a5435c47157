#!/usr/bin/env python3
"""Looks for the write buffers of disks drawn at random as a calibration does, and compares with the truth.

    python benches/write_buffers.py --kind flash --disks 12 --seed 1

This is one experiment of those in benches/disk_calibration.py, which takes minutes for each disk.
"""

from __future__ import annotations

import argparse
import json
import math
import sys

from hidden_disks import KINDS, drawn_disk

from blklab.labs.calibration.disk.ground import DiskMeasurement, opened_ground
from blklab.labs.calibration.disk.limits import Limits, buffer_load, with_write_buffer
from blklab.labs.calibration.disk.loads import CalibrationLoad
from blklab.spec.machines import DEFAULT_MACHINE, load_machine
from blklab.spec.targets import parse_target

LONGEST_S = 16
NO_LIMIT = Limits(ios=None, rate=None, seen_ios=0, seen_bytes=0, most_iops=math.inf, most_rate=math.inf)


def buffer_of(device: str, seed: int) -> Limits:
    """The write buffer of a model, measured with nothing but writes."""
    machine = load_machine(DEFAULT_MACHINE)
    with opened_ground(parse_target(f"sim:{device}"), seed=seed, machine=machine) as ground:
        facts = ground.facts
        numbers = iter(range(100))

        def measure(load: CalibrationLoad, runtime_us: int) -> DiskMeasurement:
            return ground.measure(load, number=next(numbers), runtime_us=runtime_us)

        load = buffer_load(
            queue_depth=facts.queues.depth,
            max_sectors_kb=facts.queues.max_sectors_kb,
            space_bytes=facts.space_bytes,
        )
        return with_write_buffer(NO_LIMIT, measure, load, most_s=LONGEST_S)


def main() -> int:
    """Prints a line for each disk, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", choices=[*KINDS], default="buffered")
    parser.add_argument("--disks", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    inside = {"write_drain_rate": 0, "write_buffer": 0}
    known = dict.fromkeys(inside, 0)
    nr_found = 0
    for number in range(arguments.disks):
        device, truth = drawn_disk(arguments.kind, 1000 * arguments.seed + number)
        limits = buffer_of(device, arguments.seed)
        bucket = limits.writes
        line: dict[str, object] = {"device": device}
        if bucket is None:
            line["none"] = limits.no_write_buffer
        else:
            nr_found += 1
            for key, value, (low, high) in (
                ("write_drain_rate", bucket.per_second, bucket.per_second_interval),
                ("write_buffer", bucket.burst, bucket.burst_interval),
            ):
                line[key] = round(value)
                true = truth.get(key)
                if true is not None:
                    known[key] += 1
                    inside[key] += low <= float(true) <= high
                    line[f"{key}_error"] = round(value / float(true) - 1, 4)
        print(json.dumps(line), flush=True)  # noqa: T201 - a program's output
    sums = {"disks": arguments.disks, "found": nr_found, "within_intervals": inside, "of": known}
    print(json.dumps(sums))  # noqa: T201 - a program's output
    return 0


if __name__ == "__main__":
    sys.exit(main())
