"""Designs in words: how a workload's samples were taken, why, how many there are, and the time of more."""

from __future__ import annotations

from blklab.quantities.formatting import count_of
from blklab.quantities.sample_units import BLOCKS, SampleUnit
from blklab.quantities.units import format_duration
from blklab.report.documents.comparison import CompareDocument
from blklab.report.documents.designs import DesignPart
from blklab.report.summary.conduct import stopping_sentence
from blklab.report.summary.standing import has_open_question, judged_workloads


def design_of_workload(document: CompareDocument, workload: str) -> DesignPart | None:
    """The design of a workload; None in experiments that know runs only."""
    return next((part for part in document.designs if part.workload == workload), None)


def unit_of(document: CompareDocument, workload: str) -> SampleUnit:
    """The unit in which a workload's samples are counted."""
    part = design_of_workload(document, workload)
    return BLOCKS if part is None else SampleUnit(part.slot_ns)


def common_unit(document: CompareDocument) -> SampleUnit:
    """The unit of an answer over all workloads: rounds only if all judged ones have slots."""
    units = [unit_of(document, workload) for workload in judged_workloads(document)]
    lengths = [unit.slot_ns for unit in units if unit.slot_ns is not None]
    return SampleUnit(max(lengths)) if lengths and len(lengths) == len(units) else BLOCKS


def extent(document: CompareDocument) -> str:
    """``30 blocks``, ``240 rounds``, ``6 blocks and 240 rounds``."""
    counts = most_samples(document)
    return " and ".join(count_of(most, name) for name, most in counts.items() if most or len(counts) == 1)


def repetitions(document: CompareDocument) -> str:
    """``30 repetitions``, and where workloads have blocks and rounds ``6 to 240 repetitions``."""
    numbers = sorted({most for most in most_samples(document).values() if most}) or [0]
    least = f"{numbers[0]} to " if len(numbers) > 1 else ""
    return f"{least}{count_of(numbers[-1], 'repetition')}"


def units_in_use(document: CompareDocument) -> list[SampleUnit]:
    """The kinds of units that the experiment has, blocks first."""
    units = {unit.name: unit for name in _names(document) for unit in [unit_of(document, name)]}
    return [units[name] for name in ("block", "round") if name in units] or [BLOCKS]


def conduct_sentence(document: CompareDocument) -> str | None:
    """Why blocks or rounds stopped being added; None for a fixed number of blocks."""
    advised = document.verdict.recommendation
    return stopping_sentence(
        document.stopping,
        still_open=has_open_question(document),
        units=units_in_use(document),
        good_enough=advised.scheduler if advised.reason == "good_enough" else None,
    )


def design_sentence(part: DesignPart) -> str:
    """``switchback, 160 slots of 250 ms in 40 rounds (40 s of load, …): the reason``."""
    given_up = ""
    if part.abandoned:
        given_up = f" ({count_of(part.abandoned, 'earlier slot')} not counted)"
    if part.slot_ns is None:
        return f"runs in blocks{given_up}: {part.reason}"
    cut = (
        f"the first {format_duration(part.settling_ns)} of each cut off"
        if part.settling_ns
        else "none cut off"
    )
    checked = f", checked by {count_of(part.long_slots, 'long slot')}" if part.long_slots else ""
    return (
        f"switchback, {count_of(part.samples, 'slot')} of {format_duration(part.slot_ns)} ({cut}) in "
        f"{count_of(part.rounds, 'round')}, {format_duration(part.load_ns)} of load{checked}{given_up}: "
        f"{part.reason}"
    )


def time_of_more_ns(document: CompareDocument, workload: str, more: int, nr_schedulers: int) -> float | None:
    """Time that so many more samples of a workload would take; None if that is not known.

    Args:
        document: The experiment so far.
        workload: The workload.
        more: Rounds or blocks.
        nr_schedulers: How many schedulers still run.
    """
    part = design_of_workload(document, workload)
    if part is None or not part.samples:
        return None
    sample_ns = part.load_ns / part.samples if part.slot_ns is None else part.slot_ns
    return more * nr_schedulers * sample_ns


def most_samples(document: CompareDocument) -> dict[str, int]:
    """The largest number of ``block`` and of ``round`` of any workload, of the kinds that it has."""
    if not document.designs:
        return {BLOCKS.name: document.blocks}
    counts: dict[str, int] = {}
    for part in sorted(document.designs, key=lambda part: part.design):
        name = SampleUnit(part.slot_ns).name
        counts[name] = max(counts.get(name, 0), part.rounds)
    return counts


def _names(document: CompareDocument) -> list[str]:
    return [str(workload["name"]) for workload in document.workloads]
