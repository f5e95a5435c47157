"""Disturbances of an experiment in sentences."""

from __future__ import annotations

from collections.abc import Callable

from blklab.analysis.disturbance import Disturbance, Excess, SymptomName, TypicalEvent
from blklab.analysis.sensitivity import Sensitivity
from blklab.quantities.formatting import count_of, join_names


def disturbance_text(found: Disturbance) -> str:
    """The symptoms, each with its typical value."""
    log = [] if found.trouble is None else [f"the kernel's log: {found.trouble}"]
    return "; ".join([*log, *map(_excess_text, found.excesses)])


def typical_text(event: TypicalEvent) -> str:
    """A symptom that all runs of a workload have alike."""
    return f"in a typical run of {event.workload}: {_SYMPTOMS[event.symptom](event.value)}"


def sensitivity_text(found: Sensitivity) -> str:
    """The answer without the marked blocks."""
    marked = count_of(len(found.marked_blocks), "marked round" if found.in_slots else "marked block")
    answer = f"{found.status}{f' ({join_names(found.best)})' if found.best else ''}"
    return f"without the {marked} the answer is {'the same' if found.same else 'different'}: {answer}"


def _excess_text(excess: Excess) -> str:
    words = _SYMPTOMS[excess.symptom]
    return f"{words(excess.value)} (typical: {words(excess.typical)})"


def _percent_of(whole: str) -> Callable[[float], str]:
    return lambda value: f"{100 * value:.{0 if value >= 0.1 else 1}f} % {whole}"


_SYMPTOMS: dict[SymptomName, Callable[[float], str]] = {
    "steal": _percent_of("of the CPU time stolen"),
    "memory pressure": _percent_of("of the time under memory pressure"),
    "CPU pressure": _percent_of("of the time under CPU pressure"),
    "foreign reads": _percent_of("of the load read by others"),
    "foreign writes": _percent_of("of the load written by others"),
    "frequency": lambda value: f"the CPU at {value:.0f} MHz",
    "temperature": lambda value: f"{value:.0f} °C",
    "overrun": lambda value: f"{value:.3g} s longer than asked" if value else "as long as asked",
}
