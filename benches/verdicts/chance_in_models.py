"""Measures how often intervals of models hold the mean over all arrangements.

    python benches/verdicts/chance_in_models.py [--arrangements 1000] [--experiments 200] [--blocks 10 60]
        [--only DEVICE/WORKLOAD …] [--write]

Runs each load on each modelled disk in many blocks, each with an arrangement of its own, and draws whole
experiments of a few blocks from them. The interval that each experiment gives for the ratio of a pair of
schedulers is compared with the ratio over all the blocks, in the metric that decides the workload. Exits
with 1 if fewer than 93 or more than 97 of 100 intervals hold it with the largest number of blocks.
``--write`` puts the table into docs/appendix/verdicts.md.

Pairs whose ratio varies by less than 0.1 % over all blocks are left out: chance decides nothing there that
matters. For percentiles of latencies it is a bin of their histogram, which is all that they resolve.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median

import numpy as np
from loads import named_load
from page import write_table
from pool import add_pool_options, pool_of
from rates import Rate, rate

from blklab.analysis.comparison import PairwiseComparison, compare_all
from blklab.analysis.designs import Design, design_of
from blklab.analysis.questions import Question, deciding_questions
from blklab.analysis.statistics.series import shared_values
from blklab.analysis.values import values_begun
from blklab.backends import sim
from blklab.backends.protocol import SessionOptions
from blklab.report.pages.markdown import markdown_table
from blklab.report.terminal import console_out
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.machines import DEFAULT_MACHINE, load_machine
from blklab.spec.plan import Plan
from blklab.spec.request import SpecValues, build_specs
from blklab.spec.targets import parse_target

DEVICES = ("hdd-7200", "emmc", "virtio-network")
WORKLOADS = ("many-readers", "reader-beside-writers", "random-write-4k-qd32", "backup-beside-database")
SCHEDULERS = ("mq-deadline", "bfq", "cfq")
SEED = 1_000_000
EXACT = 1e-9
LEAST_VARIATION = 0.001
BIN = 1 / 64
"""Width of a bin of latencies, relative to them (`blklab.records.samples.LatencyHistogram`)."""


@dataclass(frozen=True)
class PairRate:
    """How often intervals of one pair hold its true ratio."""

    device: str
    workload: str
    pair: tuple[str, str]
    true_ratio: float
    median_widths: dict[int, float]
    """Of the intervals, as fractions, by the number of blocks."""
    holds: dict[int, Rate]


def main() -> int:
    """Measures all devices and workloads; returns 1 if the share of all intervals is not as stated."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--arrangements", type=int, default=1000, help="blocks to draw from")
    arguments.add_argument("--experiments", type=int, default=200)
    arguments.add_argument("--blocks", type=int, nargs="+", default=[10, 60], help="of each experiment")
    arguments.add_argument("--only", nargs="+", metavar="DEVICE/WORKLOAD", help="only these cells")
    add_pool_options(arguments)
    arguments.add_argument("--write", action="store_true", help="refresh the appendix page")
    given = arguments.parse_args()
    if given.only and given.write:
        arguments.error("--write needs all cells")
    cells = [
        (device, workload)
        for device in DEVICES
        for workload in WORKLOADS
        if given.only is None or f"{device}/{workload}" in given.only
    ]
    if not cells:
        arguments.error(f"no such cell: {' '.join(given.only)}")
    console = console_out()
    measured: list[PairRate] = []
    with pool_of(given) as pool:
        for pairs in pool.map(partial(_measure, given=given), cells):
            measured += pairs
            for one in pairs:
                console.print(" ".join(_row(one)), highlight=False, soft_wrap=True)
    overall = {
        blocks: Rate(
            sum(one.holds[blocks].hits for one in measured), sum(one.holds[blocks].count for one in measured)
        )
        for blocks in given.blocks
    }
    summary = " ".join(
        f"With {blocks} blocks {every} % of {every.count} intervals hold the mean over all arrangements."
        for blocks, every in overall.items()
    )
    console.print(summary, highlight=False, markup=False)
    if given.write:
        headings = ["Device", "Workload", "Pair", "Ratio"]
        for blocks in given.blocks:
            headings += [f"{blocks} blocks: median width", f"{blocks} blocks: intervals that hold it"]
        write_table("chance", [summary, "", markdown_table(headings, [_row(one) for one in measured])])
    return 0 if 0.93 <= overall[max(given.blocks)].value <= 0.97 else 1


def _measure(cell: tuple[str, str], given: argparse.Namespace) -> list[PairRate]:
    spec = _spec(cell, given.arrangements)
    question = _question(spec)
    generator = np.random.default_rng(SEED)
    found = {
        blocks: [
            _comparisons(spec, _some_blocks(question, generator.permutation(given.arrangements)[:blocks]))
            for _ in range(given.experiments)
        ]
        for blocks in given.blocks
    }
    truth = {
        _names(pair): pair.ratio for pair in _comparisons(spec, question) if _varies(question, *_names(pair))
    }
    return list(_rates(cell, truth, found))


def _rates(
    cell: tuple[str, str],
    truth: dict[tuple[str, str], float],
    found: dict[int, list[list[PairwiseComparison]]],
) -> Iterator[PairRate]:
    for names, ratio in truth.items():
        intervals = {
            blocks: [
                (pair.ci_low, pair.ci_high)
                for pairs in experiments
                for pair in pairs
                if _names(pair) == names and pair.ci_low is not None and pair.ci_high is not None
            ]
            for blocks, experiments in found.items()
        }
        yield PairRate(
            device=cell[0],
            workload=cell[1],
            pair=names,
            true_ratio=ratio,
            median_widths={
                blocks: median(high / low - 1 for low, high in several)
                for blocks, several in intervals.items()
            },
            holds={
                blocks: rate([low - EXACT <= ratio <= high + EXACT for low, high in several])
                for blocks, several in intervals.items()
            },
        )


def _spec(cell: tuple[str, str], blocks: int) -> ExperimentSpec:
    device, name = cell
    values = SpecValues(
        targets=[f"sim:{device}"], schedulers=[",".join(SCHEDULERS)], blocks=blocks, seed=SEED
    )
    update = {"workloads": [named_load(name)], "machine": load_machine(DEFAULT_MACHINE)}
    return build_specs(values)[0].model_copy(update=update)


def _question(spec: ExperimentSpec) -> Question:
    """Runs all blocks. The question that decides, with its values."""
    values = values_begun(spec, None)
    options = SessionOptions(run_id="chance", **spec.conditions())
    with sim.BACKEND.open(parse_target(spec.target), options) as session:
        session.check(spec.schedulers, spec.workloads)
        for block in Plan(spec).blocks():
            for one in block:
                values.add(session.run(one))
    return deciding_questions(values)[0]


def _varies(question: Question, first: str, second: str) -> bool:
    """Whether the ratio of two schedulers differs from block to block by more than does not matter."""
    one, other = shared_values(question.values[first], question.values[second])
    least = BIN if "latency_p" in question.metric.name else LEAST_VARIATION
    return float(np.ptp(np.log(one) - np.log(other))) > least


def _some_blocks(question: Question, blocks: Sequence[int]) -> Question:
    """The question of an experiment that has only these blocks."""
    values = {
        label: {place: series[block] for place, block in enumerate(blocks) if block in series}
        for label, series in question.values.items()
    }
    return replace(question, values=values)


def _comparisons(spec: ExperimentSpec, question: Question) -> list[PairwiseComparison]:
    design: Design = design_of(spec)
    return compare_all([question], design, [choice.label for choice in spec.schedulers])[0]


def _names(pair: PairwiseComparison) -> tuple[str, str]:
    return pair.first, pair.second


def _row(one: PairRate) -> tuple[str, ...]:
    figures: list[str] = []
    for blocks, holds in one.holds.items():
        figures += [f"{100 * one.median_widths[blocks]:.2f} %", str(holds)]
    return one.device, one.workload, f"{one.pair[0]} : {one.pair[1]}", f"{one.true_ratio:.4f}", *figures


if __name__ == "__main__":
    sys.exit(main())
