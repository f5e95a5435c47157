#!/usr/bin/env python3
"""Tests the profile of a calibrated disk on the disk itself, with the disk's drift taken out.

    python benches/real_disks.py my-disk.toml TARGET --rounds 6

TARGET is the one that the profile was calibrated on. The loads are those that no figure was fitted to. In
each round all run in random order, each between two runs of its reference, 4 KiB I/Os at depth 8 of its
direction (for a mixture one of reads and one of writes). What the reference lost or gained since calibration
is taken out of the load's rate. Printed: the error of the profile for each load, raw and so corrected, and
the drift itself.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median, pstdev
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from blklab.execution.calibration.disk.document import mean_log
from blklab.execution.calibration.disk.ground import SessionGround, opened_ground
from blklab.execution.calibration.disk.loads import HOLDOUTS, REFERENCE, DiskLoad
from blklab.execution.fidelity.measured import percentile
from blklab.spec.machines import load_machine
from blklab.spec.targets import parse_target

WRITE_REFERENCE = DiskLoad("write", 4, 8)
REFERENCES: Mapping[str, Sequence[DiskLoad]] = {
    "read": [REFERENCE],
    "write": [WRITE_REFERENCE],
    "mixed": [REFERENCE, WRITE_REFERENCE],
}


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
    with opened_ground(
        parse_target(arguments.target),
        seed=arguments.seed,
        machine=load_machine(made["machine"]),
        file_bytes=None if arguments.file_mib is None else arguments.file_mib << 20,
    ) as ground:
        ground.prepare([*loads, *REFERENCES["mixed"]], lambda _line: None)
        drawn = random.Random(arguments.seed)  # noqa: S311 - an order, no secret
        rounds = [
            _round(ground, drawn.sample(loads, len(loads)), 1000 * arguments.runtime_ms)
            for _ in range(arguments.rounds)
        ]
    if arguments.json:
        arguments.json.write_text(json.dumps(rounds))
    _report(rounds, loads, known)
    return 0


def _round(ground: SessionGround, loads: Sequence[DiskLoad], runtime_us: int) -> dict[str, Any]:
    """Rates of each load and of its reference before and after it."""

    def run(load: DiskLoad) -> float:
        return ground.measure(load, number=0, runtime_us=runtime_us).iops

    found: dict[str, Any] = {}
    for load in loads:
        references = REFERENCES[load.direction]
        before = [run(one) for one in references]
        iops = run(load)
        found[load.name] = {"iops": iops, "before": before, "after": [run(one) for one in references]}
    return found


def _report(rounds: Sequence[Mapping[str, Any]], loads: Sequence[DiskLoad], known: Mapping[str, Any]) -> None:
    raw_errors, errors, changes = [], [], []
    for load in loads:
        then = [known[one.name]["iops"] for one in REFERENCES[load.direction]]
        predicted = math.log(known[load.name]["predicted_iops"])
        raw, corrected = [], []
        for one in (found[load.name] for found in rounds):
            now = [mean_log(pair) for pair in zip(one["before"], one["after"], strict=True)]
            change = math.log(mean_log(now) / mean_log(then))
            changes.append(change)
            raw.append(math.log(one["iops"]))
            corrected.append(math.log(one["iops"]) - change)
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
    sys.stdout.write(
        f"drift: the references since calibration {100 * math.expm1(median(changes)):+.1f} %,"
        f" standard deviation {100 * pstdev(changes):.1f} %, from {100 * math.expm1(min(changes)):+.0f}"
        f" to {100 * math.expm1(max(changes)):+.0f} %\n"
    )


if __name__ == "__main__":
    sys.exit(main())
