"""What a sweep found: main effects of tunables and interactions of two, with intervals.

A sweep is a full factorial within blocks, so an effect is a contrast of the logarithms of a block's figures,
one number for each block, and everything known of differences within blocks applies to it:

* main effect of a level: the mean over all combinations of the other tunables of log(level / default);
* interaction of two levels of two tunables: how much larger the effect of the one is where the other one has
  its level than where it has its default, averaged over the rest. A ratio of ratios: 1 means that the
  effects just multiply.

Both are ratios again after transforming back. All effects of a sweep, over all workloads that are not
controls, are one family for Holm's correction. Interactions of three tunables and more are not stated: the
number of questions would grow faster than what the data can answer. (Box, Hunter, Hunter: *Statistics for
Experimenters*, second edition, 2005, chapter 5.)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from blklab.analysis.comparison import (
    JudgedRatio,
    Series,
    difference_within_blocks,
    judged_ratio,
    metric_values,
)
from blklab.analysis.goal_scores import judged_workloads
from blklab.analysis.metrics import Metric, metric_named
from blklab.analysis.statistics.multiplicity import holm
from blklab.records.experiment import ExperimentRecord
from blklab.spec.sweeps import Sweep

Combination = tuple[str | None, ...]


@dataclass(frozen=True, kw_only=True)
class Effect(JudgedRatio):
    """One effect of a sweep under a workload and metric.

    For an interaction ``better`` means: better together than each effect alone would make it.
    """

    sweep: str
    kind: Literal["main", "interaction"]
    levels: dict[str, str]
    """By tunable: one level for a main effect, two for an interaction; each against the default."""

    @property
    def name(self) -> str:
        """``slice_idle=0``, or ``slice_idle=0 with low_latency=0``."""
        return " with ".join(f"{tunable}={level}" for tunable, level in self.levels.items())


@dataclass(frozen=True)
class SweepFindings:
    """All that is known of one sweep."""

    sweep: Sweep
    effects: list[Effect]
    notes: list[str]


@dataclass(frozen=True)
class _Contrast:
    kind: Literal["main", "interaction"]
    workload: str
    metric: Metric
    levels: dict[str, str]
    logs: list[float]


def sweep_findings(record: ExperimentRecord) -> list[SweepFindings]:
    """Effects of every sweep of an experiment."""
    return [_findings(record, sweep) for sweep in record.spec.sweeps]


def _findings(record: ExperimentRecord, sweep: Sweep) -> SweepFindings:
    cells = {combination: choice.label for combination, choice in sweep.cells().items()}
    contrasts: list[_Contrast] = []
    notes = []
    for workload in judged_workloads(record):
        metric = metric_named(workload.decide_by)
        figures = _complete_blocks(metric_values(record.samples, workload, metric), cells)
        if not figures:
            notes.append(f"{workload.name}: no block has a figure for every combination")
            continue
        contrasts += _contrasts(sweep, workload.name, metric, figures)
    family = max(1, len(contrasts))
    differences = [
        difference_within_blocks(
            [math.exp(value) for value in contrast.logs], [1.0] * len(contrast.logs), record.spec, family
        )
        for contrast in contrasts
    ]
    different = holm([difference.p_difference for difference in differences])
    equivalent = holm([difference.p_equivalence for difference in differences])
    effects = []
    for contrast, difference, *p_values in zip(contrasts, differences, different, equivalent, strict=True):
        judged = judged_ratio(
            contrast.workload, contrast.metric, difference, (p_values[0], p_values[1]), record.spec, family
        )
        effects.append(
            Effect(**vars(judged), sweep=sweep.canonical, kind=contrast.kind, levels=contrast.levels)
        )
    for tunable in sweep.levels:
        default = sweep.defaults.get(tunable)
        if default is not None:
            notes.append(f"{tunable} is {default} by default")
    if len(sweep.levels) > 2:
        notes.append("interactions of more than two tunables are not stated")
    return SweepFindings(sweep, effects, notes)


def _complete_blocks(values: Series, cells: Mapping[Combination, str]) -> list[dict[Combination, float]]:
    """Logarithms of the figures of every block that has all cells."""
    series = {combination: values.get(label, {}) for combination, label in cells.items()}
    blocks = set.intersection(*(set(each) for each in series.values()))
    return [
        {combination: math.log(each[block]) for combination, each in series.items()}
        for block in sorted(blocks)
        if all(each[block] > 0 for each in series.values())
    ]


def _contrasts(
    sweep: Sweep, workload: str, metric: Metric, blocks: Sequence[Mapping[Combination, float]]
) -> list[_Contrast]:
    tunables = list(sweep.levels)
    found = []
    for index, tunable in enumerate(tunables):
        for value in sweep.values(tunable)[1:]:
            logs = [_mean(block, {index: value}) - _mean(block, {index: None}) for block in blocks]
            found.append(_Contrast("main", workload, metric, {tunable: value or ""}, logs))
    for (one, first), (two, second) in itertools.combinations(enumerate(tunables), 2):
        for a, b in itertools.product(sweep.values(first)[1:], sweep.values(second)[1:]):
            logs = [
                (_mean(block, {one: a, two: b}) - _mean(block, {one: None, two: b}))
                - (_mean(block, {one: a, two: None}) - _mean(block, {one: None, two: None}))
                for block in blocks
            ]
            levels = {first: a or "", second: b or ""}
            found.append(_Contrast("interaction", workload, metric, levels, logs))
    return found


def _mean(block: Mapping[Combination, float], fixed: Mapping[int, str | None]) -> float:
    """Mean over all combinations with some tunables at fixed levels."""
    chosen = [
        value
        for combination, value in block.items()
        if all(combination[index] == level for index, level in fixed.items())
    ]
    return sum(chosen) / len(chosen)
