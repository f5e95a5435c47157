"""Next steps after a verdict, for the terminal and the HTML report."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass

from blklab.analysis.regret import Regret, known_bounds
from blklab.analysis.statistics.anytime import fewest_blocks
from blklab.analysis.statistics.sample_size import MOST_TIMES_AS_MANY
from blklab.quantities.formatting import join_names, join_schedulers, scheduler_text, within_reach
from blklab.quantities.sample_units import BLOCKS, SampleUnit, rough_budget, rough_duration
from blklab.report.documents.comparison import CompareDocument, MoreRangePart, RecommendationPart
from blklab.report.sentences.losses import bound_text
from blklab.report.summary.designs import time_of_more_ns, unit_of
from blklab.report.summary.kernels import kernel_pair
from blklab.report.summary.reproduce import continue_command
from blklab.report.summary.standing import (
    deciding_verdict,
    is_withheld,
    judged_workloads,
    labels_of,
    results_of,
)
from blklab.spec.budget import DEFAULT_BUDGET_BLOCKS, LEAST_ADVISED_NS

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
    advised = document.verdict.recommendation
    if is_withheld(document):
        steps.append(
            Advice("Find what else was at work (other load, heat, a noisy neighbour), then measure again.")
        )
    if document.state in ("interrupted", "failed"):
        steps.append(Advice("The experiment did not finish. To continue it:", continue_command(document.run)))
    if advised.is_shown and advised.subject == "disk":
        steps += _for_disk(document, advised)
    elif advised.reason == "equal" and advised.subject == "disk":
        steps.append(Advice("Any of them will do."))
    if document.verdict.status == "undecided" and advised.reason != "good_enough":
        steps += _for_undecided(document)
    if advised.subject == "kernels":
        steps += _for_kernels(document)
    elif document.target_description.backend == "sim":
        steps.append(
            Advice("This is a modelled disk. To test a real one, as root:", "blklab compare DIRECTORY")
        )
    return steps


def _for_disk(document: CompareDocument, advised: RecommendationPart) -> list[Advice]:
    """The command that sets or keeps the recommended scheduler."""
    name = scheduler_text(advised.scheduler or "")
    if document.apply_command is None:
        return []
    if advised.action == "keep":
        return [
            Advice(
                f"Nothing needs to be done. To pin {name}, so that no restart changes it:",
                document.apply_command,
            )
        ]
    return [Advice(f"To use {name} on this disk, now and after a restart:", document.apply_command)]


def _for_kernels(document: CompareDocument) -> list[Advice]:
    """The question of a patch over many loads, instead of these."""
    pair = kernel_pair(document)
    _, _, device = document.target.partition(":")
    if pair is None or not document.target.startswith("uml:"):
        return []
    words = ["blklab", "kernel", "judge", "--kernel", f"{pair.base_kernel},{pair.kernel}"]
    words += ["--disk", device.partition(",")[0], "--scheduler", pair.scheduler]
    return [Advice("To ask more loads, in a form to mail:", shlex.join(words))]


def _for_undecided(document: CompareDocument) -> list[Advice]:
    verdict = document.verdict
    if not verdict.candidates:
        return [Advice("No scheduler is best everywhere. Choose by the workload that matters most to you.")]
    lacking = _without_figures(document)
    if lacking and document.failed_runs:
        return [
            Advice(f"There is no figure for {join_schedulers(lacking)}; see the errors of the failed runs.")
        ]
    if lacking:
        return []
    if verdict.recommendation.reason == "too_few" and (longer := _longer(document)) is not None:
        return [longer]
    if any(part.slot_ns is not None for part in document.designs):
        return [_more_load(document)]
    return [_more_blocks(document)]


def _longer(document: CompareDocument) -> Advice | None:
    """A budget for the fewest blocks that decide anything; None where every workload has them, or has rounds.

    Before that, nothing says how many an answer takes.
    """
    judged, labels = judged_workloads(document), labels_of(document)
    questions = math.comb(len(labels), 2) * (1 if document.goal is not None else len(judged))
    needed = fewest_blocks(questions, 1 - document.confidence)
    short = [
        part
        for part in document.designs
        if part.workload in judged and part.slot_ns is None and part.rounds < needed
    ]
    if not short or all(part.slot_ns is None for part in document.designs):
        return None
    times_ns = [
        time_of_more_ns(document, part.workload, needed - part.rounds, len(labels)) or 0 for part in short
    ]
    # Workloads that have rounds take their part of the budget.
    budget_ns = sum(times_ns) * _BUDGET_OVER_LOAD * len(document.designs) / len(short)
    command = continue_command(document.run, budget=rough_budget(max(LEAST_ADVISED_NS, budget_ns)))
    names = join_names([part.workload for part in short])
    return Advice(f"An answer needs {needed} repetitions of {names}; to go on:", command)


def _more_blocks(document: CompareDocument) -> Advice:
    verdict = document.verdict
    if verdict.recommendation.reason == "too_few":
        # So few tell nothing of the noise either, and so not how many are needed.
        settled = document.stopping.rule == "settled"
        command = continue_command(document.run, DEFAULT_BUDGET_BLOCKS, settled=settled)
        return Advice(f"To go on, up to {DEFAULT_BUDGET_BLOCKS} repetitions:", command)
    if verdict.more_range is not None and not verdict.more_range.is_worth_it:
        return _not_worth_it(document)
    if within_reach(verdict.more_blocks):
        need = _more_of(verdict.more_range, verdict.more_blocks, BLOCKS, 1)
        total = document.blocks + verdict.more_blocks
        return Advice(
            _staked(document, f"{need} would probably settle it:"),
            continue_command(document.run, total, settled=document.stopping.rule == "settled"),
        )
    return Advice(
        "At this level of noise more repetitions are unlikely to settle it. Longer runs (--runtime) or a "
        "quieter machine would help."
    )


def _more_load(document: CompareDocument) -> Advice:
    """More rounds, perhaps more blocks of other workloads as well; the budget is a time."""
    needs = []
    for workload, more, more_range, nr_schedulers in _open_needs(document):
        unit = unit_of(document, workload)
        if more_range is not None and not more_range.is_worth_it:
            return _not_worth_it(document)
        time_ns = time_of_more_ns(document, workload, more or 0, nr_schedulers)
        if more is None or time_ns is None or not unit.within_reach(more, nr_schedulers):
            return Advice(
                "At this level of noise more load is unlikely to settle it. A quieter machine or a wider "
                "--margin would help."
            )
        needs.append((_more_of(more_range, more, unit, nr_schedulers), time_ns))
    total_ns = sum(time_ns for _, time_ns in needs)
    text = needs[0][0] if len(needs) == 1 else f"about {rough_duration(total_ns)} more of load"
    budget_ns = max(LEAST_ADVISED_NS, total_ns * _BUDGET_OVER_LOAD)
    command = continue_command(document.run, budget=rough_budget(budget_ns))
    return Advice(_staked(document, f"{text} would probably settle it:"), command)


def _not_worth_it(document: CompareDocument) -> Advice:
    return Advice(
        _staked(
            document,
            f"an answer would take over {MOST_TIMES_AS_MANY} times as many repetitions as were run: "
            "not worth it. Longer runs, a quieter machine or a wider --margin would help.",
        )
    )


def _staked(document: CompareDocument, text: str) -> str:
    """The sentence after the most that is at stake."""
    whole = _at_stake(document) + text
    return whole[:1].upper() + whole[1:]


def _more_of(found: MoreRangePart | None, more: int, unit: SampleUnit, nr_schedulers: int) -> str:
    """The range, or the estimate alone."""
    if found is None:
        return f"about {unit.more(more, nr_schedulers)}"
    return unit.more_between(found.least, found.most, nr_schedulers)


def _open_needs(document: CompareDocument) -> list[tuple[str, int | None, MoreRangePart | None, int]]:
    """For each workload that must go on: its name, the samples it needs, the schedulers that still run."""
    verdict, judged = document.verdict, judged_workloads(document)
    if document.goal is not None:
        return [(name, verdict.more_blocks, verdict.more_range, len(verdict.candidates)) for name in judged]
    found = [deciding_verdict(document, name) for name in judged]
    return [
        (one.workload, one.more_blocks, one.more_range, len(one.candidates))
        for one in found
        if one is not None and one.status == "undecided"
    ]


def _at_stake(document: CompareDocument) -> str:
    """The most that an answer could gain, before the time that it would take."""
    bounds = known_bounds([Regret(**part.model_dump()) for part in document.verdict.regret])
    if not bounds:
        return ""
    own = document.verdict.recommendation.in_force
    least = next((one for one in bounds if one.label == own), min(bounds, key=lambda one: one.bound))
    if not least.bound:
        return ""
    return f"At most {bound_text(least.bound)} is at stake; "


def _without_figures(document: CompareDocument) -> list[str]:
    """Schedulers without a figure of the deciding metric in some workload."""
    lacking = [
        label
        for workload in document.workloads
        for label in labels_of(document)
        if label not in results_of(document, str(workload["name"]), str(workload["decide_by"]))
    ]
    return list(dict.fromkeys(lacking))
