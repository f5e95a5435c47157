"""Compares published rates by number of jobs and schedulers with the simulator's.

As any user; the simulations take a minute or so::

    python benches/scaling/measure.py [--figure N] [--write]

Prints each cell's published rate, the model's, and their ratio; cells from which the cost table or the
device was derived are marked. ``--write`` fills the tables of docs/appendix/scaling.md and draws a picture.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from cells import SCHEDULERS, Cell, Rates, published_rates, simulated_rates
from drawing import draw
from findings import FINDINGS

from blklab.report.pages.page_files import fill_tables

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "appendix" / "scaling.md"
PICTURE = ROOT / "docs" / "explanation" / "images" / "scaling.svg"
FIGURES = {
    "2": "one job on one processor, by depth",
    "3": "jobs of depth 1 on one processor",
    "5": "jobs of depth 1 on ten processors",
    "7": "jobs of depth 128 on ten processors",
}


def main() -> None:
    """Simulates, prints, and writes if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--figure", choices=FIGURES, help="only the cells of this figure")
    parser.add_argument(
        "--write", action="store_true", help="fill docs/appendix/scaling.md and draw the picture"
    )
    arguments = parser.parse_args()
    if arguments.figure and arguments.write:
        parser.error("--write needs all figures")
    published = {
        cell: rate for cell, rate in published_rates().items() if arguments.figure in (None, cell.figure)
    }
    simulated = simulated_rates(list(published))
    tables = {f"figure-{name}": figure_rows(name, published, simulated) for name in FIGURES}
    if not arguments.figure:
        tables |= {"errors": error_rows(published, simulated), "findings": finding_rows(published, simulated)}
    for name, rows in tables.items():
        if len(rows) > 2:
            sys.stdout.write("\n".join([name, *rows, "", ""]))
    if arguments.write:
        fill_tables(PAGE, {name: "\n".join(rows) for name, rows in tables.items()})
        PICTURE.parent.mkdir(exist_ok=True)
        PICTURE.write_text(draw(published, simulated))


def figure_rows(figure: str, published: Rates, simulated: Rates) -> list[str]:
    """Rates in thousands a second, one row for each number of jobs or depth."""
    cells = [cell for cell in published if cell.figure == figure]
    rows = sorted({(cell.jobs, cell.depth) for cell in cells})
    lines = [f"| {'Depth' if figure == '2' else 'Jobs'} | {' | '.join(SCHEDULERS)} |", "|---" * 5 + "|"]
    for jobs, depth in rows:
        texts = [
            _cell_text(cell, published[cell], simulated[cell])
            for scheduler in SCHEDULERS
            for cell in cells
            if (cell.jobs, cell.depth, cell.scheduler) == (jobs, depth, scheduler)
        ]
        lines.append(f"| {depth if figure == '2' else jobs} | {' | '.join(texts)} |")
    return lines


def _cell_text(cell: Cell, published: float, simulated: float) -> str:
    mark = "\\*" if cell.is_fitted else ""
    return f"{published / 1000:.1f} → {simulated / 1000:.1f} ({simulated / published:.2f}){mark}"


def error_rows(published: Rates, simulated: Rates) -> list[str]:
    """How far the predicted cells are off, by figure."""
    lines = [
        "| Cells | Number | Rate, median | worst | Part of none, median | worst |",
        "|---" * 6 + "|",
    ]
    for figure, what in FIGURES.items():
        cells = [cell for cell in published if cell.figure == figure and not cell.is_fitted]
        rates = [abs(simulated[cell] / published[cell] - 1) for cell in cells]
        parts = [
            abs(_part_of_none(simulated, cell) / _part_of_none(published, cell) - 1)
            for cell in cells
            if cell.scheduler != "none"
        ]
        columns = [_percent(statistics.median(rates)), _percent(max(rates))]
        columns += [_percent(statistics.median(parts)), _percent(max(parts))]
        lines.append(f"| figure {figure}: {what} | {len(cells)} | {' | '.join(columns)} |")
    return lines


def _part_of_none(rates: Rates, cell: Cell) -> float:
    return rates[cell] / rates[Cell(cell.figure, cell.cpus, cell.jobs, cell.depth, "none")]


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def finding_rows(published: Rates, simulated: Rates) -> Sequence[str]:
    """Whether each finding holds in the simulator too."""
    lines = ["| Finding | In the simulator |", "|---|---|"]
    for finding in FINDINGS:
        if not finding.holds(published):
            raise SystemExit(f"not what was published: {finding.text}")
        lines.append(f"| {finding.text} | {'yes' if finding.holds(simulated) else '**no**'} |")
    return lines


if __name__ == "__main__":
    main()
