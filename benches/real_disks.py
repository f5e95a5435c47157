#!/usr/bin/env python3
"""Tests the profile of a calibrated disk on the disk itself, with the disk's drift taken out.

    python benches/real_disks.py my-disk.toml TARGET --rounds 6

TARGET is the one that the profile was calibrated on. The loads are those that no figure was fitted to. Each
round runs them once and ten references twice, all in random order. The references are five loads of reads and
five of writes that calibration has measured. The median of what those of a direction lost or gained since
then is the drift, which is taken out of the rates of that direction's loads (of mixtures, the mean of both).
One reference alone does not tell it: single rates differ by tens of percent from run to run on some disks.
Printed: the error of the profile for each load, raw and so corrected, and the drift itself.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, median, pstdev
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from blklab.analysis.statistics.percentile import percentile
from blklab.labs.calibration.disk.document import mean_log
from blklab.labs.calibration.disk.ground import SessionGround, opened_ground
from blklab.labs.calibration.disk.loads import HOLDOUTS, Direction, DiskLoad
from blklab.spec.machines import load_machine
from blklab.spec.targets import parse_target

REFERENCE_SIZES = ((4, 1), (4, 8), (4, 64), (16, 1), (64, 8))
"""Blocks of the references in KiB, and depth."""
DIRECTIONS: Mapping[Direction, Sequence[Direction]] = {
    "read": ["read"],
    "write": ["write"],
    "mixed": ["read", "write"],
}
"""Of the references, by a load's direction."""
REPETITIONS = 2
"""Runs of each reference in a round."""


def main() -> int:
    """Prints a line for each load, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("profile", type=Path)
    parser.add_argument("target")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--runtime-ms", type=int, default=500)
    parser.add_argument("--file-mib", type=int, help="of a directory's test files, as in calibration (1024)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep every run")
    arguments = parser.parse_args()
    made = tomllib.loads(arguments.profile.read_text(encoding="utf-8"))["calibration"]
    known = {load["load"]: load for load in made["loads"]}
    loads = [load for load in HOLDOUTS if load.name in known]
    references = [DiskLoad(way, kib, depth) for way in DIRECTIONS["mixed"] for kib, depth in REFERENCE_SIZES]
    references = [load for load in references if load.name in known]
    needed = {way for load in loads for way in DIRECTIONS[load.direction]}
    if needed - {load.direction for load in references}:
        parser.error(f"{arguments.profile}: its calibration did not measure the references")
    with opened_ground(
        parse_target(arguments.target),
        seed=arguments.seed,
        machine=load_machine(made["machine"]),
        file_bytes=None if arguments.file_mib is None else arguments.file_mib << 20,
    ) as ground:
        ground.prepare([*loads, *references], lambda _line: None)
        drawn = random.Random(arguments.seed)  # noqa: S311 - an order, no secret
        of_round = [*loads, *REPETITIONS * references]
        rounds = [
            _round(ground, drawn.sample(of_round, len(of_round)), 1000 * arguments.runtime_ms)
            for _ in range(arguments.rounds)
        ]
    if arguments.json:
        arguments.json.write_text(json.dumps(rounds))
    _report(rounds, loads, references, known)
    return 0


def _round(ground: SessionGround, loads: Sequence[DiskLoad], runtime_us: int) -> dict[str, list[float]]:
    """Rates of each load, I/Os a second."""
    found: dict[str, list[float]] = {}
    for load in loads:
        found.setdefault(load.name, []).append(ground.measure(load, number=0, runtime_us=runtime_us).iops)
    return found


def _change(
    rates: Mapping[str, list[float]], references: Sequence[DiskLoad], known: Mapping[str, Any]
) -> float:
    """The logarithm of what a round's references do of what they did in calibration."""
    return median(math.log(mean_log(rates[one.name]) / known[one.name]["iops"]) for one in references)


def _report(
    rounds: Sequence[Mapping[str, list[float]]],
    loads: Sequence[DiskLoad],
    references: Sequence[DiskLoad],
    known: Mapping[str, Any],
) -> None:
    raw_errors, errors = [], []
    of_direction = {}
    for direction in DIRECTIONS["mixed"]:
        if alike := [one for one in references if one.direction == direction]:
            of_direction[direction] = [_change(rates, alike, known) for rates in rounds]
    for load in loads:
        predicted = math.log(known[load.name]["predicted_iops"])
        raw = [math.log(mean_log(rates[load.name])) for rates in rounds]
        drift = zip(*(of_direction[direction] for direction in DIRECTIONS[load.direction]), strict=True)
        corrected = [log - fmean(changes) for log, changes in zip(raw, drift, strict=True)]
        raw_errors.append(abs(predicted - median(raw)))
        errors.append(abs(predicted - median(corrected)))
        off = math.expm1(predicted - median(corrected))
        sys.stdout.write(
            f"{load.name}: predicted {math.exp(predicted):.0f}, measured {math.exp(median(raw)):.0f},"
            f" drift taken out {math.exp(median(corrected)):.0f} ({100 * off:+.1f} %)\n"
        )
    for name, found in (("raw", raw_errors), ("drift taken out", errors)):
        sys.stdout.write(
            f"errors of rates, {name}: median {100 * median(found):.1f} %,"
            f" 95th percentile {100 * percentile(sorted(found), 0.95):.1f} %\n"
        )
    for direction, changes in of_direction.items():
        sys.stdout.write(
            f"drift of {direction}s since calibration: {100 * math.expm1(median(changes)):+.1f} %,"
            f" standard deviation of rounds {100 * pstdev(changes):.1f} %, from"
            f" {100 * math.expm1(min(changes)):+.0f} to {100 * math.expm1(max(changes)):+.0f} %\n"
        )


if __name__ == "__main__":
    sys.exit(main())
