#!/usr/bin/env python3
"""Writes devices/atlas from results of io.cost's benchmark on real drives.

    scripts/write-atlas.py --data /path/to/iocost-benchmarks

``BLKLAB_DRIVE_DATA`` names the folder above it. It holds ``coefficients.csv``, ``solutions.csv`` and
``vrate-curves.csv``: tables of the results that people sent to
github.com/iocost-benchmark/iocost-benchmarks (Apache-2.0). Figures are taken from them, no file is copied. A
drive's figures are the medians of its results.
`blklab.spec.atlas.derivation` says what follows from them.
"""

from __future__ import annotations

import argparse
import csv
import os
import statistics
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from blklab.quantities.units import format_bytes
from blklab.spec.atlas import file_stem
from blklab.spec.atlas.derivation import MeasuredFigures, is_sata, parameters
from blklab.spec.atlas.solutions import COEFFICIENTS, QOS, SOLUTIONS

FOLDER = Path(__file__).resolve().parents[1] / "devices" / "atlas"
VARIABLE = "BLKLAB_DRIVE_DATA"
SOURCE = "github.com/iocost-benchmark/iocost-benchmarks (Apache-2.0), read in November 2026"
KNOWN = {
    *("capacity", "link_read_rate", "command", "random_read_command"),
    *("write_command", "random_write_command", "program", "interface"),
}
LEAST_VRATES = 5
"""A curve of fewer vrates says nothing of the least latency."""
Row = dict[str, str]


def main() -> int:
    """Writes the files, or says what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", type=Path, help=f"folder of the tables; else iocost-benchmarks in {VARIABLE}"
    )
    given = parser.parse_args().data
    data = given or Path(os.environ.get(VARIABLE, "")) / "iocost-benchmarks"
    if not (data / "coefficients.csv").is_file():
        sys.stderr.write(f"{data} has no coefficients.csv: give the folder with --data or {VARIABLE}\n")
        return 1
    results = by_model(read_rows(data / "coefficients.csv"))
    solutions, latencies = by_result(data / "solutions.csv"), read_latencies(data / "vrate-curves.csv")
    FOLDER.mkdir(parents=True, exist_ok=True)
    for model, rows in results.items():
        text = profile_text(model, rows, solutions, latencies)
        (FOLDER / f"{file_stem(model)}.toml").write_text(text, "utf-8")
    sys.stdout.write(f"{len(results)} drives in {FOLDER}\n")
    return 0


def read_rows(path: Path) -> list[Row]:
    """The rows of a table."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def by_model(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Results of each drive, by its name."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["model"].strip()].append(row)
    return dict(sorted(found.items()))


def by_result(path: Path) -> dict[str, dict[str, Row]]:
    """Solutions of each result, by their names."""
    found: dict[str, dict[str, Row]] = defaultdict(dict)
    for row in read_rows(path):
        found[row["result"]][row["solution"]] = row
    return found


def read_latencies(path: Path) -> dict[str, float]:
    """The least median latency of reads at any vrate, in seconds, of each result whose vrates were swept."""
    curves: dict[str, list[float]] = defaultdict(list)
    for row in read_rows(path):
        if row["curve"] == "rlat-50-mean":
            curves[row["result"]].append(float(row["value"]))
    return {result: min(points) for result, points in curves.items() if len(points) >= LEAST_VRATES}


def profile_text(
    model: str, rows: Sequence[Row], solutions: dict[str, dict[str, Row]], latencies: dict[str, float]
) -> str:
    """The profile of a drive."""
    coefficients = {name: round(statistics.median(float(row[name]) for row in rows)) for name in COEFFICIENTS}
    known = [latencies[row["result"]] for row in rows if row["result"] in latencies]
    read_ns = round(statistics.median(known) * 1e9) if known else None
    capacity_bytes = max(int(row["bytes"]) for row in rows)
    drive = MeasuredFigures(model, capacity_bytes, coefficients, read_ns)
    kind = "SATA" if is_sata(model) else "NVMe"
    results = "1 result" if len(rows) == 1 else f"{len(rows)} results"
    lines = [
        f"# Written by scripts/write-atlas.py from {SOURCE}.",
        "# blklab.spec.atlas.derivation says how parameters follow from the figures at the end.",
        f'name = "{model}"',
        'kind = "flash"',
        f'summary = "{kind} SSD, {format_bytes(capacity_bytes)}, by {results} of io.cost\'s benchmark"',
    ]
    values = parameters(drive)
    for heading, wanted in (("Known", True), ("Assumed", False)):
        lines += ["", f"# {heading}."]
        for name, value in values.items():
            if (name in KNOWN) is wanted and not (name == "interface" and read_ns is None and wanted):
                lines.append(f'{name} = "{value}"' if isinstance(value, str) else f"{name} = {value}")
    if read_ns is None:
        lines += [
            "# One read at a time takes 80 us: no vrates were swept.",
            f"interface = {values['interface']}",
        ]
    lines += ["", "[calibration]", f'model = "{model}"', f'source = "{SOURCE}"', f"results = {len(rows)}"]
    if read_ns is not None:
        lines.append(f"read_ns = {read_ns}")
    lines += [
        "",
        "[calibration.coefficients]",
        *(f"{name} = {value}" for name, value in coefficients.items()),
    ]
    if len(rows) > 1:
        lines += ["", "# The largest of the results over the smallest.", "[calibration.spread]"]
        lines += [f"{name} = {spread(rows, name):.2f}" for name in COEFFICIENTS]
    for name in SOLUTIONS:
        found = [solutions[row["result"]][name] for row in rows if name in solutions.get(row["result"], {})]
        if found:
            lines += ["", f"[calibration.solutions.{name}]", *solution_lines(found)]
    return "\n".join([*lines, ""])


def spread(rows: Sequence[Row], name: str) -> float:
    """The largest value over the smallest."""
    values = [float(row[name]) for row in rows]
    return max(values) / min(values)


def solution_lines(rows: Sequence[Row]) -> list[str]:
    """A solution: medians of the results that have it."""
    columns = {"scale": "scale_factor"} | {name: f"qos_{name}" for name in QOS}
    return [
        f"{name} = {number(statistics.median(float(row[column]) for row in rows))}"
        for name, column in columns.items()
    ]


def number(value: float) -> str:
    """A number with four decimals at most."""
    return f"{value:.4f}".rstrip("0").rstrip(".")


if __name__ == "__main__":
    sys.exit(main())
