"""Reads the records of a described study: its values, statements, pictures and remarks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from blklab.analysis.statistics.sample import Sample
from blklab.analysis.statistics.spread import spread_ratio
from blklab.labs.studies.described.description import (
    DescribedPicture,
    DescribedStatement,
    PictureRows,
    StatementKind,
    ValueRows,
    filled,
)
from blklab.labs.studies.described.experiments import description_of
from blklab.labs.studies.described.runs import (
    ByBlock,
    Published,
    arithmetic_mean,
    deviation_percent,
    measured_runs,
    paired_ratio,
    paired_ratios,
    picked,
    published_runs,
    replay_in_blocks,
    series_workload,
    session_values,
    unpaired_ratio,
)
from blklab.labs.studies.replication.options import StudyOptions
from blklab.labs.studies.replication.pictures import (
    IntervalPicture,
    IntervalRow,
    LinePicture,
    LineSeries,
    Picture,
)
from blklab.labs.studies.replication.result import (
    ComparedValue,
    IntervalEstimate,
    Statement,
    StatementOutcome,
    StudyResult,
)
from blklab.labs.studies.replication.statements import (
    CONFIDENCE,
    all_of,
    equal,
    estimate_text,
    greater,
    matters,
    mean_of,
    ordered,
    within,
)
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.records.experiment import ExperimentRecord

NO_RUN = "no run has a value"
STEADY_WITHIN = 0.001
"""Range of runs, relative to the largest, that counts as no scatter: in guests only the seeds differ."""


def read_described(
    options: StudyOptions, folder: StudyFolder, records: Mapping[str, ExperimentRecord]
) -> StudyResult:
    """Compares the records with the published values, as ``study.toml`` says."""
    return _Findings(folder, records).result(options)


class _Findings:
    """The description of a study beside its records; parts without records are left out."""

    def __init__(self, folder: StudyFolder, records: Mapping[str, ExperimentRecord]) -> None:
        self.description = description_of(folder)
        self.records = records
        self.series = {
            name: measured_runs(records[one.experiment], one)
            for name, one in self.description.series.items()
            if one.experiment in records
        }
        self.published = {
            name: published_runs(folder, runs) for name, runs in self.description.published.items()
        }

    def result(self, options: StudyOptions) -> StudyResult:
        values = [value for rows in self.description.values for value in self._values(rows)]
        statements = [found for one in self.description.statements if (found := self._statement(one, values))]
        pictures = [drawn for one in self.description.pictures if (drawn := self._picture(one, values))]
        remarks = [one.says for one in self.description.remarks if not one.on or options.backend in one.on]
        return StudyResult(values, statements, pictures, remarks)

    def _values(self, rows: ValueRows) -> Iterator[ComparedValue]:
        if rows.ours not in self.series:
            return
        ours, theirs = self.series[rows.ours], self._printed(rows.published)
        over = None if rows.over is None else picked(rows.over, ours, theirs)
        labels = rows.schedulers or [
            label for label in (ours if theirs is None else theirs) if label != rows.over
        ]
        for word in labels:
            label = picked(word, ours, theirs, beside=over)
            if label is None:
                continue
            found = self._ours(rows, ours, label, over)
            yield ComparedValue(
                filled(rows.name, scheduler=label, over=over or ""),
                rows.table,
                rows.unit,
                None if theirs is None else _theirs(rows, theirs, label, over),
                found,
                "" if found is not None else "no I/O ended",
                rows.beside,
            )

    def _printed(self, name: str | None) -> Published | None:
        return None if name is None else self.published[name]

    def _ours(self, rows: ValueRows, ours: ByBlock, label: str, over: str | None) -> IntervalEstimate | None:
        runs = list(ours.get(label, {}).values())
        if rows.statistic == "replayed ratio":
            series = self.description.series[rows.ours]
            spec = self.records[series.experiment].spec
            session = session_values(self._printed(rows.published) or {})
            dealt = replay_in_blocks(session, spec, series_workload(series, spec).name)
            return paired_ratio(dealt, label, over or "")
        if rows.statistic == "ratio":
            return paired_ratio(ours, label, over or "")
        return _of_runs(rows, runs, list(ours.get(over or "", {}).values()))

    def _statement(self, one: DescribedStatement, values: list[ComparedValue]) -> Statement | None:
        if one.table is not None:
            rows = {value.name: value.ours for value in values if value.table == one.table}
            return _TABLES[one.kind](one, rows) if rows else None
        if one.ours not in self.series:
            return None
        ours = self.series[one.ours]
        theirs = self._printed(one.published)
        scheduler = None if one.scheduler is None else picked(one.scheduler, ours, theirs)
        over = None if one.over is None else picked(one.over, ours, theirs, beside=scheduler)
        names = {"scheduler": scheduler or "-", "over": over or "-"}
        says, why = filled(one.says, **names), filled(one.why, **names)
        needed = [
            *([] if one.scheduler is None else [scheduler]),
            *([] if one.over is None else [over]),
            *one.schedulers,
        ]
        settled = one.model_copy(update={"says": says, "why": why, "scheduler": scheduler, "over": over})
        found = _RUNS[one.kind](settled, ours) if all(ours.get(label or "") for label in needed) else None
        return found or Statement(one.name, says, one.origin, "undecided", NO_RUN, why)

    def _picture(self, one: DescribedPicture, values: list[ComparedValue]) -> Picture | None:
        if one.kind == "session":
            return self._session(one) if one.ours in self.series else None
        rows = tuple(row for part in one.rows for row in _interval_rows(part, values))
        marks = tuple((value, name) for name, value in one.marks.items())
        return IntervalPicture(one.name, one.title, one.note, one.axis, rows, marks) if rows else None

    def _session(self, one: DescribedPicture) -> LinePicture | None:
        """Both sessions run by run, relative to the mean of each."""
        theirs = self.published[one.published or ""]
        ours = self.series[one.ours or ""]
        own = [value for label in theirs for value in ours.get(label, {}).values()]
        if not own:
            return None
        series = [*_session_lines(theirs, dashed=False), *_session_lines({"ours": own}, dashed=True)]
        return LinePicture(
            one.name,
            one.title,
            one.note,
            "run of the session",
            "relative to the mean of the session",
            tuple(series),
            counts=True,
        )


def _session_lines(runs: Published, *, dashed: bool) -> Iterator[LineSeries]:
    mean, begun = arithmetic_mean(session_values(runs)), 0
    for label, values in runs.items():
        numbers = tuple(float(begun + index + 1) for index in range(len(values)))
        yield LineSeries(label, numbers, tuple(value / mean for value in values), dashed=dashed)
        begun += len(values)


def _theirs(rows: ValueRows, theirs: Published, label: str, over: str | None) -> IntervalEstimate | None:
    if label not in theirs or (over is not None and over not in theirs):
        return None
    others = theirs[over] if over is not None else []
    if rows.statistic in ("ratio", "replayed ratio"):
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
    return _mean(runs)


def _mean(runs: Iterable[float]) -> IntervalEstimate:
    """The geometric mean; the arithmetic one, without an interval, of runs that are 0."""
    values = list(runs)
    return mean_of(values) if min(values) > 0 else IntervalEstimate(arithmetic_mean(values))


def _interval_rows(part: PictureRows, values: list[ComparedValue]) -> Iterator[IntervalRow]:
    for value in values:
        if value.table == part.table:
            for origin, one in (("published", value.published), ("ours", value.ours)):
                if one is not None:
                    label = filled(part.label, name=value.name, origin=origin)
                    yield IntervalRow(label, one.value, one.low, one.high, published=origin == "published")


def _higher(one: DescribedStatement, ours: ByBlock) -> Statement | None:
    ratio = paired_ratio(ours, one.scheduler or "", one.over or "")
    if ratio is None:
        return None
    return greater(one.name, one.says, ratio, one.than, origin=one.origin, why=one.why)


def _equal(one: DescribedStatement, ours: ByBlock) -> Statement | None:
    ratio = paired_ratio(ours, one.scheduler or "", one.over or "")
    if ratio is None:
        return None
    return equal(one.name, one.says, ratio, margin=one.margin, origin=one.origin, why=one.why)


def _within(one: DescribedStatement, ours: ByBlock) -> Statement | None:
    label = one.scheduler or ""
    found = paired_ratio(ours, label, one.over) if one.over else _mean(ours[label].values())
    low, high = one.at_least or 0.0, one.at_most or 0.0
    if found is None:
        return None
    return within(one.name, one.says, found, low, high, unit=one.unit, origin=one.origin, why=one.why)


def _ordered(one: DescribedStatement, ours: ByBlock) -> Statement | None:
    means = {label: _mean(ours[label].values()) for label in one.schedulers}
    return ordered(one.name, one.says, means, unit=one.unit, origin=one.origin, why=one.why)


def compare_scatter(ours: ByBlock, more: str, less: str) -> tuple[StatementOutcome, str]:
    """Compares the standard deviations of two schedulers.

    Schedulers with the same value in every block scatter alike, which comparing two samples could not show.
    """
    pair = [list(ours[label].values()) for label in (more, less)]
    steady = all(max(runs) - min(runs) <= STEADY_WITHIN * abs(max(runs)) for runs in pair)
    if steady or set(paired_ratios(ours, more, less)) == {1.0}:
        return "fails", f"{more} and {less}: the same in every block"
    spread = spread_ratio(Sample(pair[0]), Sample(pair[1]))
    if spread is None:
        return "undecided", f"{more} and {less}: too few runs"
    ratio = IntervalEstimate(spread.ratio, *spread.interval(CONFIDENCE))
    return greater("", "", ratio).outcome, f"{more} over {less} {estimate_text(ratio)}"


def _scattered(one: DescribedStatement, ours: ByBlock) -> Statement | None:
    pairs = [(one.scheduler or "", other) for other in one.schedulers]
    if one.kind == "less scattered":
        pairs = [(other, scheduler) for scheduler, other in pairs]
    found = [compare_scatter(ours, more, less) for more, less in pairs]
    said = "standard deviations: " + "; ".join(text for _, text in found)
    outcome = all_of([outcome for outcome, _ in found])
    return Statement(one.name, one.says, one.origin, outcome, said, one.why)


def _changes(one: DescribedStatement, rows: Mapping[str, IntervalEstimate | None]) -> Statement:
    found = matters(one.name, one.says, rows, why=one.why)
    return replace(found, origin=one.origin)


def _includes_1(one: DescribedStatement, rows: Mapping[str, IntervalEstimate | None]) -> Statement:
    known = {name: ratio for name, ratio in rows.items() if ratio is not None}
    inside = [(ratio.low or 0.0) <= 1.0 <= (ratio.high or math.inf) for ratio in known.values()]
    found = "; ".join(f"{name} {estimate_text(ratio)}" for name, ratio in known.items())
    outcome: StatementOutcome = "undecided" if not inside else "holds" if all(inside) else "fails"
    return Statement(one.name, one.says, one.origin, outcome, found or NO_RUN, one.why)


_RUNS: Mapping[StatementKind, Callable[[DescribedStatement, ByBlock], Statement | None]] = {
    "higher": _higher,
    "equal": _equal,
    "within": _within,
    "ordered": _ordered,
    "more scattered": _scattered,
    "less scattered": _scattered,
}
"""How a kind of statement on a series' runs is decided."""
_TABLES: Mapping[
    StatementKind, Callable[[DescribedStatement, Mapping[str, IntervalEstimate | None]], Statement]
] = {
    "changes": _changes,
    "includes 1": _includes_1,
}
"""How a kind of statement on the rows of a table is decided."""
