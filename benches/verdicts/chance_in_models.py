"""Measures how often intervals of models hold the mean over all arrangements.

    python benches/verdicts/chance_in_models.py [--experiments 200] [--blocks 10] [--truth 1000] [--write]

Runs whole experiments with a fixed number of blocks on modelled disks, each with a seed of its own, and
compares the ratio of every pair of schedulers with that of one long experiment with another seed, in the
metric that decides the workload. Exits with 1 if fewer than 93 or more than 97 of 100 intervals hold the long
experiment's ratio. ``--write`` puts the table into docs/appendix/verdicts.md.

Pairs that are exactly equal in all blocks of the long experiment are left out: chance decides nothing there.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import log

from loads import named_load
from page import write_table
from pool import add_pool_options, pool_of
from rates import Rate, rate

from blklab.analysis.comparison import Comparison
from blklab.analysis.verdict import analyse
from blklab.backends import sim
from blklab.backends.protocol import SessionOptions
from blklab.cli.output import console_out
from blklab.linux.machine.description import describe_machine
from blklab.records.experiment import ExperimentRecord
from blklab.report.pages.markdown import markdown_table
from blklab.spec.plan import Plan
from blklab.spec.request import SpecValues, build_specs
from blklab.spec.targets import parse_target

DEVICES = ("hdd-7200", "emmc", "virtio-network")
WORKLOADS = ("many-readers", "reader-beside-writers", "random-write-4k-qd32", "backup-beside-database")
SCHEDULERS = ("mq-deadline", "bfq", "cfq")
TRUE_SEED = 1_000_000
EXACT = 1e-9
HEADINGS = ("Device", "Workload", "Pair", "Ratio", "Median width", "Intervals that hold it")


@dataclass(frozen=True)
class PairRate:
    """How often intervals of one pair hold its true ratio."""

    device: str
    workload: str
    pair: tuple[str, str]
    true_ratio: float
    median_width: float
    """Of the intervals, as a fraction."""
    holds: Rate


def main() -> int:
    """Measures all devices and workloads; returns 1 if the share of all intervals is not as stated."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--experiments", type=int, default=200)
    arguments.add_argument("--blocks", type=int, default=10, help="of each experiment")
    arguments.add_argument("--truth", type=int, default=1000, help="blocks of the long experiment")
    add_pool_options(arguments)
    arguments.add_argument("--write", action="store_true", help="refresh the appendix page")
    given = arguments.parse_args()
    cells = [(device, workload) for device in DEVICES for workload in WORKLOADS]
    console = console_out()
    measured: list[PairRate] = []
    with pool_of(given) as pool:
        for pairs in pool.map(partial(_measure, given=given), cells):
            measured += pairs
            for one in pairs:
                console.print(" ".join(_row(one)), highlight=False, soft_wrap=True)
    every = Rate(sum(one.holds.hits for one in measured), sum(one.holds.count for one in measured))
    summary = f"{every} % of {every.count} intervals hold the mean over all arrangements."
    console.print(summary, highlight=False, markup=False)
    if given.write:
        write_table("chance", [summary, "", markdown_table(HEADINGS, [_row(one) for one in measured])])
    return 0 if 0.93 <= every.value <= 0.97 else 1


def _measure(cell: tuple[str, str], given: argparse.Namespace) -> list[PairRate]:
    truth = {_names(pair): pair.ratio for pair in _experiment(cell, given.truth, TRUE_SEED)}
    found = [_experiment(cell, given.blocks, seed) for seed in range(1, given.experiments + 1)]
    return list(_rates(cell, truth, found))


def _rates(
    cell: tuple[str, str], truth: dict[tuple[str, str], float], found: Sequence[Sequence[Comparison]]
) -> Iterator[PairRate]:
    for names, ratio in truth.items():
        if abs(log(ratio)) < EXACT:
            continue
        intervals = [
            (pair.ci_low, pair.ci_high)
            for pairs in found
            for pair in pairs
            if _names(pair) == names and pair.ci_low is not None and pair.ci_high is not None
        ]
        widths = sorted(high / low - 1 for low, high in intervals)
        yield PairRate(
            device=cell[0],
            workload=cell[1],
            pair=names,
            true_ratio=ratio,
            median_width=widths[len(widths) // 2],
            holds=rate([low - EXACT <= ratio <= high + EXACT for low, high in intervals]),
        )


def _experiment(cell: tuple[str, str], blocks: int, seed: int) -> list[Comparison]:
    """The comparisons of one experiment, in the metric that decides."""
    device, name = cell
    target = f"sim:{device}"
    values = SpecValues(
        targets=[target],
        schedulers=[",".join(SCHEDULERS)],
        blocks=blocks,
        seed=seed,
    )
    spec = build_specs(values)[0].model_copy(update={"workloads": [named_load(name)]})
    options = SessionOptions(run_id="chance", **spec.conditions())
    with sim.BACKEND.open(parse_target(target), options) as session:
        session.check(spec.schedulers, spec.workloads)
        record = ExperimentRecord(
            run_id="chance",
            created_at="",
            state="complete",
            blklab_version="",
            spec=spec,
            target=session.target,
            machine=describe_machine(),
            samples=[session.run(one) for block in Plan(spec).blocks() for one in block],
        )
    analysis = analyse(record)
    decided = analysis.deciding(name)
    return [pair for pair in analysis.comparisons if decided and pair.metric == decided.metric]


def _names(pair: Comparison) -> tuple[str, str]:
    return pair.first, pair.second


def _row(one: PairRate) -> tuple[str, ...]:
    return (
        one.device,
        one.workload,
        f"{one.pair[0]} : {one.pair[1]}",
        f"{one.true_ratio:.4f}",
        f"{100 * one.median_width:.2f} %",
        str(one.holds),
    )


if __name__ == "__main__":
    sys.exit(main())
