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

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from drawing import draw
from families import Family, families
from scipy import special
from simulate import FIXED_BLOCKS, Outcome, experiments, folklore

from blklab.cli.output import console_out
from blklab.spec.budget import DEFAULT_BUDGET_BLOCKS
from blklab.spec.experiment import DEFAULT_CONFIDENCE, DEFAULT_MARGIN

ROOT = Path(__file__).resolve().parents[2]
RATIOS = (1 + DEFAULT_MARGIN, 1.05, 1.10)
TWO, FOUR = ("a", "b"), ("a", "b", "c", "d")
LEVEL = 1 - DEFAULT_CONFIDENCE
BEGIN, END = "<!-- figures: make bench-verdicts -->", "<!-- end of figures -->"


@dataclass(frozen=True)
class Rate:
    """A share of experiments; its bounds (Clopper and Pearson, 95 %) are the simulation's own error."""

    hits: int
    count: int

    @property
    def value(self) -> float:
        """The share."""
        return self.hits / self.count

    @property
    def bounds(self) -> tuple[float, float]:
        """Interval of the true share."""
        low = (
            0.0 if self.hits == 0 else float(special.betaincinv(self.hits, self.count - self.hits + 1, 0.025))
        )
        missed = self.count - self.hits
        high = 1.0 if missed == 0 else float(special.betaincinv(self.hits + 1, missed, 0.975))
        return low, high

    def __str__(self) -> str:
        low, high = self.bounds
        return f"{100 * self.value:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def rate(hits: Sequence[bool]) -> Rate:
    """The share of true outcomes."""
    return Rate(sum(hits), len(hits))


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
    lines = [
        "Two schedulers; shares in percent, with the 95 % interval of the simulation itself:",
        "",
        _row(
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
        _row(*["---"] * 9),
    ]
    for one in measured:
        median, ninetieth, most = one.blocks
        cells = (
            str(one.false_settled),
            str(one.false_fixed),
            f"{100 * one.equal_settled.value:.1f} / {100 * one.equal_fixed.value:.1f}",
            _percents(one.power_settled),
            _percents(one.power_fixed),
            f"{median:g} / {ninetieth:.0f} / {most}",
            f"{100 * one.coverage_settled.value:.1f}",
            f"{100 * one.coverage_fixed.value:.1f}",
        )
        lines.append(_row(one.name, *cells))
    lines += ["", "Four schedulers (six pairs), settled; the first is 10 % better than the rest:", ""]
    lines += [_row("Noise", "Any wrong claim among equals", "Found at 10 %", "Runs, of a fixed design's")]
    lines += [_row(*["---"] * 4)]
    lines += [
        _row(one.name, str(one.four_false), f"{100 * one.four_power:.0f}", f"{100 * one.four_runs:.0f}")
        for one in measured
    ]
    lines += ["", "Two schedulers, three runs each in fixed order, the highest mean wins:", ""]
    lines += [_row("Noise", "Names a winner of equals", "Names the worse one at 5 %", "blklab names it")]
    lines += [_row(*["---"] * 4)]
    for one in measured:
        shares = (f"{100 * one.folklore_claims:.0f}", f"{100 * one.folklore_wrong:.0f}")
        lines.append(_row(one.name, *shares, f"{100 * one.wrong_settled:.1f}"))
    return lines


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _percents(powers: dict[float, float]) -> str:
    return " / ".join(f"{100 * power:.0f}" for power in powers.values())


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


def main() -> int:
    """Measures, prints, and with ``--write`` writes the page."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument(
        "--experiments", type=int, default=1000, help="of equal schedulers a kind of noise"
    )
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--jobs", type=int, default=1, help="processes")
    arguments.add_argument("--write", action="store_true", help="refresh the appendix page and its plot")
    given = arguments.parse_args()
    tasks = [(index, given.experiments, given.seed) for index in range(len(families()))]
    measured: list[Figures] = []
    console = console_out()
    with ProcessPoolExecutor(given.jobs) as pool:
        for one in pool.map(_measure, tasks):
            measured.append(one)
            console.print(
                f"{one.name:28s} false winners {one.false_settled!s:18s} blocks at 10 % {one.blocks[0]:g}",
                markup=False,
                soft_wrap=True,
            )
    lines = table(measured)
    for line in ["", *lines]:
        console.print(line, markup=False, soft_wrap=True)
    if given.write:
        _write(lines, measured, given.experiments)
    found = complaints(measured)
    for complaint in found:
        console.print(f"NOT AS PROMISED: {complaint}", markup=False, soft_wrap=True)
    return 1 if found else 0


def _write(lines: list[str], measured: Sequence[Figures], count: int) -> None:
    page = ROOT / "docs" / "appendix" / "verdicts.md"
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    fewer = max(50, count // 4)
    note = f"{count} experiments of equal schedulers for each kind of noise, {fewer} for each difference."
    kinds = ["", "| Noise | Meaning |", "|---|---|", *(f"| {one.name} | {one.meaning} |" for one in measured)]
    content = "\n".join([BEGIN, "", note, *kinds, "", *lines, "", END])
    page.write_text(before + content + after, encoding="utf-8")
    image = ROOT / "docs" / "appendix" / "images" / "verdicts.svg"
    rows = [
        (one.name, one.folklore_claims, one.false_settled.value, one.folklore_wrong, one.wrong_settled)
        for one in measured
    ]
    image.write_text(draw(rows), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
