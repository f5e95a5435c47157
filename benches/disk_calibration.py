#!/usr/bin/env python3
"""Calibrates modelled disks whose figures are drawn at random, and compares what is found with the truth.

    python benches/disk_calibration.py --kind all --disks 12 --seed 1 --order

Each disk is measured in the simulator like an unknown one. Printed for each: the figures
outside their 95 % intervals (truth, both ends, value), the errors on loads that were not fitted, and the
ratio of the nearest shipped profile's error to them. The last lines sum up, with --kind all for each kind
too; --also names devices of other kinds, which are not in it.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from hidden_disks import ALL, KINDS, SEEDS, Truth, drawn_disks, kind_to_find
from scheduler_order import Order, order_of

from blklab.analysis.statistics.percentile import percentile
from blklab.labs.calibration.disk.calibrate import calibrated
from blklab.labs.calibration.disk.document import UNDECIDED, DiskCalibration
from blklab.labs.calibration.disk.flash.spare import (
    OVERWRITE_RATE,
    USABLE_SPARE,
    steady_overwrite_rate,
)
from blklab.labs.calibration.disk.ground import opened_ground
from blklab.labs.calibration.disk.loads import CalibrationLoad
from blklab.labs.calibration.disk.profile_file import profile_text
from blklab.labs.calibration.disk.saved import SavedDesign, saved_measurements
from blklab.spec.machines import DEFAULT_MACHINE, load_machine
from blklab.spec.targets import parse_target

_ALSO = "also"
WORDS = ("placement", "full_duplex", "mixed_latency", "read_ahead", "hold")
FRONT_END = ("slots", "arbitration_burst", "hold", "fetch")
UNIT_OF_ONES_OWN = {
    *("seek_far_from", "cylinders", "seek_near", "seek_near_root", "seek_far", "seek_far_slope"),
    *("spare_permille", "erase"),
}
"""Counted in cylinders or erase blocks of the profile, which need not be the disk's."""


class Quiet:
    """Follows a calibration without a word."""

    def announce(self, line: str) -> None:
        """Not shown."""

    def measuring(self, load: CalibrationLoad, *, done: int, planned: int, left_ns: int) -> None:
        """Not shown."""


def calibration_of(target: str, seed: int, budget_s: float) -> DiskCalibration:
    """Calibrates a model."""
    machine = load_machine(DEFAULT_MACHINE)
    budget_ns = round(budget_s * 1e9)
    with (
        tempfile.TemporaryDirectory() as folder,
        opened_ground(parse_target(target), seed=seed, machine=machine) as ground,
    ):
        facts = ground.facts
        design = SavedDesign(
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


def within(found: DiskCalibration, truth: Truth) -> dict[str, bool]:
    """For each figure with an interval, whether it holds the truth; for each choice, whether it is right."""
    states = {}
    for figure in [*found.figures, *found.derived]:
        true: str | float | None = truth.get(figure.key)
        if true is None or figure.key in UNIT_OF_ONES_OWN:
            continue
        if figure.key == "batch_size" and true == 0:
            true = math.inf  # all that wait
        if figure.key == "placement" and truth["parallel"] == 1 and true != "batch":
            continue  # one server is any server
        if figure.how == UNDECIDED:
            continue
        if figure.key == "slots" and (figure.value == 0) != (true == 0):
            states["slots"] = False
            continue
        if figure.key in WORDS:
            states[figure.key] = figure.value == true
        elif figure.low is not None or figure.high is not None:
            low = -math.inf if figure.low is None else figure.low
            high = math.inf if figure.high is None else figure.high
            states[figure.key] = low <= float(true) <= high
    return states


@dataclass
class Sums:
    """Findings on all drawn disks together."""

    states: list[bool] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    tails: list[float] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)
    mixed: list[tuple[float, float, float]] = field(default_factory=list)
    """Errors on reads beside writes that were not fitted: mean, 99th percentile, rate of writes."""
    order: Order = field(default_factory=Order)
    disks: int = 0
    wrong_kinds: int = 0

    def add(self, found: DiskCalibration, inside: dict[str, bool], order: Order, kind: str) -> None:
        """Adds a disk, with the figures that `within` has checked and the schedulers' order."""
        self.states += [inside[key] for key in inside if key not in WORDS]
        self.errors += [load.rate_error for load in found.loads if not load.fitted]
        self.tails += [load.tail_error for load in found.loads if not load.fitted]
        self.ratios.append(ratio_of(found))
        self.mixed += [load.errors for load in found.mixed_loads if not load.fitted]
        self.order.decided += order.decided
        self.order.right += order.right
        self.disks += 1
        self.wrong_kinds += found.kind != kind_to_find(kind)

    def line(self, kind: str) -> dict[str, float | int | str | None]:
        """The sums for people and programs."""
        return {
            "kind": kind,
            "disks": self.disks,
            "within_intervals": round(sum(self.states) / len(self.states), 4) if self.states else None,
            "figures": len(self.states),
            "rate_error_median": round(median(self.errors), 4),
            "rate_error_95": round(percentile(sorted(self.errors), 0.95), 4),
            "p99_error_median": round(median(self.tails), 4),
            "p99_error_95": round(percentile(sorted(self.tails), 0.95), 4),
            "nearest_ratio_median": round(median(self.ratios), 1),
            "nearest_ratio_least": round(min(self.ratios), 1),
            "pairs_decided": self.order.decided,
            "pairs_right": self.order.right,
            "wrong_kinds": self.wrong_kinds,
            **{
                f"mixed_{name}_errors": [round(median(part), 4), round(percentile(sorted(part), 0.95), 4)]
                for name, part in zip(("mean", "p99", "write"), zip(*self.mixed, strict=True), strict=False)
            },
        }


def ratio_of(found: DiskCalibration) -> float:
    """The nearest shipped profile's error as a multiple of the profile's own."""
    own = median(load.rate_error for load in found.loads if not load.fitted)
    return found.nearest.rate_error_median / max(1e-4, own)


def outside(
    found: DiskCalibration, truth: Truth, inside: dict[str, bool]
) -> dict[str, list[int | str | None]]:
    """For each figure that misses: the truth, the interval's ends, and the value."""
    figures = {figure.key: figure for figure in [*found.figures, *found.derived]}
    return {
        key: [truth[key], figures[key].low, figures[key].high, figures[key].value]
        for key, state in inside.items()
        if not state
    }


def main() -> int:
    """Prints a line for each disk, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", choices=[*KINDS, ALL], default="virtual")
    parser.add_argument("--disks", type=int, default=12)
    parser.add_argument("--first", type=int, default=0, help="number of the first disk, from 0")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--budget", type=float, default=600.0, metavar="SECONDS")
    parser.add_argument("--order", action="store_true", help="compare the order of schedulers too")
    parser.add_argument("--also", nargs="*", default=[], metavar="DEVICE")
    parser.add_argument("--profiles", type=Path, metavar="FOLDER", help="keep the profiles there")
    arguments = parser.parse_args()
    if arguments.seed is None:
        arguments.seed = SEEDS.get(arguments.kind, 1)
    sums: dict[str, Sums] = {}
    drawn = drawn_disks(arguments.kind, arguments.first + arguments.disks, arguments.seed)
    others: list[tuple[str, str, Truth]] = [(_ALSO, device, {}) for device in arguments.also]
    for number, (kind, device, truth) in enumerate([*drawn, *others]):
        if number < arguments.first:
            continue
        begun = time.monotonic()
        found = calibration_of(f"sim:{device}", arguments.seed, arguments.budget)
        took_s = time.monotonic() - begun
        order = Order()
        with tempfile.TemporaryDirectory() as folder:
            profile = (arguments.profiles or Path(folder)) / f"{arguments.seed}-{number}-{kind}.toml"
            profile.write_text(profile_text(found, name=profile.stem))
            if arguments.order:
                order = order_of(device, str(profile))
        if found.derived and kind == "collecting":
            own = {key: value for key, value in truth.items() if key != USABLE_SPARE}
            truth[OVERWRITE_RATE] = round(steady_overwrite_rate(own, load_machine(DEFAULT_MACHINE)))
        inside = within(found, truth)
        if kind != _ALSO:
            for sort in {kind, arguments.kind}:
                sums.setdefault(sort, Sums()).add(found, inside, order, kind)
        found_figures = {figure.key: (figure.value, figure.low, figure.high) for figure in found.figures}
        line = {
            "device": device,
            "drawn": kind,
            "kind": found.kind,
            "outside": outside(found, truth, inside),
            "figures": len(inside),
            "rate_errors": [round(part, 4) for part in found.errors()],
            "p99_errors": [round(part, 4) for part in found.tail_errors()],
            "front_end": {key: [truth.get(key), *found_figures.get(key, ())] for key in FRONT_END},
            "mixed_errors": found.mixed_errors and found.mixed_errors.model_dump(),
            "nearest": found.nearest.profile,
            "nearest_ratio": round(ratio_of(found), 1),
            "model_error": round(found.model_error, 4),
            "remarks": found.all_remarks,
            "pairs": [order.decided, order.right],
            "took_s": round(took_s, 1),
        }
        print(json.dumps(line), flush=True)  # noqa: T201 - a program's output
    for sort in sorted(sums, key=lambda sort: sort == arguments.kind):
        print(json.dumps(sums[sort].line(sort)))  # noqa: T201 - a program's output
    return 0


if __name__ == "__main__":
    sys.exit(main())
