#!/usr/bin/env python3
"""Calibrates modelled disks whose figures are drawn at random, and compares what is found with the truth.

    python benches/disk_calibration.py --disks 12 --seed 1

Each disk of kind ``virtual`` is measured in the simulator like an unknown one. Printed for each: the figures
outside their 95 % intervals, the errors on loads that were not fitted, and the ratio of the nearest shipped
profile's error to them. The last line sums up; --also names devices of other kinds, which are not in it.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from blklab.execution.calibration.disk.calibrate import calibrated
from blklab.execution.calibration.disk.document import UNDECIDED, DiskCalibration
from blklab.execution.calibration.disk.ground import opened_ground
from blklab.execution.calibration.disk.loads import DiskLoad
from blklab.execution.calibration.disk.saved import Design, saved_measurements
from blklab.execution.fidelity.measured import percentile
from blklab.spec.machines import DEFAULT_MACHINE, load_machine
from blklab.spec.targets import parse_target

WORDS = ("placement", "full_duplex")


class Quiet:
    """Follows a calibration without a word."""

    def announce(self, line: str) -> None:
        """Not shown."""

    def measuring(self, load: DiskLoad, *, done: int, planned: int, left_ns: int) -> None:
        """Not shown."""


def drawn_disk(draw: random.Random) -> dict[str, str | int]:
    """A disk between fast flash and a slow network, by the logarithm of its figures."""

    def between(low: float, high: float) -> float:
        return math.exp(draw.uniform(math.log(low), math.log(high)))

    read_ns = between(30_000, 2_000_000)
    write_ns = read_ns * between(0.3, 3)
    parallel = round(between(1, 64))
    share = draw.uniform(0.05, 0.5)
    flushes = draw.random() < 0.7
    return {
        "read_latency": round(read_ns),
        "read_spread": round(draw.uniform(50, 500)),
        "read_command": round(share * read_ns / parallel),
        "read_rate": round(between(1e8, 3e9)),
        "write_latency": round(write_ns),
        "write_spread": round(draw.uniform(50, 500)),
        "write_command": round(share * write_ns / parallel),
        "write_rate": round(between(1e8, 3e9)),
        "parallel": parallel,
        "placement": draw.choice(("any", "random")),
        "full_duplex": draw.choice((0, 1)),
        "flush": round(between(20_000, 5_000_000)) if flushes else 0,
        "queue_depth": draw.choice((32, 64, 128, 256)),
    }


def calibration_of(target: str, seed: int, budget_s: float) -> DiskCalibration:
    """Calibrates a model."""
    machine = load_machine(DEFAULT_MACHINE)
    budget_ns = round(budget_s * 1e9)
    with (
        tempfile.TemporaryDirectory() as folder,
        opened_ground(parse_target(target), seed=seed, machine=machine) as ground,
    ):
        facts = ground.facts
        design = Design(
            target=target,
            disk=facts.name,
            capacity_bytes=facts.capacity_bytes,
            space_bytes=facts.space_bytes,
            budget_ns=budget_ns,
            seed=seed,
            machine=machine.source,
        )
        saved = saved_measurements(Path(folder) / "profile.toml", design, fresh=False)
        return calibrated(ground, saved, budget_ns=budget_ns, seed=seed, machine=machine, observer=Quiet())


def within(found: DiskCalibration, truth: dict[str, str | int]) -> dict[str, bool]:
    """For each figure with an interval, whether it holds the truth; for each choice, whether it is right."""
    states = {}
    for figure in found.figures:
        true = truth.get(figure.key)
        if true is None:
            continue
        if figure.key == "placement" and truth["parallel"] == 1:
            continue  # one server is any server
        if figure.how == UNDECIDED:
            continue
        if figure.key in WORDS:
            states[figure.key] = figure.value == true
        elif figure.low is not None or figure.high is not None:
            low = -math.inf if figure.low is None else figure.low
            high = math.inf if figure.high is None else figure.high
            states[figure.key] = low <= float(true) <= high
    return states


def main() -> int:
    """Prints a line for each disk, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--disks", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--budget", type=float, default=600.0, metavar="SECONDS")
    parser.add_argument("--also", nargs="*", default=[], metavar="DEVICE")
    arguments = parser.parse_args()
    states: list[bool] = []
    errors: list[float] = []
    tails: list[float] = []
    ratios: list[float] = []
    truths: list[tuple[str, dict[str, str | int]]] = []
    for number in range(arguments.disks):
        truth = drawn_disk(random.Random(1000 * arguments.seed + number))  # noqa: S311 - not for secrets
        truths.append(("virtual," + ",".join(f"{key}={value}" for key, value in truth.items()), truth))
    truths += [(device, {}) for device in arguments.also]
    for device, truth in truths:
        begun = time.monotonic()
        found = calibration_of(f"sim:{device}", arguments.seed, arguments.budget)
        inside = within(found, truth)
        own_errors = [load.rate_error for load in found.loads if not load.fitted]
        ratio = found.nearest.rate_error_median / max(1e-4, median(own_errors))
        if truth:
            states += [inside[key] for key in inside if key not in WORDS]
            errors += own_errors
            tails += [load.tail_error for load in found.loads if not load.fitted]
            ratios.append(ratio)
        line = {
            "device": device,
            "outside": [key for key, state in inside.items() if not state],
            "figures": len(inside),
            "rate_errors": [round(part, 4) for part in found.errors()],
            "p99_errors": [round(part, 4) for part in found.tail_errors()],
            "nearest": found.nearest.profile,
            "nearest_ratio": round(ratio, 1),
            "model_error": round(found.model_error, 4),
            "took_s": round(time.monotonic() - begun, 1),
        }
        print(json.dumps(line), flush=True)  # noqa: T201 - a program's output
    if states:
        summary = {
            "within_intervals": round(sum(states) / len(states), 4),
            "figures": len(states),
            "rate_error_median": round(median(errors), 4),
            "rate_error_95": round(percentile(sorted(errors), 0.95), 4),
            "p99_error_median": round(median(tails), 4),
            "p99_error_95": round(percentile(sorted(tails), 0.95), 4),
            "nearest_ratio_median": round(median(ratios), 1),
            "nearest_ratio_least": round(min(ratios), 1),
        }
        print(json.dumps(summary))  # noqa: T201 - a program's output
    return 0


if __name__ == "__main__":
    sys.exit(main())
