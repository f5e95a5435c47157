"""Next steps after a verdict, for the terminal and the HTML report."""

from __future__ import annotations

from dataclasses import dataclass

from blklab.quantities.formatting import count_of, join_names, margin_text, within_reach
from blklab.report.documents.comparison import CompareDocument
from blklab.report.summary.reproduce import continue_command
from blklab.report.summary.standing import differing_controls, labels_of, results_of


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
    if verdict.status == "undecided":
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
    if _in_force(document, best):
        return Advice(
            f"{best} was already in use before the experiment. To keep it after a restart:", command
        )
    return Advice(f"To use {best} on this disk, now and after a restart:", command)


def _for_equal(document: CompareDocument) -> Advice:
    margin = margin_text(document.margin)
    for label in document.verdict.best:
        if _in_force(document, label):
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


def _without_figures(document: CompareDocument) -> list[str]:
    """Schedulers without a figure of the deciding metric in some workload."""
    lacking = [
        label
        for workload in document.workloads
        for label in labels_of(document)
        if label not in results_of(document, str(workload["name"]), str(workload["decide_by"]))
    ]
    return list(dict.fromkeys(lacking))


def _in_force(document: CompareDocument, label: str) -> bool:
    """Whether the disk used this choice before: its own scheduler, with no tunable changed."""
    choice = next(choice for choice in document.schedulers if choice["label"] == label)
    return not choice["tunables"] and choice["name"] == document.target_description.default_scheduler
