"""Tables of values: published and intended values beside ours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from blklab.labs.studies.described.measured import StudyRuns
from blklab.labs.studies.described.parts import ValueRows, filled
from blklab.labs.studies.described.runs import (
    ByBlock,
    Published,
    arithmetic_mean,
    deviation_percent,
    mean_ratio,
    paired_ratios,
    picked,
    replay_in_blocks,
    series_workload,
    session_values,
    unpaired_ratio,
)
from blklab.labs.studies.replication.result import ComparedValue, IntervalEstimate
from blklab.labs.studies.replication.statements import mean_of


@dataclass(frozen=True)
class ValueRow:
    """One value, and what pictures need to know of it."""

    value: ComparedValue
    scheduler: str
    x: float | None
    hidden: bool


def table_rows(measured: StudyRuns, rows: ValueRows) -> Iterator[ValueRow]:
    """The rows of one part of a table; none if the experiment was left out or has another load."""
    if rows.ours is None:
        yield from _rows(measured, rows, {})
    elif rows.ours in measured.series:
        both = (rows.ours, rows.against or rows.ours)
        if not any(measured.description.series[name].tool and not measured.series.get(name) for name in both):
            yield from _rows(measured, rows, measured.series[rows.ours])


def _rows(measured: StudyRuns, rows: ValueRows, ours: ByBlock) -> Iterator[ValueRow]:
    theirs = measured.printed(rows.published)
    others = measured.series.get(rows.against, {}) if rows.against is not None else ours
    over = None if rows.over is None else picked(rows.over, others, theirs)
    labels = rows.schedulers or [
        label for label in (ours if theirs is None else theirs) if label != rows.over
    ]
    for word in labels:
        label = picked(word, ours, theirs, beside=over)
        if label is None:
            continue
        printed = None if theirs is None else _theirs(rows, theirs, label, over)
        for number, found in enumerate(_found(measured, rows, label, over), start=1):
            name = filled(rows.name, scheduler=label, over=over or "", pair=str(number))
            why = rows.not_asked or ("" if found is not None else "no I/O ended")
            value = ComparedValue(name, rows.table, rows.unit, printed, found, why, rows.beside)
            yield ValueRow(value, label, rows.x, rows.hidden)


def _found(
    measured: StudyRuns, rows: ValueRows, label: str, over: str | None
) -> Iterable[IntervalEstimate | None]:
    if rows.not_asked:
        return [None]
    if rows.statistic == "pairs":
        return [mean_of([ratio]) for ratio in measured.pairs(rows, label, over or "")]
    return [_ours(measured, rows, label, over)]


def _ours(measured: StudyRuns, rows: ValueRows, label: str, over: str | None) -> IntervalEstimate | None:
    name = rows.ours or ""
    if rows.statistic == "replayed ratio":
        spec = measured.record(name).spec
        session = session_values(measured.printed(rows.published) or {})
        workload = series_workload(measured.description.series[name], spec)
        dealt = replay_in_blocks(session, spec, workload.name)
        return mean_ratio(paired_ratios(dealt.get(label, {}), dealt.get(over or "", {})))
    if rows.statistic in ("ratio", "effect"):
        return measured.ratio(rows, label, over or "")
    others = measured.runs(rows.against or name).get(over or "", {})
    return _of_runs(rows, list(measured.runs(name).get(label, {}).values()), list(others.values()))


def _theirs(rows: ValueRows, theirs: Published, label: str, over: str | None) -> IntervalEstimate | None:
    if label not in theirs or (over is not None and over not in theirs):
        return None
    others = theirs[over] if over is not None else []
    if rows.statistic in ("ratio", "replayed ratio", "effect"):
        return unpaired_ratio(theirs[label], others) if others else None
    return _of_runs(rows, list(theirs[label]), list(others))


def _of_runs(rows: ValueRows, runs: list[float], others: list[float]) -> IntervalEstimate | None:
    """Their mean, deviation or ratio of means; None without runs."""
    if not runs:
        return None
    if rows.statistic == "deviation":
        percent = deviation_percent(runs)
        return None if percent is None else IntervalEstimate(percent)
    if rows.statistic == "ratio of means":
        below = arithmetic_mean(others) if others else 0.0
        return IntervalEstimate(arithmetic_mean(runs) / below) if below else None
    return (
        IntervalEstimate(arithmetic_mean(runs))
        if rows.statistic == "arithmetic mean"
        else mean_estimate(runs)
    )


def mean_estimate(runs: Iterable[float]) -> IntervalEstimate:
    """The geometric mean; the arithmetic one, without an interval, of runs that are 0."""
    values = list(runs)
    return mean_of(values) if min(values) > 0 else IntervalEstimate(arithmetic_mean(values))
