"""Disturbances of an experiment in at most three lines; the HTML report shows them in full.

The lines count; they do not list. Every disturbed run, every run that changed its speed and every outlier is
in the HTML report.
"""

from __future__ import annotations

from blklab.quantities.formatting import count_of
from blklab.report.documents.comparison import CompareDocument
from blklab.report.documents.findings import MachinePart, SteadinessPart
from blklab.report.summary.conduct import noise_kinds
from blklab.report.summary.designs import units_in_use

MOST_LINES = 3


def conditions(document: CompareDocument) -> list[str]:
    """At most `MOST_LINES` sentences, each short enough for a line; empty if the runs were undisturbed."""
    lines = []
    trouble = None if document.during_runs is None else _trouble(document, document.during_runs)
    if trouble is not None:
        lines.append(trouble)
    if document.during_runs is not None and document.during_runs.disturbances:
        lines.append(_disturbed(document, document.during_runs))
    changing = [entry for entry in document.steadiness if entry.state == "changing"]
    if changing:
        lines.append(_unsteady(changing))
    kinds = noise_kinds(document.noise)
    if kinds:
        lines.append(f"Noise: {', '.join(kinds)}.")
    return lines[:MOST_LINES]


def quiet_sentence(document: CompareDocument) -> str | None:
    """The sentence on an undisturbed experiment; None if something disturbed it or it was not watched."""
    watched = []
    if document.during_runs is not None:
        part = " or ".join(unit.part for unit in units_in_use(document))
        number = document.during_runs.watched_runs
        watched.append(f"none of {count_of(number, f'watched {part}')} was disturbed")
    if document.steadiness:
        watched.append("no scheduler's runs changed their speed by more than 10 %")
    return f"Conditions: {'; '.join(watched)}." if watched and not conditions(document) else None


def _disturbed(document: CompareDocument, machine: MachinePart) -> str:
    units = units_in_use(document)
    parts = " and ".join(f"{unit.part}s" for unit in units)
    runs = f"{len(machine.disturbances)} of {machine.watched_runs} {parts}"
    if len(units) == 1:
        runs = f"{len(machine.disturbances)} of {count_of(machine.watched_runs, units[0].part)}"
    other = machine.sensitivity
    without = ""
    if other is not None:
        names = " and ".join(f"{unit.name}s" for unit in units)
        without = f"; without their {names} the answer is {'the same' if other.same else 'another'}"
    return f"Disturbed from outside: {runs}{without}."


def _trouble(document: CompareDocument, machine: MachinePart) -> str | None:
    """The sentence on the kernel's log during the runs; None if it told of no trouble."""
    troubled = [run.events for run in machine.runs if run.events.kernel_messages]
    if not troubled:
        return None
    kinds = dict.fromkeys(message.kind for events in troubled for message in events.kernel_messages)
    first = troubled[0].kernel_messages[0].text
    load = "load" if all(unit.slot_ns is not None for unit in units_in_use(document)) else "run"
    during = count_of(len(troubled), load)
    return f"The kernel's log tells of trouble with the disk during {during}: {', '.join(kinds)} ({first})."


def _unsteady(changing: list[SteadinessPart]) -> str:
    first = changing[0]
    where = f"{first.workload} under {first.scheduler}"
    more = f" and {len(changing) - 1} more" if len(changing) > 1 else ""
    return f"Speed changes during a run: {where}{more}."
