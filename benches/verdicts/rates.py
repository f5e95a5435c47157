"""Shares of simulated experiments, and the program that measures them for every kind of noise."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from pool import add_pool_options, pool_of
from scipy.stats import binomtest

from blklab.report.pages.markdown import markdown_table
from blklab.report.terminal import console_out
from blklab.spec.experiment import DEFAULT_CONFIDENCE

LEVEL = 1 - DEFAULT_CONFIDENCE
FiguresT = TypeVar("FiguresT")


class Kind(Protocol):
    """The figures of a kind of noise."""

    name: str
    meaning: str


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
        found = binomtest(self.hits, self.count).proportion_ci(0.95, method="exact")
        return float(found.low), float(found.high)

    def __str__(self) -> str:
        low, high = self.bounds
        return f"{100 * self.value:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def rate(hits: Sequence[bool]) -> Rate:
    """The share of true outcomes."""
    return Rate(sum(hits), len(hits))


def noise_table(kinds: Sequence[Kind]) -> str:
    """Names and meanings as a Markdown table."""
    return markdown_table(("Noise", "Meaning"), [(kind.name, kind.meaning) for kind in kinds])


def percents(shares: dict[float, float]) -> str:
    """Shares in percent, without what they belong to."""
    return " / ".join(f"{100 * share:.0f}" for share in shares.values())


@dataclass(frozen=True)
class Measurement(Generic[FiguresT]):
    """A program that simulates experiments under every kind of noise."""

    about: str
    """The docstring of its module."""
    kinds: int
    """Kinds of noise."""
    experiments: int
    """Of equal schedulers, unless given."""
    measure: Callable[[tuple[int, int, int]], FiguresT]
    """Takes the kind of noise, the number of experiments and the seed; a function that can be pickled."""
    line: Callable[[FiguresT], str]
    """A kind's figures while the others are measured."""
    table: Callable[[Sequence[FiguresT]], list[str]]
    complaints: Callable[[Sequence[FiguresT]], list[str]]
    write: Callable[[Sequence[FiguresT], int], None]
    """Refreshes the appendix, with figures and the number of experiments."""

    def main(self) -> int:
        """Measures and prints; returns 1 if a stated error rate is certainly exceeded."""
        arguments = argparse.ArgumentParser(description=self.about.splitlines()[0])
        arguments.add_argument(
            "--experiments", type=int, default=self.experiments, help="of equal schedulers a kind of noise"
        )
        arguments.add_argument("--seed", type=int, default=1)
        add_pool_options(arguments)
        arguments.add_argument("--write", action="store_true", help="refresh the appendix page")
        given = arguments.parse_args()
        tasks = [(index, given.experiments, given.seed) for index in range(self.kinds)]
        measured: list[FiguresT] = []
        console = console_out()
        with pool_of(given) as pool:
            for one in pool.map(self.measure, tasks):
                measured.append(one)
                console.print(self.line(one), markup=False, soft_wrap=True)
        for line in ["", *self.table(measured)]:
            console.print(line, markup=False, soft_wrap=True)
        if given.write:
            self.write(measured, given.experiments)
        found = self.complaints(measured)
        for complaint in found:
            console.print(f"NOT AS PROMISED: {complaint}", markup=False, soft_wrap=True)
        return 1 if found else 0
