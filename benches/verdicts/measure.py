"""Measures how often verdicts are wrong, on simulated experiments with known truth.

    python benches/verdicts/measure.py [--experiments 1000] [--jobs 1] [--write]

Prints, for every kind of noise: how often a winner is named although there is none, how often a true
difference of 2, 5 and 10 % is found, how many blocks that takes, and how often intervals hold the truth; for
blocks added until every question is settled, for a fixed design of fifteen blocks, and for the usual
procedure of three runs each in fixed order. The same seed gives the same results. `--write` puts them into
docs/appendix/verdicts.md and draws docs/appendix/images/verdicts.svg. Exits with 1 if a stated error rate is
certainly exceeded.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from drawing import draw
from families import Family, families
from page import ROOT, write_table
from rates import LEVEL, Measurement, Rate, noise_table, percents, rate
from simulate import FIXED_BLOCKS, Outcome, experiments, folklore

from blklab.report.pages.markdown import markdown_table
from blklab.spec.budget import DEFAULT_BUDGET_BLOCKS
from blklab.spec.experiment import DEFAULT_CONFIDENCE, DEFAULT_MARGIN

RATIOS = (1 + DEFAULT_MARGIN, 1.05, 1.10)
TWO, FOUR = ("a", "b"), ("a", "b", "c", "d")


@dataclass(frozen=True)
class Figures:
    """The results for one kind of noise."""

    name: str
    meaning: str
    false_settled: Rate
    false_fixed: Rate
    equal_settled: Rate
    equal_fixed: Rate
    """Share that calls two schedulers equal when the true difference is exactly the margin."""
    power_settled: dict[float, float]
    power_fixed: dict[float, float]
    blocks: tuple[float, float, int]
    """Median, 90th percentile and maximum when the true difference is 10 %."""
    coverage_settled: Rate
    coverage_fixed: Rate
    wrong_settled: float
    """Share that calls the worse one the best when the true difference is 5 %."""
    folklore_claims: float
    """Share that names a winner by more than the margin although there is none."""
    folklore_wrong: float
    four_false: Rate
    """Any wrong claim among the six pairs of four equal schedulers."""
    four_runs: float
    """Median number of runs relative to a fixed design, when one of four is better by 10 %."""
    four_power: float


def measure(family: Family, count: int, seed: int) -> Figures:
    """Simulates a kind of noise."""
    fewer = max(50, count // 4)
    equal = list(experiments(family, TWO, 1.0, count, seed, settled=True))
    equal_fixed = list(experiments(family, TWO, 1.0, count, seed, settled=False))
    settled = {ratio: list(experiments(family, TWO, ratio, fewer, seed, settled=True)) for ratio in RATIOS}
    fixed = {ratio: list(experiments(family, TWO, ratio, fewer, seed, settled=False)) for ratio in RATIOS}
    four_equal = list(experiments(family, FOUR, 1.0, max(50, count // 2), seed, settled=True))
    four = list(experiments(family, FOUR, 1.10, max(50, count // 8), seed, settled=True))
    blocks = [outcome.blocks for outcome in settled[1.10]]
    all_settled = equal + [outcome for several in settled.values() for outcome in several]
    all_fixed = equal_fixed + [outcome for several in fixed.values() for outcome in several]
    return Figures(
        name=family.name,
        meaning=family.meaning,
        false_settled=rate([outcome.status == "best" for outcome in equal]),
        false_fixed=rate([outcome.status == "best" for outcome in equal_fixed]),
        equal_settled=rate([outcome.status == "equal" for outcome in settled[1 + DEFAULT_MARGIN]]),
        equal_fixed=rate([outcome.status == "equal" for outcome in fixed[1 + DEFAULT_MARGIN]]),
        power_settled={ratio: _power(several) for ratio, several in settled.items()},
        power_fixed={ratio: _power(several) for ratio, several in fixed.items()},
        blocks=(float(np.median(blocks)), float(np.percentile(blocks, 90)), max(blocks)),
        coverage_settled=rate([hit for outcome in all_settled for hit in outcome.covered]),
        coverage_fixed=rate([hit for outcome in all_fixed for hit in outcome.covered]),
        wrong_settled=rate([outcome.names("b") for outcome in settled[1.05]]).value,
        folklore_claims=folklore(family, 1.0, count, seed, DEFAULT_MARGIN).claimed,
        folklore_wrong=folklore(family, 1.05, count, seed, DEFAULT_MARGIN).first_wins,
        four_false=rate([outcome.false_claims > 0 for outcome in four_equal]),
        four_runs=float(np.median([outcome.runs for outcome in four])) / (FIXED_BLOCKS * len(FOUR)),
        four_power=_power(four),
    )


def _power(outcomes: Sequence[Outcome]) -> float:
    return rate([outcome.names("a") for outcome in outcomes]).value


def table(measured: Sequence[Figures]) -> list[str]:
    """The results as Markdown tables."""
    return [
        "Two schedulers; shares in percent, with the 95 % interval of the simulation itself:",
        "",
        markdown_table(
            (
                "Noise",
                "False winners, settled",
                f"False winners, {FIXED_BLOCKS} fixed",
                f"Called equal at {100 * DEFAULT_MARGIN:g} %, settled / fixed",
                "Found at 2 / 5 / 10 %, settled",
                f"Found at 2 / 5 / 10 %, {FIXED_BLOCKS} fixed",
                "Blocks at 10 %: median / 90th / most",
                "Intervals hold, settled",
                "Intervals hold, fixed",
            ),
            [_errors(one) for one in measured],
        ),
        "",
        "Four schedulers (six pairs), settled; the first is 10 % better than the rest:",
        "",
        markdown_table(
            ("Noise", "Any wrong claim among equals", "Found at 10 %", "Runs, of a fixed design's"),
            [
                (one.name, str(one.four_false), f"{100 * one.four_power:.0f}", f"{100 * one.four_runs:.0f}")
                for one in measured
            ],
        ),
        "",
        "Two schedulers, three runs each in fixed order, the highest mean wins:",
        "",
        markdown_table(
            ("Noise", "Names a winner of equals", "Names the worse one at 5 %", "blklab names it"),
            [
                (
                    one.name,
                    f"{100 * one.folklore_claims:.0f}",
                    f"{100 * one.folklore_wrong:.0f}",
                    f"{100 * one.wrong_settled:.1f}",
                )
                for one in measured
            ],
        ),
    ]


def _errors(one: Figures) -> tuple[str, ...]:
    median, ninetieth, most = one.blocks
    return (
        one.name,
        str(one.false_settled),
        str(one.false_fixed),
        f"{100 * one.equal_settled.value:.1f} / {100 * one.equal_fixed.value:.1f}",
        percents(one.power_settled),
        percents(one.power_fixed),
        f"{median:g} / {ninetieth:.0f} / {most}",
        f"{100 * one.coverage_settled.value:.1f}",
        f"{100 * one.coverage_fixed.value:.1f}",
    )


def complaints(measured: Sequence[Figures]) -> list[str]:
    """Stated error rates that are exceeded beyond the error of the simulation."""
    found = []
    for one in measured:
        shares = [
            ("false winners, settled", one.false_settled),
            ("false winners, fixed", one.false_fixed),
            ("wrong claims among four, settled", one.four_false),
            ("called equal at the margin, settled", one.equal_settled),
            ("called equal at the margin, fixed", one.equal_fixed),
        ]
        found += [f"{one.name}: {what} {share} %" for what, share in shares if share.bounds[0] > LEVEL]
        if one.coverage_settled.bounds[1] < DEFAULT_CONFIDENCE:
            found.append(f"{one.name}: intervals at stopping hold in {one.coverage_settled} % only")
        if one.blocks[2] > DEFAULT_BUDGET_BLOCKS:
            found.append(f"{one.name}: {one.blocks[2]} blocks, more than {DEFAULT_BUDGET_BLOCKS}")
        if one.name == "normal" and one.blocks[0] > FIXED_BLOCKS / 3:
            found.append(f"{one.name}: a median of {one.blocks[0]:g} blocks at 10 %")
    return found


def _measure(task: tuple[int, int, int]) -> Figures:
    index, count, seed = task
    return measure(families()[index], count, seed)


def _write(measured: Sequence[Figures], count: int) -> None:
    fewer = max(50, count // 4)
    note = f"{count} experiments of equal schedulers for each kind of noise, {fewer} for each difference."
    write_table("runs", [note, "", noise_table(measured), "", *table(measured)])
    image = ROOT / "docs" / "appendix" / "images" / "verdicts.svg"
    rows = [
        (one.name, one.folklore_claims, one.false_settled.value, one.folklore_wrong, one.wrong_settled)
        for one in measured
    ]
    image.write_text(draw(rows), encoding="utf-8")


def _line(one: Figures) -> str:
    return f"{one.name:28s} false winners {one.false_settled!s:18s} blocks at 10 % {one.blocks[0]:g}"


if __name__ == "__main__":
    program = Measurement(__doc__ or "", len(families()), 1000, _measure, _line, table, complaints, _write)
    sys.exit(program.main())
