"""Causes of differences in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from blklab.analysis.causes import Cause, CauseKind
from blklab.quantities.formatting import join_schedulers, rounded, scheduler_text
from blklab.quantities.units import format_bytes, format_duration
from blklab.records.behaviour import NOBODY

MOST_SENTENCES = 2
"""Of one workload."""
_LEAST_COUNT = 0.05
"""Fewer are shown as none."""


def cause_sentence(cause: Cause) -> str:
    """``kyber holds writers back: 1.3 of its I/Os are in the device at a time, not 31 as under none; …``."""
    return f"{_FINDINGS[cause.kind](cause)}{_effect(cause)}."


def cause_sentences(causes: Sequence[Cause]) -> list[tuple[str, str]]:
    """The workload and a sentence for each cause; schedulers behind for one reason share a sentence."""
    told: list[tuple[str, str]] = []
    for workload, of_one in groupby(causes, key=lambda cause: cause.workload):
        kinds: dict[tuple[CauseKind, str], list[Cause]] = {}
        for cause in of_one:
            kinds.setdefault((cause.kind, cause.other), []).append(cause)
        for alike in list(kinds.values())[:MOST_SENTENCES]:
            sentence = cause_sentence(alike[0])
            if len(alike) > 1:
                others = join_schedulers([cause.worse for cause in alike[1:]])
                sentence = f"{sentence[:-1]}; likewise against {others}."
            told.append((workload, sentence))
    return told


def _effect(cause: Cause) -> str:
    """The consequence for the I/O in question: how long it waits, and where."""
    if cause.phase is None:
        return ""
    better, worse = (format_duration(round(ns)) for ns in (cause.better_wait_ns, cause.worse_wait_ns))
    where = "waits {} in the queue" if cause.phase == "queue" else "spends {} in the device"
    return f"; {_one_of(cause)} {where.format(better)}, not {worse}"


def _idling(cause: Cause) -> str:
    focus = _focus(cause)
    return (
        f"{_better(cause)} keeps the device idle for the next I/O of {focus}, {_percent(cause.better_count)} "
        f"of the time while others' I/O waits ({_worse(cause)}: {_percent(cause.worse_count)})"
    )


def _idled(cause: Cause) -> str:
    return (
        f"{_worse(cause)} leaves the device idle although I/O waits, {_percent(cause.worse_count)} of the "
        f"time ({_better(cause)}: {_percent(cause.better_count)})"
    )


def _limit(cause: Cause) -> str:
    return (
        f"{_better(cause)} holds {_other(cause)} back: {_number(cause.better_count)} of its I/Os are in the "
        f"device at a time, not {_number(cause.worse_count)} as under {_worse(cause)}"
    )


def _order(cause: Cause) -> str:
    return (
        f"{_better(cause)} lets I/O of {_focus(cause)} go before that of {_other(cause)}: "
        f"{_number(cause.better_count)} requests of others overtake one of it, not "
        f"{_number(cause.worse_count)} as under {_worse(cause)}"
    )


def _turns(cause: Cause) -> str:
    return (
        f"{_worse(cause)} serves {_other(cause)} for {_number(cause.worse_count)} requests in a row, "
        f"{_better(cause)} for {_number(cause.better_count)}"
    )


def _slices(cause: Cause) -> str:
    return (
        f"{_better(cause)} serves {_focus(cause)} for {_number(cause.better_count)} requests in a row, "
        f"{_worse(cause)} for {_number(cause.worse_count)}"
    )


def _held(cause: Cause) -> str:
    better, worse = (format_duration(round(ns)) for ns in (cause.better_count, cause.worse_count))
    return (
        f"while {_one_of(cause)} waits, {_other(cause)} holds the device for {better} under {_better(cause)} "
        f"and for {worse} under {_worse(cause)}"
    )


def _runs(cause: Cause) -> str:
    return (
        f"{_better(cause)} serves {format_bytes(cause.better_count)} in one place before the head moves, "
        f"{_worse(cause)} {format_bytes(cause.worse_count)}"
    )


def _distance(cause: Cause) -> str:
    return (
        f"{_better(cause)} sorts: the head moves {format_bytes(cause.better_count)} to the next request, not "
        f"{format_bytes(cause.worse_count)} as under {_worse(cause)}"
    )


def _merging(cause: Cause) -> str:
    return (
        f"{_better(cause)} merges I/O into requests of {format_bytes(cause.better_count)}, "
        f"{_worse(cause)} into {format_bytes(cause.worse_count)}"
    )


def _depth(cause: Cause) -> str:
    return (
        f"{_better(cause)} has {_number(cause.better_count)} requests in the device at a time, "
        f"{_worse(cause)} {_number(cause.worse_count)}"
    )


def _processors(cause: Cause) -> str:
    better, worse = (format_duration(round(ns)) for ns in (cause.better_count, cause.worse_count))
    return (
        f"an I/O takes {better} of processor time under {_better(cause)} and {worse} under {_worse(cause)}, "
        "and the device does not limit"
    )


_FINDINGS: dict[CauseKind, Callable[[Cause], str]] = {
    "idling": _idling,
    "idled": _idled,
    "limit": _limit,
    "order": _order,
    "turns": _turns,
    "slices": _slices,
    "held": _held,
    "runs": _runs,
    "distance": _distance,
    "merging": _merging,
    "depth": _depth,
    "processors": _processors,
}


def _better(cause: Cause) -> str:
    return scheduler_text(cause.better)


def _worse(cause: Cause) -> str:
    return scheduler_text(cause.worse)


def _focus(cause: Cause) -> str:
    return cause.focus or "one task"


def _one_of(cause: Cause) -> str:
    return f"an I/O of {cause.focus}" if cause.focus else "an I/O"


def _other(cause: Cause) -> str:
    return cause.other if cause.other != NOBODY else "others"


def _number(count: float) -> str:
    if count < _LEAST_COUNT:
        return "0"
    return rounded(count, count) if count >= 1 else f"{count:.1f}"


def _percent(share: float) -> str:
    percent = 100 * share
    return f"{percent:.0f} %" if percent >= 1 or percent < 0.05 else f"{percent:.1f} %"
