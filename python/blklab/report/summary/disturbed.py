"""Disturbed runs as reports list them: slots of one load that were disturbed together are one entry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blklab.quantities.formatting import count_of
from blklab.quantities.sample_units import BLOCKS
from blklab.report.documents.comparison import CompareDocument
from blklab.report.documents.findings import DisturbancePart
from blklab.report.summary.designs import unit_of


@dataclass(frozen=True)
class DisturbedRow:
    """A run, or the slots of a stretch."""

    span: str
    """``3`` or ``9 to 16``: blocks or rounds, counted from 1."""
    workload: str
    scheduler: str
    """Its label, the number of slots, or both."""
    text: str
    """Symptoms; of several slots, those of the first."""


def disturbed_rows(document: CompareDocument) -> list[DisturbedRow]:
    """All disturbances in their order."""
    machine = document.during_runs
    groups: list[list[DisturbancePart]] = []
    for one in [] if machine is None else machine.disturbances:
        if groups and _same_load(document, groups[-1][-1], one):
            groups[-1].append(one)
        else:
            groups.append([one])
    return [_row(group) for group in groups]


def marked_text(document: CompareDocument) -> str:
    """The number of marked blocks and rounds: ``2 blocks``, ``1 block and 8 rounds``."""
    machine = document.during_runs
    marked: dict[str, set[tuple[str | None, int]]] = {}
    for one in [] if machine is None else machine.disturbances:
        unit = unit_of(document, one.workload)
        # A block holds runs of all workloads, a round belongs to one.
        marked.setdefault(unit.name, set()).add((None if unit == BLOCKS else one.workload, one.block))
    return " and ".join(count_of(len(found), name) for name, found in sorted(marked.items()))


def _same_load(document: CompareDocument, before: DisturbancePart, one: DisturbancePart) -> bool:
    switched = unit_of(document, one.workload).slot_ns is not None
    return switched and before.workload == one.workload and before.stretch == one.stretch


def _row(group: Sequence[DisturbancePart]) -> DisturbedRow:
    first, last = group[0], group[-1]
    low, high = first.block + 1, last.block + 1
    schedulers = list(dict.fromkeys(one.scheduler for one in group))
    named = schedulers if len(schedulers) == 1 else []
    slots = [f"{len(group)} slots"] if len(group) > 1 else []
    return DisturbedRow(
        str(low) if low == high else f"{low} to {high}",
        first.workload,
        ", ".join([*named, *slots]),
        first.text,
    )
