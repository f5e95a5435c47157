"""Decides the statements of a described study: one function for each kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from blklab.analysis.statistics.sample import Sample
from blklab.analysis.statistics.spread import spread_ratio
from blklab.labs.studies.described.measured import NO_RUN, StudyRuns
from blklab.labs.studies.described.parts import DescribedStatement, StatementKind, filled
from blklab.labs.studies.described.rows import ValueRow, mean_estimate
from blklab.labs.studies.described.runs import ByBlock, arithmetic_mean, paired_ratios, picked
from blklab.labs.studies.described.sweeps import effect_estimate
from blklab.labs.studies.replication.result import IntervalEstimate, Statement, StatementOutcome
from blklab.labs.studies.replication.statements import (
    CONFIDENCE,
    all_of,
    equal,
    estimate_text,
    greater,
    matters,
    ordered,
    within,
)
from blklab.quantities.formatting import rounded

STEADY_WITHIN = 0.001
"""Range of runs, relative to the largest, that counts as no scatter: in guests only the seeds differ."""

Rows = Mapping[str, IntervalEstimate]
"""Our values of a table by the row's name, without those that no run has; at least one."""


def decided(measured: StudyRuns, one: DescribedStatement, rows: Sequence[ValueRow]) -> Statement | None:
    """A statement with its outcome; None if the experiment that it is about was left out."""
    if one.table is not None:
        return _on_rows(measured, one, [row for row in rows if row.value.table == one.table])
    if one.ours not in measured.series:
        return None
    return _on_interactions(measured, one) if one.kind == "no interaction" else _on_runs(measured, one)


def _on_rows(measured: StudyRuns, one: DescribedStatement, rows: Sequence[ValueRow]) -> Statement | None:
    if not rows:
        return None
    known = {row.value.name: row.value.ours for row in rows if row.value.ours is not None}
    mean = rounded(mean_estimate(found.value for found in known.values()).value) if known else "-"
    says, why = filled(one.says, mean=mean), filled(one.why, mean=mean)
    settled = one.model_copy(update={"says": says, "why": why})
    found = _OF_ROWS[one.kind](measured, settled, known) if known else None
    return found or Statement(one.name, says, one.origin, "undecided", NO_RUN, why)


def _on_interactions(measured: StudyRuns, one: DescribedStatement) -> Statement:
    """No two tunables of a sweep interact: decided by the pair that does so most."""
    together = [effect for effect in measured.effects(one.ours or "") if effect.kind == "interaction"]
    farthest = max(together, key=lambda effect: abs(math.log(effect.ratio)), default=None)
    words = {"interaction": "-" if farthest is None else farthest.name, "count": str(len(together))}
    says, why = filled(one.says, **words), filled(one.why, **words)
    if farthest is None:
        return Statement(one.name, says, one.origin, "undecided", NO_RUN, why)
    ratio = effect_estimate(farthest)
    return equal(one.name, says, ratio, margin=one.margin, origin=one.origin, why=why)


def _on_runs(measured: StudyRuns, one: DescribedStatement) -> Statement:
    name = one.ours or ""
    other = one.against or name
    ours, others = measured.series[name], measured.series.get(other, {})
    theirs = measured.printed(one.published)
    scheduler = None if one.scheduler is None else picked(one.scheduler, ours, theirs)
    over = None if one.over is None else picked(one.over, others, theirs, beside=scheduler)
    pairs = [] if scheduler is None or over is None else measured.pairs(one, scheduler, over)
    words = {"scheduler": scheduler or "-", "over": over or "-", "count": str(len(pairs))}
    says, why = filled(one.says, **words), filled(one.why, **words)
    settled = one.model_copy(update={"says": says, "why": why, "scheduler": scheduler, "over": over})
    needed = [
        *([] if one.scheduler is None else [(name, scheduler)]),
        *([] if one.over is None else [(other, over)]),
        *((name, label) for label in one.schedulers),
    ]
    there = all(measured.runs(series).get(label or "") for series, label in needed)
    ratio = measured.ratio(one, scheduler or "", over or "") if there and over is not None else None
    found = _OF_RUNS[one.kind](settled, measured.runs(name), ratio) if there else None
    why_not = measured.no_run(name, one.against)
    return found or Statement(one.name, says, one.origin, "undecided", why_not, why)


def _higher(one: DescribedStatement, _: ByBlock, ratio: IntervalEstimate | None) -> Statement | None:
    if ratio is None:
        return None
    return greater(one.name, one.says, ratio, one.than, origin=one.origin, why=one.why)


def _equal(one: DescribedStatement, _: ByBlock, ratio: IntervalEstimate | None) -> Statement | None:
    if ratio is None:
        return None
    return equal(one.name, one.says, ratio, margin=one.margin, origin=one.origin, why=one.why)


def _within(one: DescribedStatement, ours: ByBlock, ratio: IntervalEstimate | None) -> Statement | None:
    found = ratio if one.over else mean_estimate(ours[one.scheduler or ""].values())
    return None if found is None else _between(one, found, one.at_least or 0.0, one.at_most or 0.0)


def _between(one: DescribedStatement, found: IntervalEstimate, low: float, high: float) -> Statement:
    return within(one.name, one.says, found, low, high, unit=one.unit, origin=one.origin, why=one.why)


def _ordered(one: DescribedStatement, ours: ByBlock, _: IntervalEstimate | None) -> Statement | None:
    means = {label: mean_estimate(ours[label].values()) for label in one.schedulers}
    return ordered(one.name, one.says, means, unit=one.unit, origin=one.origin, why=one.why)


def compare_scatter(ours: ByBlock, more: str, less: str) -> tuple[StatementOutcome, str]:
    """Compares the standard deviations of two schedulers.

    Schedulers with the same value in every block scatter alike, which comparing two samples could not show.
    """
    pair = [list(ours[label].values()) for label in (more, less)]
    steady = all(max(runs) - min(runs) <= STEADY_WITHIN * abs(max(runs)) for runs in pair)
    if steady or set(paired_ratios(ours[more], ours[less])) == {1.0}:
        return "fails", f"{more} and {less}: the same in every block"
    spread = spread_ratio(Sample(pair[0]), Sample(pair[1]))
    if spread is None:
        return "undecided", f"{more} and {less}: too few runs"
    ratio = IntervalEstimate(spread.ratio, *spread.interval(CONFIDENCE))
    return greater("", "", ratio).outcome, f"{more} over {less} {estimate_text(ratio)}"


def _scattered(one: DescribedStatement, ours: ByBlock, _: IntervalEstimate | None) -> Statement | None:
    pairs = [(one.scheduler or "", other) for other in one.schedulers]
    if one.kind == "less scattered":
        pairs = [(other, scheduler) for scheduler, other in pairs]
    found = [compare_scatter(ours, more, less) for more, less in pairs]
    said = "standard deviations: " + "; ".join(text for _, text in found)
    outcome = all_of([outcome for outcome, _ in found])
    return Statement(one.name, one.says, one.origin, outcome, said, one.why)


def _changes(_: StudyRuns, one: DescribedStatement, rows: Rows) -> Statement:
    return matters(one.name, one.says, rows, origin=one.origin, why=one.why)


def _includes_1(_: StudyRuns, one: DescribedStatement, rows: Rows) -> Statement:
    inside = [(ratio.low or 0.0) <= 1.0 <= (ratio.high or math.inf) for ratio in rows.values()]
    found = "; ".join(f"{name} {estimate_text(ratio)}" for name, ratio in rows.items())
    return Statement(one.name, one.says, one.origin, "holds" if all(inside) else "fails", found, one.why)


def _rows_higher(_: StudyRuns, one: DescribedStatement, rows: Rows) -> Statement | None:
    """The smallest row is higher."""
    return _higher(one, {}, IntervalEstimate(min(found.value for found in rows.values())))


def _rows_within(_: StudyRuns, one: DescribedStatement, rows: Rows) -> Statement:
    """All rows lie within."""
    found = _range_of([found.value for found in rows.values()])
    return _between(one, found, one.at_least or 0.0, one.at_most or 0.0)


def _published_between(measured: StudyRuns, one: DescribedStatement, rows: Rows) -> Statement | None:
    """All published runs lie between two rows of ours."""
    printed = (measured.printed(one.published) or {}).get(one.scheduler or "")
    low, high = (rows.get(name) for name in one.between or ("", ""))
    if not printed or low is None or high is None:
        return None
    return _between(one, _range_of(printed), low.value, high.value)


def _range_of(values: Sequence[float]) -> IntervalEstimate:
    return IntervalEstimate(arithmetic_mean(values), min(values), max(values))


_OF_RUNS: Mapping[
    StatementKind, Callable[[DescribedStatement, ByBlock, IntervalEstimate | None], Statement | None]
] = {
    "higher": _higher,
    "equal": _equal,
    "within": _within,
    "ordered": _ordered,
    "more scattered": _scattered,
    "less scattered": _scattered,
}
"""How a kind of statement on a series' runs is decided; the ratio is that of its two schedulers."""
_OF_ROWS: Mapping[StatementKind, Callable[[StudyRuns, DescribedStatement, Rows], Statement | None]] = {
    "higher": _rows_higher,
    "within": _rows_within,
    "changes": _changes,
    "includes 1": _includes_1,
    "published between": _published_between,
}
"""How a kind of statement on the rows of a table is decided."""
