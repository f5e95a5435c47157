"""Tables of a comparison as plain columns, from which data frames are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel

from blklab.analysis.metrics import METRICS
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import RunSample
from blklab.report.documents.comparison import CompareDocument

TableName = Literal["results", "pairs", "verdicts", "runs"]
Kind = Literal["text", "integer", "number", "truth", "list", "time"]


@dataclass(frozen=True)
class Column:
    """A column: its values in the order of the rows, None where there is none."""

    kind: Kind
    """``list`` is a list of texts, ``time`` an ISO 8601 time with its zone."""
    values: list[Any]


Table = dict[str, Column]

_RESULTS: dict[str, Kind] = {
    "workload": "text",
    "scheduler": "text",
    "metric": "text",
    "unit": "text",
    "n": "integer",
    "mean": "number",
    "ci_low": "number",
    "ci_high": "number",
}
_PAIRS: dict[str, Kind] = {
    "workload": "text",
    "metric": "text",
    "first": "text",
    "second": "text",
    "n": "integer",
    "ratio": "number",
    "ci_low": "number",
    "ci_high": "number",
    "p_adjusted": "number",
    "outcome": "text",
    "more_blocks": "integer",
}
_VERDICTS: dict[str, Kind] = {
    "workload": "text",
    "metric": "text",
    "decides": "truth",
    "control": "truth",
    "status": "text",
    "best": "list",
    "candidates": "list",
    "text": "text",
}


def results_table(_: ExperimentRecord, document: CompareDocument) -> Table:
    """A row for each workload, scheduler and metric: geometric mean and interval."""
    return _table(document.results, _RESULTS)


def pairs_table(_: ExperimentRecord, document: CompareDocument) -> Table:
    """A row for each workload, metric and pair of schedulers: the ratio within blocks."""
    return _table(document.comparisons, _PAIRS)


def verdicts_table(_: ExperimentRecord, document: CompareDocument) -> Table:
    """A row for each workload and metric."""
    return _table(document.verdicts, _VERDICTS)


def runs_table(record: ExperimentRecord, _: CompareDocument) -> Table:
    """A row for each run, or slot of a switchback, with each metric that any of them has, in its own unit."""
    samples = sorted(record.without_uncounted_slots().samples, key=lambda sample: sample.cell.sequence)
    columns: Table = {
        "sequence": Column("integer", [one.cell.sequence for one in samples]),
        "block": Column("integer", [one.cell.block for one in samples]),
        "workload": Column("text", [one.cell.workload for one in samples]),
        "scheduler": Column("text", [one.cell.scheduler for one in samples]),
        "seed": Column("integer", [one.cell.seed for one in samples]),
        "started_at": Column("time", [one.started_at for one in samples]),
        "elapsed_ns": Column("integer", [one.elapsed_ns for one in samples]),
        "status": Column("text", [one.status for one in samples]),
        "error": Column("text", [one.error for one in samples]),
    }
    measured = {workload.name: workload.focus for workload in record.spec.workloads}
    for metric in METRICS.values():
        values = [_value(one, measured[one.cell.workload], metric.compute) for one in samples]
        if any(value is not None for value in values):
            columns[metric.name] = Column("number", values)
    return columns


TABLES: dict[TableName, Callable[[ExperimentRecord, CompareDocument], Table]] = {
    "results": results_table,
    "pairs": pairs_table,
    "verdicts": verdicts_table,
    "runs": runs_table,
}


def _value(sample: RunSample, focus: Sequence[str], compute: Callable[..., float | None]) -> float | None:
    if sample.status != "ok":
        return None
    return compute([job for job in sample.jobs if job.name in focus])


def _table(parts: Sequence[BaseModel], kinds: dict[str, Kind]) -> Table:
    return {name: Column(kind, [getattr(part, name) for part in parts]) for name, kind in kinds.items()}
