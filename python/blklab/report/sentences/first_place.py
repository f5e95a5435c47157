"""The finding on one question in a sentence: who is first, or what is missing."""

from __future__ import annotations

from blklab.analysis.ranking import Contested, FirstPlace, NoFigures, NoSharedSample, SamplesNeeded, Shared
from blklab.analysis.statistics.sample_size import MOST_TIMES_AS_MANY
from blklab.quantities.formatting import count_of, join_schedulers, margin_text, scheduler_text
from blklab.report.sentences.pairs import pair_effect, ratio_alone


def first_place_text(place: FirstPlace) -> str:
    """``kyber is best: IOPS +12 % [+8, +17] against none``, without a full stop."""
    if isinstance(place, NoFigures):
        return f"undecided: no figure for {join_schedulers(place.schedulers)}"
    if isinstance(place, NoSharedSample):
        return f"undecided: no {place.unit.name} has figures for all"
    if isinstance(place, Contested):
        return _contested_text(place)
    if isinstance(place, Shared):
        ahead = f" and ahead of {join_schedulers(place.behind)}" if place.behind else ""
        return f"{join_schedulers(place.schedulers)} are equal within {margin_text(place.margin)}{ahead}"
    return f"{scheduler_text(place.pair.first)} is best: {pair_effect(place.pair)}"


def _contested_text(place: Contested) -> str:
    nearest = place.nearest
    gap = f"{scheduler_text(nearest.first)}: {pair_effect(nearest)}"
    clauses = [
        f"undecided between {join_schedulers(place.candidates)} ({gap})",
        *(
            f"{scheduler_text(pair.first)} beats {scheduler_text(pair.second)} ({ratio_alone(pair)})"
            for pair in place.beaten
        ),
    ]
    if place.outlook is not None:
        clauses.append(_outlook_text(place.outlook))
    return "; ".join(clauses)


def _outlook_text(outlook: SamplesNeeded) -> str:
    """The number of repetitions that a decision would take."""
    unit, more = outlook.unit, outlook.more
    if outlook.kind == "too_few":
        return f"at least {count_of(outlook.fewest, unit.plain_name)} are needed"
    if outlook.kind == "hopeless" or more is None:
        return f"more {unit.plain_name}s are unlikely to tell them apart"
    if outlook.kind == "not_worth_it":
        return f"it would take over {MOST_TIMES_AS_MANY} times as many {unit.plain_name}s: not worth it"
    return f"{unit.more_between(more.least, more.most, outlook.nr_contenders)} would probably decide"
