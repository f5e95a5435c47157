"""Kinds of noise under which whole experiments are simulated.

Each gives the logarithms of the runs' values in chronological order, without any effect of a scheduler. Run
`t` is the run at position ``t % runs_per_block`` of block ``t // runs_per_block``.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RECORDED = Path(__file__).with_name("noise.csv")
RUN_DEVIATION = 0.02
"""Default standard deviation of the logarithm of a run, at which a fixed design of fifteen blocks finds a
difference of 2 % three times in four."""
STRETCH_BLOCKS = 6
"""Recorded noise is resampled in stretches of this many consecutive blocks from random positions, so that
neighbours stay together (a moving block bootstrap; Künsch, 1989)."""


@dataclass(frozen=True)
class Family:
    """A kind of noise."""

    name: str
    meaning: str
    draw: Callable[[np.random.Generator, int, int, int], Floats]
    """(generator, experiments, blocks, runs per block) → logs of shape (experiments, runs)."""


def families() -> list[Family]:
    """All kinds of noise, the recorded ones first."""
    return [*_recorded(), *_made_up()]


def _made_up() -> list[Family]:
    deviation = RUN_DEVIATION

    def normal(generator: np.random.Generator, experiments: int, runs: int) -> Floats:
        return generator.normal(0, deviation, (experiments, runs))

    def independent(generator: np.random.Generator, experiments: int, blocks: int, per_block: int) -> Floats:
        return normal(generator, experiments, blocks * per_block)

    def drift(generator: np.random.Generator, experiments: int, blocks: int, per_block: int) -> Floats:
        runs = blocks * per_block
        return normal(generator, experiments, runs) + np.linspace(0, np.log(0.7), runs)

    def jumps(generator: np.random.Generator, experiments: int, blocks: int, per_block: int) -> Floats:
        runs = blocks * per_block
        changes = generator.random((experiments, runs)) < 1 / 12
        levels = np.cumsum(changes * generator.normal(0, 0.2, (experiments, runs)), axis=1)
        return normal(generator, experiments, runs) + levels

    def autoregressive(
        generator: np.random.Generator, experiments: int, blocks: int, per_block: int
    ) -> Floats:
        runs, correlation = blocks * per_block, 0.8
        shocks = generator.normal(0, deviation, (experiments, runs))
        series = np.empty_like(shocks)
        series[:, 0] = shocks[:, 0]
        for run in range(1, runs):
            innovation = np.sqrt(1 - correlation**2) * shocks[:, run]
            series[:, run] = correlation * series[:, run - 1] + innovation
        return 2.5 * series

    def student(generator: np.random.Generator, experiments: int, blocks: int, per_block: int) -> Floats:
        return deviation * generator.standard_t(2, (experiments, blocks * per_block))

    def spikes(generator: np.random.Generator, experiments: int, blocks: int, per_block: int) -> Floats:
        runs = blocks * per_block
        hit = generator.random((experiments, runs)) < 0.1
        slowdown = np.exp(generator.normal(-1.5, 1.0, (experiments, runs)))
        return normal(generator, experiments, runs) - hit * slowdown

    def bimodal(generator: np.random.Generator, experiments: int, blocks: int, per_block: int) -> Floats:
        runs = blocks * per_block
        return normal(generator, experiments, runs) + np.log(2) * (
            generator.random((experiments, runs)) < 0.5
        )

    def sticky(generator: np.random.Generator, experiments: int, blocks: int, per_block: int) -> Floats:
        runs = blocks * per_block
        mode = np.empty((experiments, runs), dtype=bool)
        mode[:, 0] = generator.random(experiments) < 0.5
        for run in range(1, runs):
            mode[:, run] = mode[:, run - 1] ^ (generator.random(experiments) < 0.2)
        return normal(generator, experiments, runs) + np.log(2) * mode

    def cold_first(generator: np.random.Generator, experiments: int, blocks: int, per_block: int) -> Floats:
        runs = blocks * per_block
        return normal(generator, experiments, runs) - np.log(5) * (np.arange(runs) % per_block == 0)

    return [
        Family("normal", "independent, normal, 2 % a run", independent),
        Family("drift", "loses 30 % from the first run to the last", drift),
        Family("jumps", "the level jumps by some 20 % every twelve runs or so", jumps),
        Family("AR(1)", "each run resembles the one before (correlation 0.8), 5 %", autoregressive),
        Family("Student t", "two degrees of freedom: no finite variance", student),
        Family("spikes", "a tenth of the runs slower, log-normally, some by half", spikes),
        Family("bimodal", "each run by chance twice as fast (a cache that hits or not)", bimodal),
        Family("sticky modes", "the same, but four runs in five keep the mode of the one before", sticky),
        Family("cold first run", "the first run of each block takes five times as long", cold_first),
    ]


def _recorded() -> list[Family]:
    with RECORDED.open(newline="") as file:
        rows = list(csv.DictReader(file))
    wanted = [
        ("random-read-4k-qd1", "iops"),
        ("random-read-4k-qd32", "iops"),
        ("mixed-70-30", "iops"),
        ("buffered-sequential-read", "throughput"),
        ("random-read-4k-qd32", "latency_p99"),
    ]
    found = []
    for workload, metric in wanted:
        stretches = recorded_blocks(rows, workload, metric)
        blocks = sum(len(stretch) for stretch in stretches)
        meaning = f"recorded: {workload}, {metric}, {blocks} blocks"
        short = f"{workload} {metric}".replace("random-read-4k-", "").replace("-sequential-read", "")
        found.append(Family(short, meaning, _resampling(stretches, 1.0)))
        deviation = pair_deviation(stretches)
        found.append(
            Family(
                f"{short}, quiet",
                f"{meaning}, scaled from {100 * deviation:.0f} % to {200 * RUN_DEVIATION / 2**0.5:.1f} % "
                "between the runs of a block",
                _resampling(stretches, 2**0.5 * RUN_DEVIATION / deviation),
            )
        )
    return found


def recorded_blocks(rows: list[dict[str, str]], workload: str, metric: str) -> list[Floats]:
    """Logarithms of the recorded values: an array (blocks, 2) for each session, in chronological order."""
    sessions: dict[int, dict[int, dict[int, float]]] = {}
    for row in rows:
        if row["workload"] == workload and row[metric] and float(row[metric]) > 0:
            blocks = sessions.setdefault(int(row["session"]), {})
            blocks.setdefault(int(row["block"]), {})[int(row["position"])] = np.log(float(row[metric]))
    return [
        np.array([[runs[0], runs[1]] for _, runs in sorted(blocks.items()) if len(runs) == 2])
        for _, blocks in sorted(sessions.items())
    ]


def pair_deviation(stretches: list[Floats]) -> float:
    """Robust standard deviation of the log ratio of a block's two runs, regardless of their order."""
    ratios = np.concatenate([stretch[:, 0] - stretch[:, 1] for stretch in stretches])
    return float(1.4826 * np.median(np.abs(ratios - np.median(ratios))))


def _resampling(
    stretches: list[Floats], scale: float
) -> Callable[[np.random.Generator, int, int, int], Floats]:
    usable = [stretch for stretch in stretches if len(stretch) >= STRETCH_BLOCKS]
    windows = [
        (stretch - stretch.mean())[start : start + STRETCH_BLOCKS].ravel() * scale
        for stretch in usable
        for start in range(len(stretch) - STRETCH_BLOCKS + 1)
    ]
    table = np.array(windows)

    def draw(generator: np.random.Generator, experiments: int, blocks: int, per_block: int) -> Floats:
        runs = blocks * per_block
        needed = -(-runs // table.shape[1])
        chosen = generator.integers(0, len(table), (experiments, needed))
        return table[chosen].reshape(experiments, -1)[:, :runs]

    return draw
