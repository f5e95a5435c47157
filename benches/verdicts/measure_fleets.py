"""Measures how often the verdict for a class of drives is wrong, on simulated fleets with known truth.

    python benches/verdicts/measure_fleets.py [--experiments 1000] [--jobs 1] [--write]

Prints, for every kind of fleet: how often a winner is named that is none, how often the interval of the mean
holds the true one, and how often the interval for a new drive holds the ratio of a drive drawn afterwards;
beside them how often the usual weighted test rejects the true mean. The same seed gives the same results.
`--write` puts them into docs/appendix/verdicts.md. Exits with 1 if a stated rate is certainly missed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from fleets import fleet_kinds, fleets
from page import write_table
from rates import LEVEL, Measurement, Rate, noise_table, rate

from blklab.report.pages.markdown import markdown_table

COVERAGE_FOR_NEW_DRIVES = (0.93, 0.97)
"""Limits for fleets as they are drawn."""
EXPERIMENTS = 1000


@dataclass(frozen=True)
class FleetFigures:
    """The results for one kind of fleet."""

    name: str
    meaning: str
    false: Rate
    false_of_ties: Rate
    """Among fleets whose first place is truly shared."""
    found: Rate
    """Among the others."""
    mean_held: Rate
    new_held: Rate
    weighted_rejected: Rate


def measure(place: int, count: int, seed: int) -> FleetFigures:
    """Simulates a kind of fleet."""
    kind = fleet_kinds()[place]
    outcomes = list(fleets(kind, count, seed))
    return FleetFigures(
        name=kind.name,
        meaning=kind.meaning,
        false=rate([one.false_winner for one in outcomes]),
        false_of_ties=rate([one.false_winner for one in outcomes if one.tie]),
        found=rate([one.found for one in outcomes if not one.tie]),
        mean_held=rate([hit for one in outcomes for hit in one.mean_held]),
        new_held=rate([hit for one in outcomes for hit in one.new_held]),
        weighted_rejected=rate([hit for one in outcomes for hit in one.weighted_rejected]),
    )


def table(measured: Sequence[FleetFigures]) -> list[str]:
    """The results as a Markdown table."""
    return [
        "Shares in percent, with the 95 % interval of the simulation itself for shares of fleets:",
        "",
        markdown_table(
            (
                "Fleet",
                "False class winners",
                "False class winners where the first place is shared",
                "Found at 3 to 15 %",
                "Intervals of the mean hold",
                "Intervals for a new drive hold",
                "True mean rejected by weights",
            ),
            [
                (
                    one.name,
                    str(one.false),
                    str(one.false_of_ties),
                    f"{100 * one.found.value:.0f}",
                    *(
                        f"{100 * share.value:.1f}"
                        for share in (one.mean_held, one.new_held, one.weighted_rejected)
                    ),
                )
                for one in measured
            ],
        ),
    ]


def complaints(measured: Sequence[FleetFigures]) -> list[str]:
    """Stated rates that are missed beyond the error of the simulation."""
    found = [
        f"{one.name}: false class winners {one.false_of_ties} %"
        for one in measured
        if one.false_of_ties.bounds[0] > LEVEL
    ]
    low, high = COVERAGE_FOR_NEW_DRIVES
    drawn = measured[0]
    if not low <= drawn.new_held.value <= high:
        found.append(f"{drawn.name}: intervals for a new drive hold in {drawn.new_held} %")
    return found


def _measure(task: tuple[int, int, int]) -> FleetFigures:
    return measure(*task)


def _write(measured: Sequence[FleetFigures], count: int) -> None:
    note = f"{count} fleets of each kind."
    kinds = noise_table(measured).replace("| Noise |", "| Fleet |", 1)
    write_table("fleets", [note, "", kinds, "", *table(measured)])


def _line(one: FleetFigures) -> str:
    return f"{one.name:14s} false {one.false!s:16s} found {100 * one.found.value:3.0f} new {one.new_held}"


if __name__ == "__main__":
    program = Measurement(
        __doc__ or "", len(fleet_kinds()), EXPERIMENTS, _measure, _line, table, complaints, _write
    )
    sys.exit(program.main())
