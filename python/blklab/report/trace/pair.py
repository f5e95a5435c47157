"""Two runs of one workload side by side: the JSON document, the finding, and the table of counters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from pydantic import Field

from blklab.analysis.metrics import METRICS
from blklab.analysis.two_runs import TwoRuns
from blklab.quantities.formatting import metric_title, rounded, scale_for, scheduler_text
from blklab.quantities.units import format_bytes, format_duration
from blklab.records.behaviour import Behaviour, PartyBehaviour
from blklab.report.documents.causes import CausePart, cause_parts
from blklab.report.documents.parts import Part
from blklab.report.trace.document import ExplainDocument

PAIR_SCHEMA: Literal["blklab.explain-pair/1"] = "blklab.explain-pair/1"


class ExplainPairDocument(Part):
    """`blklab.explain-pair/1`."""

    schema_: Literal["blklab.explain-pair/1"] = Field(default=PAIR_SCHEMA, alias="schema")
    target: str
    workload: str
    schedulers: list[str]
    headline: str
    metric: str
    """That of the workload."""
    values: list[float | None]
    better: str | None
    """By that metric; null if the runs differ by less than a tenth."""
    cause: CausePart | None
    """Null if nothing differs, or if no counter tells why."""
    behaviours: list[Behaviour]
    runs: list[ExplainDocument]


def pair_document(
    found: TwoRuns, behaviours: Sequence[Behaviour], runs: Sequence[ExplainDocument]
) -> ExplainPairDocument:
    """Puts two runs into the documented form."""
    cause = None if found.cause is None else cause_parts([found.cause])[0]
    return ExplainPairDocument(
        target=runs[0].target,
        workload=runs[0].workload,
        schedulers=[one.scheduler for one in behaviours],
        headline=_headline(found, cause, behaviours),
        metric=found.metric,
        values=found.values,
        better=found.better,
        cause=cause,
        behaviours=list(behaviours),
        runs=list(runs),
    )


def _headline(found: TwoRuns, cause: CausePart | None, behaviours: Sequence[Behaviour]) -> str:
    """The finding: the cause where there is one, and else how the runs compare."""
    if cause is not None:
        return cause.text
    names = " and ".join(scheduler_text(one.scheduler) for one in behaviours)
    title = metric_title(found.metric)
    if found.better is None:
        return f"{names} give the same {title} within 10 %."
    return f"{scheduler_text(found.better)} gives the better {title}; no counter of the device tells why."


def pair_rows(document: ExplainPairDocument) -> list[tuple[str, list[str]]]:
    """A row for each counter, with a cell for each scheduler; those that neither has are left out."""
    metric = METRICS[document.metric]
    known = [value for value in document.values if value is not None]
    scale = scale_for(metric.unit, known)
    rows = [
        (
            metric_title(metric.name),
            ["-" if value is None else scale.quantity(value) for value in document.values],
        )
    ]
    for title, cell in _COUNTERS:
        rows.append((title, [cell(one) for one in document.behaviours]))
    for name in dict.fromkeys(party.name for one in document.behaviours for party in one.parties):
        parties = [one.party(name) for one in document.behaviours]
        rows += [
            (f"{name}: {title}", ["-" if party is None else cell(party) for party in parties])
            for title, cell in _OF_PARTIES
        ]
    return [(title, cells) for title, cells in rows if set(cells) != {"-"}]


def _share(value: float) -> str:
    return f"{100 * value:.0f} %" if value >= 0.01 or value < 0.0005 else f"{100 * value:.1f} %"


def _time(ns: float | None) -> str:
    return "-" if ns is None else format_duration(round(ns))


def _size(value: float | None) -> str:
    return "-" if value is None else format_bytes(value)


_COUNTERS: list[tuple[str, Callable[[Behaviour], str]]] = [
    ("device idle", lambda one: _share(one.idle_share)),
    ("idle while I/O waited", lambda one: _share(one.idle_while_waiting_share)),
    ("requests in the device", lambda one: rounded(one.mean_in_device)),
    ("size of a request", lambda one: _size(one.bytes_per_request)),
    ("served before the head moves", lambda one: _size(_of_head(one, one.bytes_per_jump))),
    ("move of the head", lambda one: _size(one.mean_jump_bytes)),
    ("processor time of an I/O", lambda one: _time(one.cpu_ns_per_io)),
]
_OF_PARTIES: list[tuple[str, Callable[[PartyBehaviour], str]]] = [
    ("in the queue", lambda one: _time(one.waits.in_queue_ns)),
    ("in the device", lambda one: _time(one.waits.in_device_ns)),
    ("in a row", lambda one: rounded(one.mean_turn)),
    ("overtaken by", lambda one: rounded(one.overtaken)),
]


def _of_head(one: Behaviour, value: float) -> float | None:
    return None if one.mean_jump_bytes is None else value
