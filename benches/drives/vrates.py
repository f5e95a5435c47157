"""Compares latencies over the vrate that io.cost's benchmark measured with what the atlas's models predict.

As any user; some minutes of processor time::

    python benches/drives/vrates.py --data iocost-benchmarks [--drive NAME] [--write]

``BLKLAB_DRIVE_DATA`` names the folder above the data. The benchmark ran a service beside a hog of memory;
what either read and wrote is not known. Here a job reads 4 KiB at random, 64 at a time, beside one that
writes 64 KiB in sequence, 32 at a time, as a system that swaps does, with the benchmark's weights of 500 and
50. This load is the same for all drives. ``--write`` fills the tables of docs/appendix/atlas.md.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from blklab.labs.iocost.peak_rates import factors, peak_rates
from blklab.labs.iocost.sweep import (
    HEAVY_WEIGHT,
    PROTECTED_WEIGHT,
    Qos,
    model_words,
    qos_words,
    scaled,
)
from blklab.report.pages.page_files import fill_tables
from blklab.simulator.request import SimulationRequest
from blklab.simulator.simulation import SimulationResult, simulate_many
from blklab.spec.atlas import AtlasDrive, drives, require_drive
from blklab.spec.atlas.derivation import is_sata

PAGE = Path(__file__).resolve().parents[2] / "docs" / "appendix" / "atlas.md"
VARIABLE = "BLKLAB_DRIVE_DATA"
VRATES = (20, 40, 60, 80, 100)
LEAST_POINTS = 10
"""Vrates of a result that tell of a drive."""
NEAR = 5
"""Percent from a vrate to one that was measured."""
RAMP_MS, RUNTIME_MS = 60, 80
_READ = 0
_JOBS = (
    "[global]\ndirect=1\nioengine=libaio\nnorandommap=1\ntime_based\nsize=16g\n"
    f"ramp_time={RAMP_MS}ms\nruntime={RUNTIME_MS}ms\n"
    "[reads]\ncgroup=service\nrw=randread\nbs=4k\niodepth=64\n"
    "[writes]\ncgroup=hog\nrw=write\nbs=64k\niodepth=32\noffset=16g\n"
)
QUANTITIES = {"p50": "rlat-50-mean", "p99": "rlat-99-mean"}
Curve = dict[int, float]
"""Seconds by vrate."""
Curves = dict[str, Curve]


def main() -> int:
    """Simulates, prints, and writes if asked to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help=f"the folder; else iocost-benchmarks in {VARIABLE}")
    parser.add_argument("--drive", help="only this one")
    parser.add_argument("--write", action="store_true", help="fill the tables of docs/appendix/atlas.md")
    arguments = parser.parse_args()
    if arguments.write and arguments.drive:
        parser.error("--write needs all drives")
    data = arguments.data or Path(os.environ.get(VARIABLE, "")) / "iocost-benchmarks"
    if not (data / "vrate-curves.csv").is_file():
        sys.stderr.write(f"{data} has no vrate-curves.csv: give the folder with --data or {VARIABLE}\n")
        return 1
    chosen = [require_drive(arguments.drive)] if arguments.drive else drives()
    real = measured(data)
    model = {drive.model: predicted(drive) for drive in chosen if drive.model in real}
    tables = {"rates": rate_rows(chosen), "vrates": vrate_rows(chosen, real, model)}
    for name, rows in tables.items():
        sys.stdout.write("\n".join([name, *rows, "", ""]))
    if arguments.write:
        fill_tables(PAGE, {name: "\n".join(rows) for name, rows in tables.items()})
    return 0


def measured(data: Path) -> dict[str, Curves]:
    """By drive and quantity: the latency near each vrate, the median of the results that have it."""
    with (data / "coefficients.csv").open(encoding="utf-8", newline="") as file:
        models = {row["result"]: row["model"].strip() for row in csv.DictReader(file)}
    points: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    with (data / "vrate-curves.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["result"] in models and row["curve"] in QUANTITIES.values():
                points[row["result"], row["curve"]].append((float(row["vrate_percent"]), float(row["value"])))
    found: dict[str, dict[str, dict[int, list[float]]]]
    found = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for (result, curve), known in points.items():
        if len(known) < LEAST_POINTS:
            continue
        for vrate in VRATES:
            near = [(abs(at - vrate), value) for at, value in known if abs(at - vrate) <= NEAR]
            if near:
                found[models[result]][curve][vrate].append(min(near)[1])
    return {
        model: {
            name: {vrate: statistics.median(values) for vrate, values in curves[curve].items()}
            for name, curve in QUANTITIES.items()
        }
        for model, curves in found.items()
    }


def predicted(drive: AtlasDrive) -> Curves:
    """The same of the drive's model: latencies from the dispatch of reads to their completion."""
    results = simulate_many([_request(drive, vrate) for vrate in VRATES])
    latencies = {vrate: _read_latencies(result) for vrate, result in zip(VRATES, results, strict=True)}
    return {
        name: {
            vrate: float(np.percentile(found, int(name[1:])))
            for vrate, found in latencies.items()
            if len(found)
        }
        for name in QUANTITIES
    }


def _request(drive: AtlasDrive, vrate: int) -> SimulationRequest:
    qos = Qos(rpct=0, rlat=1000, wpct=0, wlat=1000)
    model = scaled(drive.coefficients, vrate / 100)
    # io.cost does not throttle the root group's own I/Os.
    groups: dict[str, dict[str, str | int]] = {
        "/": {
            "io.cost.qos": f"enable=1 ctrl=user {qos_words(qos)}",
            "io.cost.model": f"ctrl=user model=linear {model_words(model)}",
        },
        "service": {"io.weight": PROTECTED_WEIGHT},
        "hog": {"io.weight": HEAVY_WEIGHT},
    }
    return SimulationRequest(
        drive.model,
        _JOBS,
        scheduler="none",
        parameters={"hz": 250},
        cgroups=groups,
        costs="zero-cpu-time",
        arrangement="fixed",
        timeline=True,
        seed=1,
    )


def _read_latencies(result: SimulationResult) -> np.ndarray:
    """Seconds, of the reads that were dispatched after the ramp."""
    if result.timeline is None:
        raise RuntimeError("the simulation kept no timeline")
    table = result.timeline.columns()
    wanted = (table["operation"] == _READ) & (table["dispatch_ns"] >= RAMP_MS * 1_000_000)
    wanted &= table["complete_ns"] > table["dispatch_ns"]
    return (table["complete_ns"][wanted] - table["dispatch_ns"][wanted]).astype(float) / 1e9


def rate_rows(chosen: Sequence[AtlasDrive]) -> list[str]:
    """Simulated rates over those measured."""
    names = ("rbps", "rseqiops", "rrandiops", "wbps", "wseqiops", "wrandiops")
    lines = [f"| Drive | Results | {' | '.join(names)} |", "|---" * (len(names) + 2) + "|"]
    for drive in chosen:
        found = factors(
            peak_rates(drive.model, queue_depth=32 if is_sata(drive.model) else 1023), drive.coefficients
        )
        cells = " | ".join(f"{found[name]:.2f}" for name in names)
        lines.append(f"| {drive.model} | {drive.results} | {cells} |")
    return lines


def vrate_rows(
    chosen: Iterable[AtlasDrive], real: Mapping[str, Curves], model: Mapping[str, Curves]
) -> list[str]:
    """A row for each drive: latencies at a vrate of 40 and 100 %, errors over all vrates, and the knees."""
    titles = (
        "Drive",
        "p50 at 40 %, ms",
        "p50 at 100 %, ms",
        "p99 at 40 %, ms",
        "p99 at 100 %, ms",
        "p50 off",
        "p99 off",
    )
    lines = [f"| {' | '.join(titles)} | Knee, % | Isolation, % |", "|---" * (len(titles) + 2) + "|"]
    errors: dict[str, list[float]] = defaultdict(list)
    for drive in chosen:
        if drive.model not in model:
            continue
        truth, found = real[drive.model], model[drive.model]
        cells = [_pair(truth[name].get(at), found[name].get(at)) for name in QUANTITIES for at in (40, 100)]
        for name in QUANTITIES:
            off = _times_off(truth[name], found[name])
            errors[name] += off
            cells.append(f"{statistics.median(off):.2f}" if off else "-")
        cells.append(f"{_knee(truth['p99'])} → {_knee(found['p99'])}")
        isolation = next((one for one in drive.solutions if one.name == "isolation"), None)
        cells.append("-" if isolation is None else f"{100 * isolation.scale:.0f}")
        lines.append(f"| {drive.model} | {' | '.join(cells)} |")
    middle = [_summary(errors[name]) for name in QUANTITIES]
    lines.append(f"| all: median, 95th percentile | | | | | {' | '.join(middle)} | | |")
    return lines


def _pair(truth: float | None, found: float | None) -> str:
    if truth is None or found is None:
        return "-"
    return f"{truth * 1e3:.2f} → {found * 1e3:.2f}"


def _times_off(truth: Curve, found: Curve) -> list[float]:
    """By how many times predictions are off, whichever way."""
    logs = [abs(math.log(found[at] / value)) for at, value in truth.items() if at in found]
    return [math.exp(log) for log in logs]


def _knee(curve: Curve) -> int:
    """The vrate with the most rate over latency."""
    return max(curve, key=lambda at: at / curve[at], default=0)


def _summary(factors_off: Sequence[float]) -> str:
    if not factors_off:
        return "-"
    return f"{np.median(factors_off):.2f}, {np.percentile(factors_off, 95):.2f}"


if __name__ == "__main__":
    sys.exit(main())
