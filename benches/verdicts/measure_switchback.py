"""Measures how often the verdicts of switchbacks are wrong, on simulated slots with known truth.

    python benches/verdicts/measure_switchback.py [--experiments 400] [--jobs 1] [--write]

Each experiment has a minute of load in slots of 0.1 s, with a look after every stretch of eight seconds.
Prints, for every kind of noise: how often a winner is named although there is none, or equality although the
difference is the margin; how often the intervals and the bounds of regret hold; how often a difference of 3,
5 and 10 % is found, with how much load, and how often runs of three seconds would have found it in the same
time. The same seed gives the same results. `--write` puts them into docs/appendix/verdicts.md. Exits with 1
if a stated error rate is certainly exceeded.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from page import write_table
from rates import LEVEL, Measurement, Rate, noise_table, percents, rate
from slot_families import SlotFamily, slot_families
from slots import SLOT_S, SLOTS, runs, switchbacks

from blklab.report.pages.markdown import markdown_table
from blklab.spec.experiment import DEFAULT_CONFIDENCE, DEFAULT_MARGIN

RATIOS = (1.03, 1.05, 1.10)
TWO, FOUR = ("a", "b"), ("a", "b", "c", "d")


@dataclass(frozen=True)
class SlotFigures:
    """The results for one kind of noise."""

    name: str
    meaning: str
    alike: bool
    false: Rate
    false_of_four: Rate
    """Any wrong claim among the six pairs of four equal schedulers."""
    rejected: Rate
    """Share that finds the ratio to differ from the true one, whatever its size."""
    equal: Rate
    """Share that calls two schedulers equal when the true difference is exactly the margin."""
    coverage: Rate
    bounded: Rate
    power: dict[float, float]
    power_of_runs: dict[float, float]
    load_s: dict[float, float]
    """Median load until the end of the experiment."""


def measure(family: SlotFamily, count: int, seed: int) -> SlotFigures:
    """Simulates a kind of noise."""
    fewer = max(20, count // 4)
    equal = list(switchbacks(family, TWO, 1.0, count, seed))
    at_margin = list(switchbacks(family, TWO, 1 + DEFAULT_MARGIN, max(20, count // 2), seed))
    four = list(switchbacks(family, FOUR, 1.0, fewer, seed))
    better = {ratio: list(switchbacks(family, TWO, ratio, fewer, seed)) for ratio in RATIOS}
    every = [*equal, *at_margin, *(one for several in better.values() for one in several)]
    return SlotFigures(
        name=family.name,
        meaning=family.meaning,
        alike=family.alike,
        false=rate([one.status == "best" for one in equal]),
        false_of_four=rate([one.false_claims > 0 for one in four]),
        rejected=rate([one.rejected for one in every]),
        equal=rate([one.status == "equal" for one in at_margin]),
        coverage=rate([hit for one in [*every, *four] for hit in one.covered]),
        bounded=rate([one.bounded for one in [*every, *four]]),
        power={ratio: rate([one.names("a") for one in several]).value for ratio, several in better.items()},
        power_of_runs={ratio: rate(list(runs(family, ratio, fewer, seed))).value for ratio in RATIOS},
        load_s={
            ratio: SLOT_S * float(np.median([one.slots for one in several]))
            for ratio, several in better.items()
        },
    )


def table(measured: Sequence[SlotFigures]) -> list[str]:
    """The results as Markdown tables."""
    return [
        "Shares in percent, with the 95 % interval of the simulation itself:",
        "",
        markdown_table(
            (
                "Noise",
                "False winners",
                "Any wrong claim, four equals",
                "True ratio rejected",
                f"Called equal at {100 * DEFAULT_MARGIN:g} %",
                "Intervals hold",
                "Bounds of regret hold",
            ),
            [
                (
                    one.name,
                    *map(str, (one.false, one.false_of_four, one.rejected, one.equal)),
                    f"{100 * one.coverage.value:.1f}",
                    f"{100 * one.bounded.value:.1f}",
                )
                for one in measured
            ],
        ),
        "",
        "Two schedulers, the first of them better:",
        "",
        markdown_table(
            (
                "Noise",
                "Found at 3 / 5 / 10 %",
                "Load needed, s (median)",
                f"Found by runs of three seconds in the same {SLOTS * SLOT_S:g} s",
            ),
            [
                (
                    one.name,
                    percents(one.power),
                    " / ".join(f"{load_s:.0f}" for load_s in one.load_s.values()),
                    percents(one.power_of_runs),
                )
                for one in measured
            ],
        ),
    ]


def complaints(measured: Sequence[SlotFigures]) -> list[str]:
    """Stated error rates that are exceeded beyond the error of the simulation."""
    found = []
    for one in measured:
        if not one.alike:
            continue
        shares = [
            ("false winners", one.false),
            ("wrong claims among four", one.false_of_four),
            ("true ratio rejected", one.rejected),
            ("called equal at the margin", one.equal),
        ]
        found += [f"{one.name}: {what} {share} %" for what, share in shares if share.bounds[0] > LEVEL]
        holding = [("intervals hold", one.coverage), ("bounds of regret hold", one.bounded)]
        found += [
            f"{one.name}: {what} in {share} % only"
            for what, share in holding
            if share.bounds[1] < DEFAULT_CONFIDENCE
        ]
    return found


def _measure(task: tuple[int, int, int]) -> SlotFigures:
    index, count, seed = task
    return measure(slot_families()[index], count, seed)


def _write(measured: Sequence[SlotFigures], count: int) -> None:
    note = (
        f"{count} experiments of two equal schedulers for each kind of noise, {max(20, count // 2)} at the "
        f"margin, {max(20, count // 4)} for each difference and of four equals."
    )
    write_table("switchbacks", [note, "", noise_table(measured), "", *table(measured)])


def _line(one: SlotFigures) -> str:
    return f"{one.name:24s} false winners {one.false!s:18s} found {percents(one.power)}"


if __name__ == "__main__":
    program = Measurement(
        __doc__ or "", len(slot_families()), 400, _measure, _line, table, complaints, _write
    )
    sys.exit(program.main())
