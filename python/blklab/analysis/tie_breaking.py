"""Who is taken among equals: the default, since nothing needs changing; else the cheaper in CPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blklab.analysis.comparison import compare_all, describe_effect
from blklab.analysis.goal_scores import combined_series, question_over_all
from blklab.analysis.metrics import metric_named
from blklab.analysis.statistics.intervals import geometric_mean_interval
from blklab.records.experiment import ExperimentRecord


@dataclass(frozen=True)
class TieBreak:
    """One of several equals, and why it is this one."""

    label: str
    reason: str


def break_tie(record: ExperimentRecord, equals: Sequence[str]) -> TieBreak | None:
    """Chooses among equals; nothing if neither rule tells them apart.

    The default is the scheduler that was in force before the experiment, without changed tunables. CPU time
    is that of the load's tasks per I/O over all workloads, compared within blocks; it decides if one of them
    is surely cheaper than every other.
    """
    default = record.target.default_scheduler
    for choice in record.spec.schedulers:
        if choice.label in equals and choice.without_label == default:
            return TieBreak(choice.label, "the default, which was in force before")
    metric = metric_named("cpu_per_io")
    series = {label: each for label, each in combined_series(record, metric).items() if label in equals}
    if len(series) < len(equals) or len(equals) < 2:
        return None
    spec = record.spec
    means = {
        label: geometric_mean_interval(list(each.values()), spec.confidence).mean
        for label, each in series.items()
    }
    cheapest, *others = sorted(equals, key=lambda name: means[name])
    ((_, pairs),) = compare_all([question_over_all(record, metric, series)], spec, list(equals))
    against = {
        seen.second: seen
        for pair in pairs
        if cheapest in (pair.first, pair.second)
        for seen in (pair.seen_from(cheapest),)
    }
    # An estimate alone would name one of two identical schedulers at random.
    if any(name not in against or against[name].outcome != "better" for name in others):
        return None
    return TieBreak(cheapest, f"the cheapest in CPU: {describe_effect(against[others[0]], metric)}")
