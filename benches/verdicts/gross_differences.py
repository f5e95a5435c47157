"""Measures when switchbacks settle gross differences, and how often they tell equals apart.

    python benches/verdicts/gross_differences.py [--experiments 700] [--seed 1]

A round has one slot of each scheduler, in random order, and every round is looked at. Equals: two
schedulers, 40 rounds, three kinds of noise. Gross: one scheduler at 1/6.3 of the others' speed, slots that
scatter by 40 %; one question (two schedulers) and six (four). Prints the share of false winners, and the
median number of rounds until the difference is settled. The same seed gives the same results. Exits with 1
if false winners are certainly more frequent than the level.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from rates import LEVEL, rate
from simulate import METRIC

from blklab.analysis.comparison import compare_all
from blklab.analysis.designs.switchback import SwitchbackDesign
from blklab.analysis.questions import Question

Floats = NDArray[np.float64]
ROUNDS = 40
GROSS = 6.3
SCATTER = 0.4
DESIGN = SwitchbackDesign(confidence=1 - LEVEL, margin=0.02)


def random_walk(generator: np.random.Generator, slots: int) -> Floats:
    """The disk wanders by 5 % from slot to slot."""
    return np.exp(np.cumsum(generator.normal(0, 0.05, slots)))


def jumps(generator: np.random.Generator, slots: int) -> Floats:
    """The level jumps by some 30 % every twenty slots or so."""
    level = np.cumsum(np.where(generator.random(slots) < 1 / 20, generator.normal(0, 0.3, slots), 0.0))
    return np.exp(level + generator.normal(0, 0.02, slots))


def normal(generator: np.random.Generator, slots: int) -> Floats:
    """Independent, 6 % a slot."""
    return np.exp(generator.normal(0, 0.06, slots))


def gross(generator: np.random.Generator, slots: int) -> Floats:
    """Independent, 40 % a slot."""
    return np.exp(generator.normal(0, SCATTER, slots))


def settled_round(
    draw: Callable[[np.random.Generator, int], Floats],
    speeds: Sequence[float],
    generator: np.random.Generator,
    *,
    first_look: int = 2,
) -> int | None:
    """The first round after which the first scheduler differs from another one; None within `ROUNDS`."""
    labels = [f"s{number}" for number in range(len(speeds))]
    noise = draw(generator, ROUNDS * len(speeds))
    values: dict[str, dict[int, float]] = {label: {} for label in labels}
    slot = 0
    for number in range(ROUNDS):
        for arm in generator.permutation(len(speeds)):
            values[labels[arm]][number] = 1e3 * speeds[arm] * float(noise[slot])
            slot += 1
        if number + 1 < first_look:
            continue
        (pairs,) = compare_all([Question("load", METRIC, values)], DESIGN, labels)
        of_first = [pair for pair in pairs if labels[0] in (pair.first, pair.second)]
        if all(pair.outcome in ("better", "worse") for pair in of_first):
            return number + 1
    return None


def say(line: str) -> None:
    """Prints a line at once, since the next one takes a while."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Prints both parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--experiments", type=int, default=700)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    exceeded = False
    for place, draw in enumerate((random_walk, jumps, normal)):
        generator = np.random.default_rng([given.seed, place])
        claims = [settled_round(draw, (1.0, 1.0), generator) is not None for _ in range(given.experiments)]
        found = rate(claims)
        exceeded = exceeded or found.bounds[0] > LEVEL
        say(f"equals, {draw.__name__}: {found} % false winners in {given.experiments}")
    for nr_schedulers in (2, 4):
        generator = np.random.default_rng([given.seed, 100 + nr_schedulers])
        speeds = (1 / GROSS, *(1.0 for _ in range(nr_schedulers - 1)))
        count = max(20, given.experiments // 4)
        rounds = [settled_round(gross, speeds, generator) or ROUNDS for _ in range(count)]
        questions = nr_schedulers * (nr_schedulers - 1) // 2
        say(
            f"gross, {questions} questions: settled after {statistics.median(rounds):.0f} rounds in the "
            f"median of {count} ({min(rounds)} to {max(rounds)})"
        )
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main())
