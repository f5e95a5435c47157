"""Failed runs, and failed stretches in place of each of their slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from blklab.records.samples import SLOW_SWITCH
from blklab.report.documents.comparison import CompareDocument
from blklab.report.summary.designs import unit_of


@dataclass(frozen=True)
class Failure:
    """A failed run, or slots that failed together."""

    run: str
    """Number of the run in the whole experiment, from 1; empty for slots."""
    span: str
    """``3`` or ``9 to 16``: blocks or rounds, counted from 1."""
    workload: str
    scheduler: str
    """Its label, the number of slots, or both."""
    where: str
    """All of it in one clause."""
    error: str | None


def failures_of(document: CompareDocument) -> list[Failure]:
    """All failures in their order; of a stretch whose load failed, one. A slow switch is none."""
    groups: list[list[Mapping[str, Any]]] = []
    for run in document.failed_runs:
        if run["error"] == SLOW_SWITCH:
            continue
        together = groups and unit_of(document, run["workload"]).slot_ns is not None
        if together and _same_load(groups[-1][-1], run):
            groups[-1].append(run)
        else:
            groups.append([run])
    return [_failure(document, group) for group in groups]


def lost_slots_sentence(document: CompareDocument) -> str | None:
    """The number of slots that slow switches left no time for; None if there are none."""
    lost = sum(1 for run in document.failed_runs if run["error"] == SLOW_SWITCH)
    if not lost:
        return None
    made = sum(part.samples for part in document.designs if part.slot_ns is not None)
    return f"{lost} of {max(made, lost)} slots left out: switching took too long (busy machine)."


def _same_load(before: Mapping[str, Any], run: Mapping[str, Any]) -> bool:
    # The seed of a stretch's load is its own.
    return all(before[key] == run[key] for key in ("workload", "seed", "error"))


def _failure(document: CompareDocument, runs: Sequence[Mapping[str, Any]]) -> Failure:
    first, last = runs[0], runs[-1]
    unit = unit_of(document, first["workload"])
    low, high = first["block"] + 1, last["block"] + 1
    span = str(low) if low == high else f"{low} to {high}"
    name = unit.name if low == high else f"{unit.name}s"
    schedulers = list(dict.fromkeys(run["scheduler"] for run in runs))
    slots = f"{len(runs)} slots"
    under = [*(schedulers if len(schedulers) == 1 else []), *([slots] if len(runs) > 1 else [])]
    where = f"{name} {span}, {first['workload']}"
    where += f" under {schedulers[0]}" if len(schedulers) == 1 else ""
    where += f" ({slots})" if len(runs) > 1 else ""
    run_number = "" if unit.slot_ns is not None else str(first["sequence"] + 1)
    return Failure(run_number, span, first["workload"], ", ".join(under), where, first["error"])
