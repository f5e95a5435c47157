"""Compares jobs on real drives, alone and beside batch jobs, with the simulator's prediction.

As any user; all cells take some four minutes of processor time::

    python benches/drives/measure.py --data icpe24/cells.csv [--figure N] [--write]

The data are those of "BFQ, Multiqueue-Deadline, or Kyber?" (ICPE 2024), read from the results that the
authors published (github.com/stonet-research/icpe24_io_scheduler_study_artifact). ``BLKLAB_DRIVE_DATA``
names the file too. Figures 1 to 10 are predicted with the drive of before the front end as well.
``--write`` fills the tables of docs/appendix/drives.md.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from alone import BEFORE, FIGURES, Alone, alone_measured, alone_simulated
from alone_tables import alone_cell_rows, alone_error_rows, alone_finding_rows
from cells import LOADS, PROFILE, Cell, fills, measured, simulated
from tables import FINDINGS, cell_rows, error_rows, finding_rows

from blklab.report.pages.page_files import fill_tables

PAGE = Path(__file__).resolve().parents[2] / "docs" / "appendix" / "drives.md"
VARIABLE = "BLKLAB_DRIVE_DATA"
_MOST_JOBS = 32


def main() -> int:
    """Simulates, prints, and writes if asked to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help=f"cells.csv of the study; else {VARIABLE}")
    parser.add_argument("--figure", choices=[*FIGURES, *LOADS], help="only the cells of this figure")
    parser.add_argument("--alone", action="store_true", help="only figures 1 to 10, about a minute")
    parser.add_argument("--scheduler", help="only the cells of this scheduler")
    parser.add_argument("--device", default=PROFILE, help="another drive, such as PROFILE,slots=64")
    parser.add_argument("--part", type=float, default=1.0, help="of the usual simulated time")
    parser.add_argument("--write", action="store_true", help="fill the tables of docs/appendix/drives.md")
    arguments = parser.parse_args()
    if arguments.write and (arguments.figure or arguments.scheduler or arguments.part != 1.0):
        parser.error("--write needs all cells in their usual time")
    data = arguments.data or Path(os.environ.get(VARIABLE, ""))
    if not data.is_file():
        sys.stderr.write(f"the study's cells.csv is not there: give it with --data or {VARIABLE}\n")
        return 1
    tables = ({} if arguments.alone else _beside(data, arguments)) | _alone(data, arguments)
    for name, rows in tables.items():
        if len(rows) > 2:
            sys.stdout.write("\n".join([name, *rows, "", ""]))
    if arguments.write:
        fill_tables(PAGE, {name: "\n".join(rows) for name, rows in tables.items()})
    return 0


def _beside(data: Path, arguments: argparse.Namespace) -> dict[str, list[str]]:
    """Tables of figures 11 and 12."""
    everything = measured(data)
    real = {cell: figures for cell, figures in everything.items() if _is_wanted(cell, arguments)}
    model = simulated(list(real), arguments.device, fill=fills(everything), part=arguments.part)
    tables = {f"figure-{name}": cell_rows(name, real, model) for name in LOADS}
    return tables | {
        "errors": error_rows(real, model),
        "findings": finding_rows(FINDINGS, {"Measured": real, "Predicted": model}),
    }


def _alone(data: Path, arguments: argparse.Namespace) -> dict[str, list[str]]:
    """Tables of figures 1 to 10."""
    real = {cell: figures for cell, figures in alone_measured(data).items() if _is_wanted(cell, arguments)}
    before, now = (alone_simulated(list(real), device) for device in (BEFORE, arguments.device))
    return {
        "alone-cells": alone_cell_rows(real, now),
        "alone-errors": alone_error_rows(real, before, now),
        "alone-findings": alone_finding_rows(real, before, now),
    }


def _is_wanted(cell: Cell | Alone, arguments: argparse.Namespace) -> bool:
    return (
        (isinstance(cell, Alone) or cell.jobs <= _MOST_JOBS)
        and arguments.figure in (None, cell.figure)
        and arguments.scheduler in (None, cell.scheduler)
    )


if __name__ == "__main__":
    sys.exit(main())
