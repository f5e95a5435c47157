"""Next steps after a verdict, for the terminal and the HTML report."""

from __future__ import annotations

from dataclasses import dataclass

from blklab.quantities.formatting import count_of, join_names, margin_text, within_reach
from blklab.quantities.sample_units import rough_budget, rough_duration
from blklab.report.documents.comparison import CompareDocument
from blklab.report.summary.designs import time_of_more_ns, unit_of
from blklab.report.summary.reproduce import continue_command
from blklab.report.summary.standing import (
    deciding_verdict,
    differing_controls,
    is_in_force,
    judged_workloads,
    labels_of,
    results_of,
)

_BUDGET_OVER_LOAD = 1.5
"""A budget of time also pays for the preparation of a stretch, and estimates are only estimates."""


@dataclass(frozen=True)
class Advice:
    """A step, with its command if there is one."""

    text: str
    command: str | None = None


def next_steps(document: CompareDocument) -> list[Advice]:
    """The steps that this verdict suggests, the most useful first."""
    steps: list[Advice] = []
    verdict = document.verdict
    if differing_controls(document):
        steps.append(
            Advice(
                "A control differs, so something other than the scheduler is at work (other load, heat, a "
                "noisy neighbour) and no scheduler is recommended. Find the cause, then measure again."
            )
        )
    if document.state in ("interrupted", "failed"):
        steps.append(Advice("The experiment did not finish. To continue it:", continue_command(document.run)))
    if verdict.status == "undecided" and verdict.choice is not None:
        steps.append(_for_good_enough(document, verdict.choice))
    elif verdict.status == "undecided":
        steps += _for_undecided(document)
    elif verdict.status == "equal":
        steps.append(_for_equal(document))
    elif document.apply_command is not None:
        steps.append(_for_best(document, document.apply_command))
    if document.target_description.backend == "sim":
        steps.append(
            Advice(
                "This is the answer for a modelled disk. To test a real one, as root:",
                "blklab compare DIRECTORY",
            )
        )
    return steps


def _for_best(document: CompareDocument, command: str) -> Advice:
    best = document.verdict.best[0]
    if is_in_force(document, best):
        return Advice(
            f"{best} was already in use before the experiment. To keep it after a restart:", command
        )
    return Advice(f"To use {best} on this disk, now and after a restart:", command)


def _for_equal(document: CompareDocument) -> Advice:
    margin = margin_text(document.margin)
    for label in document.verdict.best:
        if is_in_force(document, label):
            return Advice(
                f"{label} was already in use before the experiment, and no other is better by more than "
                f"{margin}. Keep it."
            )
    choice = document.verdict.choice
    if choice is not None:
        return Advice(f"Take {choice}: {document.verdict.choice_reason}.", document.apply_command)
    return Advice(f"Any of them will do: they differ by less than {margin}.")


def _for_undecided(document: CompareDocument) -> list[Advice]:
    verdict = document.verdict
    if not verdict.candidates:
        return [Advice("No scheduler is best everywhere. Choose by the workload that matters most to you.")]
    lacking = _without_figures(document)
    if lacking and document.failed_runs:
        return [Advice(f"There is no figure for {join_names(lacking)}; see the errors of the failed runs.")]
    if lacking:
        return []
    if any(part.slot_ns is not None for part in document.designs):
        return [_more_load(document)]
    if within_reach(verdict.more_blocks):
        total = document.blocks + verdict.more_blocks
        return [
            Advice(
                f"About {count_of(verdict.more_blocks, 'more block')} would probably settle the rest:",
                continue_command(document.run, total, settled=document.stopping.rule == "settled"),
            )
        ]
    return [
        Advice(
            "At this level of noise more blocks are unlikely to settle it. Longer runs (--runtime) or a "
            "quieter machine would help."
        )
    ]


def _more_load(document: CompareDocument) -> Advice:
    """More rounds, perhaps more blocks of other workloads as well; the budget is a time."""
    needs = []
    for workload, more, nr_schedulers in _open_needs(document):
        unit = unit_of(document, workload)
        time_ns = time_of_more_ns(document, workload, more or 0, nr_schedulers)
        if more is None or time_ns is None or not unit.within_reach(more, nr_schedulers):
            return Advice(
                "At this level of noise more load is unlikely to settle it. A quieter machine or a wider "
                "--margin would help."
            )
        needs.append((unit.more(more, nr_schedulers), time_ns))
    total_ns = sum(time_ns for _, time_ns in needs)
    text = needs[0][0] if len(needs) == 1 else f"{rough_duration(total_ns)} more of load"
    command = continue_command(document.run, budget=rough_budget(total_ns * _BUDGET_OVER_LOAD))
    return Advice(f"About {text} would probably settle the rest:", command)


def _open_needs(document: CompareDocument) -> list[tuple[str, int | None, int]]:
    """For each workload that must go on: its name, the samples it needs, the schedulers that still run."""
    verdict, judged = document.verdict, judged_workloads(document)
    if document.goal is not None:
        return [(name, verdict.more_blocks, len(verdict.candidates)) for name in judged]
    found = [deciding_verdict(document, name) for name in judged]
    return [
        (one.workload, one.more_blocks, len(one.candidates))
        for one in found
        if one is not None and one.status == "undecided"
    ]


def _for_good_enough(document: CompareDocument, choice: str) -> Advice:
    if is_in_force(document, choice):
        return Advice(f"{choice} was already in use before the experiment. Keep it.")
    return Advice(f"Take {choice}: it is good enough.", document.apply_command)


def _without_figures(document: CompareDocument) -> list[str]:
    """Schedulers without a figure of the deciding metric in some workload."""
    lacking = [
        label
        for workload in document.workloads
        for label in labels_of(document)
        if label not in results_of(document, str(workload["name"]), str(workload["decide_by"]))
    ]
    return list(dict.fromkeys(lacking))
