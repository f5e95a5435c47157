"""The effects of a sweep: main effects of tunables and interactions of two, with intervals.

A sweep is a full factorial within blocks. An effect is a contrast of the logarithms of a block's values, one
number per block, so everything known of differences within blocks applies to it:

* main effect of a level: the mean over all combinations of the other tunables of log(level / default);
* interaction of two levels of two tunables: how much larger the effect of the one is where the other one has
  its level than where it has its default, averaged over the rest. A ratio of ratios: 1 means that the
  effects just multiply.

Both are ratios again after transforming back. All effects of a sweep, over all workloads that are not
controls, are one family for Holm's correction. Interactions of three or more tunables are left out: the
number of questions would grow faster than the data could answer. (Box, Hunter, Hunter: *Statistics for
Experimenters*, second edition, 2005, chapter 5.)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from blklab.analysis.designs import Design
from blklab.analysis.metrics import Metric, metric_named
from blklab.analysis.ratios import Contrast, RatioEstimate, estimate_family
from blklab.analysis.statistics.series import Series
from blklab.analysis.values import ExperimentValues
from blklab.spec.sweeps import TunableSweep

Combination = tuple[str | None, ...]


@dataclass(frozen=True, kw_only=True)
class Effect(RatioEstimate):
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
class NoCompleteBlock:
    """Under a workload no block has a figure for every combination."""

    workload: str


@dataclass(frozen=True)
class DefaultLevel:
    """The level of a tunable that its effects are measured against."""

    tunable: str
    level: str


@dataclass(frozen=True)
class PairsOnly:
    """Interactions of more than two tunables are left out."""


SweepNote = NoCompleteBlock | DefaultLevel | PairsOnly


@dataclass(frozen=True)
class SweepFindings:
    """All that is known of one sweep."""

    sweep: TunableSweep
    effects: list[Effect]
    notes: list[SweepNote]


@dataclass(frozen=True)
class _EffectValues:
    """An effect in each block."""

    kind: Literal["main", "interaction"]
    workload: str
    metric: Metric
    levels: dict[str, str]
    logs: list[float]


def sweep_findings(sweep: TunableSweep, values: ExperimentValues, design: Design) -> SweepFindings:
    """Main effects and interactions of a sweep, by the metrics that decide the workloads.

    Raises:
        UnknownNameError: if a workload is decided by a metric that does not exist.
    """
    cells = {combination: choice.label for combination, choice in sweep.cells().items()}
    found: list[_EffectValues] = []
    notes: list[SweepNote] = []
    for workload in values.judged:
        metric = metric_named(workload.decide_by)
        blocks = _complete_blocks(values.series[workload.name, metric.name], cells)
        if not blocks:
            notes.append(NoCompleteBlock(workload.name))
            continue
        found += _effect_values(sweep, workload.name, metric, blocks)
    asked = design.asking(max(1, len(found)))
    contrasts = [_contrast(one, asked) for one in found]
    effects = [
        Effect(**vars(estimate), sweep=sweep.canonical, kind=one.kind, levels=one.levels)
        for one, estimate in zip(found, estimate_family(contrasts, asked), strict=True)
    ]
    for tunable in sweep.levels:
        default = sweep.defaults.get(tunable)
        if default is not None:
            notes.append(DefaultLevel(tunable, default))
    if len(sweep.levels) > 2:
        notes.append(PairsOnly())
    return SweepFindings(sweep, effects, notes)


def _contrast(effect: _EffectValues, design: Design) -> Contrast:
    """The effect as a ratio, half of it above 1 and half below, so that it is symmetric for any design."""
    above = {block: math.exp(log / 2) for block, log in enumerate(effect.logs)}
    below = {block: math.exp(-log / 2) for block, log in enumerate(effect.logs)}
    difference = design.of(effect.workload).difference(above, below)
    if difference is None:
        raise AssertionError("an effect has at least one block")
    return Contrast(effect.workload, effect.metric, difference)


def _complete_blocks(values: Series, cells: Mapping[Combination, str]) -> list[dict[Combination, float]]:
    """Logarithms of the values of every block that has all cells."""
    series = {combination: values.get(label, {}) for combination, label in cells.items()}
    blocks = set.intersection(*(set(each) for each in series.values()))
    return [
        {combination: math.log(each[block]) for combination, each in series.items()}
        for block in sorted(blocks)
        if all(each[block] > 0 for each in series.values())
    ]


def _effect_values(
    sweep: TunableSweep, workload: str, metric: Metric, blocks: Sequence[Mapping[Combination, float]]
) -> list[_EffectValues]:
    """All effects of a sweep under one workload."""
    tunables = list(sweep.levels)
    found = []
    for index, tunable in enumerate(tunables):
        for value in sweep.values(tunable)[1:]:
            logs = [_mean(block, {index: value}) - _mean(block, {index: None}) for block in blocks]
            found.append(_EffectValues("main", workload, metric, {tunable: value or ""}, logs))
    for (one, first), (two, second) in itertools.combinations(enumerate(tunables), 2):
        for a, b in itertools.product(sweep.values(first)[1:], sweep.values(second)[1:]):
            logs = [
                (_mean(block, {one: a, two: b}) - _mean(block, {one: None, two: b}))
                - (_mean(block, {one: a, two: None}) - _mean(block, {one: None, two: None}))
                for block in blocks
            ]
            levels = {first: a or "", second: b or ""}
            found.append(_EffectValues("interaction", workload, metric, levels, logs))
    return found


def _mean(block: Mapping[Combination, float], fixed: Mapping[int, str | None]) -> float:
    """Mean over all combinations with some tunables at fixed levels."""
    chosen = [
        value
        for combination, value in block.items()
        if all(combination[index] == level for index, level in fixed.items())
    ]
    return sum(chosen) / len(chosen)
