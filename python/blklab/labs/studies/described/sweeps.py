"""Effects of a sweep's tunables on the runs of a series."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.analysis.designs import design_of
from blklab.analysis.sweep_effects import Effect, sweep_findings
from blklab.analysis.values import values_begun
from blklab.labs.studies.described.parts import MeasuredSeries
from blklab.labs.studies.described.runs import ByBlock, series_workload
from blklab.labs.studies.replication.result import IntervalEstimate
from blklab.quantities.ratios import reciprocal_interval
from blklab.records.experiment import ExperimentRecord


def series_effects(record: ExperimentRecord, series: MeasuredSeries, runs: ByBlock) -> list[Effect]:
    """All effects of the experiment's sweeps; none without a block that has every combination.

    Args:
        record: The experiment.
        series: The series.
        runs: Its runs.
    """
    workload = series_workload(series, record.spec)
    spec = record.spec.model_copy(update={"workloads": [workload]})
    values = values_begun(spec, record.target.default_scheduler)
    for label, by_block in runs.items():
        for block, value in by_block.items():
            values.add_value(workload.name, workload.decide_by, label, block, value)
    found = [sweep_findings(sweep, values, design_of(spec)) for sweep in record.spec.sweeps]
    return [effect for one in found for effect in one.effects]


def changed_level(record: ExperimentRecord, scheduler: str, base: str) -> dict[str, str] | None:
    """The only tunable that a combination changes in the base of its sweep; None for others."""
    for sweep in record.spec.sweeps:
        cells = sweep.cells() if base == sweep.base.without_label else {}
        for combination, choice in cells.items():
            if choice.label == scheduler:
                set_there = zip(sweep.levels, combination, strict=True)
                changed = {name: value for name, value in set_there if value is not None}
                return changed if len(changed) == 1 else None
    return None


def main_effect(effects: Sequence[Effect], level: dict[str, str]) -> IntervalEstimate | None:
    """The effect of a tunable's value, averaged over the combinations of all others."""
    found = (one for one in effects if one.kind == "main" and one.levels == level)
    return next((effect_estimate(one) for one in found), None)


def effect_estimate(effect: Effect) -> IntervalEstimate:
    """The ratio with its interval."""
    return IntervalEstimate(effect.ratio, effect.ci_low, effect.ci_high)


def inverse(ratio: IntervalEstimate) -> IntervalEstimate:
    """The reciprocal of a ratio, with its interval."""
    return IntervalEstimate(1 / ratio.value, *reciprocal_interval(ratio.low, ratio.high))
