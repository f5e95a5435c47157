"""The table of what may be combined (`blklab.spec.permits`) for people, programs and the docs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from rich.console import Group
from rich.table import Table

from blklab.report.pages.markdown import markdown_table
from blklab.spec.loads import Load, TurnDesign
from blklab.spec.permits import COLUMNS, RULES, STEADY, Refused, rule_for

_HEADINGS = ("Load", "Design", *COLUMNS)
_STEADY_NOTE = "unless a job " + "; or ".join(
    reason.format_map({"job": type("Named", (), {"wait_for": "NAME"}), "synced": "fsync, fdatasync, sync"})
    for reason, _ in STEADY
)


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True)


class LoadPart(_Part):
    """A kind of load."""

    name: str
    can: str
    needs: str


class CombinationPart(_Part):
    """A load under a design on a backend."""

    load: str
    design: str
    backend: str
    possible: bool
    reason: str
    """Why not, or what else it takes; empty for nothing."""
    hint: str


class ExceptionPart(_Part):
    """A circumstance that makes combinations impossible."""

    loads: list[str]
    backends: list[str]
    beside: str
    reason: str
    hint: str


class MatrixDocument(_Part):
    """Printed by `blklab doctor --matrix --json`."""

    schema_: Literal["blklab.doctor-matrix/1"] = Field("blklab.doctor-matrix/1", alias="schema")
    loads: list[LoadPart]
    combinations: list[CombinationPart]
    exceptions: list[ExceptionPart]


def matrix_document() -> MatrixDocument:
    """The whole table."""
    return MatrixDocument(
        loads=[LoadPart(name=load.label, can=load.can, needs=load.needs) for load in Load],
        combinations=[
            _combination(load, design, column) for load in Load for design in TurnDesign for column in COLUMNS
        ],
        exceptions=[
            ExceptionPart(
                loads=[load.label for load in rule.loads],
                backends=list(rule.columns),
                beside=rule.beside.value,
                reason=_message(rule),
                hint=rule.hint or "",
            )
            for rule in RULES
            if rule.beside is not None
        ],
    )


def matrix_markdown() -> str:
    """The table as Markdown; the command has its notes."""
    rows, _ = _rows_and_notes()
    plain = [[cell.partition(" (")[0] for cell in row] for row in rows]
    return (
        markdown_table(_HEADINGS, plain)
        + "\n\n`blklab doctor --matrix` says why not, and on which conditions."
    )


def matrix_text() -> Group:
    """The table and its notes for the terminal."""
    rows, notes = _rows_and_notes()
    table = Table(*_HEADINGS, box=None, pad_edge=False)
    numbered = Table("", "", box=None, pad_edge=False, show_header=False)
    for row in rows:
        table.add_row(*row)
    for number, note in enumerate(notes, start=1):
        numbered.add_row(f"{number:2}", note)
    return Group(table, "", numbered)


def _combination(load: Load, design: TurnDesign, column: str) -> CombinationPart:
    rule = rule_for(load, column, design)
    reason, hint = ("", None) if rule is None else (_message(rule), rule.hint)
    if rule is None and design is TurnDesign.SWITCHBACK:
        reason = _STEADY_NOTE
    return CombinationPart(
        load=load.label,
        design=design.value,
        backend=column,
        possible=rule is None,
        reason=reason,
        hint=hint or "",
    )


def _rows_and_notes() -> tuple[list[Sequence[str]], list[str]]:
    """The rows, whose cells name their note by its number, and the notes."""
    document = matrix_document()
    notes: dict[str, int] = {}
    rows: dict[tuple[str, str], list[str]] = {}
    for one in document.combinations:
        cell = "yes" if one.possible else "no"
        if one.reason:
            number = notes.setdefault(_with_hint(one.reason, one.hint), len(notes) + 1)
            cell += f" ({number})"
        rows.setdefault((one.load, one.design), [one.load, one.design]).append(cell)
    for other in document.exceptions:
        about = f"{' and '.join(other.loads)} {other.beside}"
        notes[f"{about}: {_with_hint(other.reason, other.hint)}"] = 0
    return list(rows.values()), list(notes)


def _with_hint(reason: str, hint: str) -> str:
    return f"{reason} ({hint})" if hint else reason


def _message(rule: Refused) -> str:
    """The message of a rule with words in capitals where it has names."""
    text = rule.reason.replace("{tool}", "hdparm -t")
    return re.sub(r"\{(\w+)\}", lambda field: field[1].upper(), text)
