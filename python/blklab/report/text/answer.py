"""The recommendation in words: a headline of a few of them, and the reason.

Advice is for disks. Of a model the same figures are a finding, and of two kernels an answer about the patch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from blklab.analysis.metrics import METRICS
from blklab.analysis.recommendation import Action, Reason
from blklab.quantities.formatting import (
    confidence_text,
    count_of,
    join_names,
    join_schedulers,
    margin_text,
    metric_title,
    scheduler_text,
)
from blklab.report.documents.comparison import CompareDocument, MetricVerdictPart, RecommendationPart
from blklab.report.documents.parts import PairPart
from blklab.report.sentences.answer import differing_text
from blklab.report.sentences.losses import bound_text
from blklab.report.summary.designs import repetitions
from blklab.report.summary.kernels import KernelPair, kernel_pair
from blklab.report.summary.standing import (
    deciding_verdict,
    differing_controls,
    differing_copies,
    is_withheld,
    judged_workloads,
    labels_of,
    pairs_against,
    results_of,
    reversed_pair,
)
from blklab.report.text.wording import effect_of, open_question

MOST_CLAUSES = 2
"""Workloads whose figures a sentence gives; of more it gives the number."""
_BEST_EVERYWHERE = "it is best or shares the first place in every workload"
MOST_NAMES = 3
"""Headlines name so many schedulers; of more they give the number."""


@dataclass(frozen=True)
class Answer:
    """The advice, or the finding."""

    headline: str
    """``Use kyber``, ``No reason to change: keep mq-deadline``, ``Not known yet``; without a full stop."""
    reason: str
    """A clause that follows it, without a capital and a full stop; may be empty."""
    is_figure: bool = False
    """Whether the reason begins with the figure that decides, by the name of its metric."""

    @property
    def sentence(self) -> str:
        """Both: ``Use kyber: IOPS is 12 % higher than with mq-deadline, in use now``, with a full stop."""
        if not self.reason:
            return f"{self.headline}."
        joint = "; " if ": " in self.headline or self.headline.endswith("%") else ": "
        return f"{self.headline}{joint}{self.reason}."


class _Clause(NamedTuple):
    text: str
    is_figure: bool = False
    """As of `Answer`."""

    def below(self, headline: str, *more: str) -> Answer:
        """The answer that it is the reason of, with what there is to add."""
        return Answer(headline, "; ".join([self.text, *more]), self.is_figure)


def answer_of(document: CompareDocument) -> Answer:
    """The answer of an experiment."""
    advised = document.verdict.recommendation
    pair = kernel_pair(document) if advised.subject == "kernels" else None
    if pair is not None and not is_withheld(document):
        return _of_kernels(document, advised, pair)
    return _ANSWERS[advised.action](document, advised)


def explanation(document: CompareDocument) -> str:
    """The reason as a sentence of its own, beneath the headline, with the question that was asked."""
    answer = answer_of(document)
    reason = answer.reason
    judged = judged_workloads(document)
    asked = ""
    if len(judged) == 1 and document.goal is None and not is_withheld(document):
        verdict = deciding_verdict(document, judged[0])
        if answer.is_figure:
            return f"Under {judged[0]}, {reason}."
        asked = f"Under {judged[0]}" + ("" if verdict is None else f", by {metric_title(verdict.metric)}")
    if not reason:
        return f"{asked}." if asked else ""
    if asked:
        return f"{asked}: {reason}."
    return f"{reason if reason.startswith('`') else reason[:1].upper() + reason[1:]}."


def _keep(document: CompareDocument, advised: RecommendationPart) -> Answer:
    name = scheduler_text(advised.scheduler or "")
    if advised.reason == "best":
        return _lead(document, advised.scheduler or "").below(f"No reason to change: keep {name}")
    yet = " yet" if advised.reason == "not_shown" else ""
    sure = "" if advised.reason == "equal" else f" ({confidence_text(document.confidence)} sure)"
    lost = f"at most {_percent(advised.loss)} is lost" if advised.loss else "nothing is lost"
    return Answer(f"No reason to change{yet}: keep {name}", f"{lost}{sure}")


def _withhold(document: CompareDocument, _: RecommendationPart) -> Answer:
    copies = differing_copies(document)
    what = differing_text(copies or differing_controls(document), are_copies=bool(copies))
    return Answer("No recommendation", f"{what}, so something other than the scheduler was at work")


def _use(document: CompareDocument, advised: RecommendationPart) -> Answer:
    return _why_use(document, advised).below(f"Use {scheduler_text(advised.scheduler or '')}")


def _wait(document: CompareDocument, advised: RecommendationPart) -> Answer:
    return Answer("Not known yet", _why_unknown(document, advised.reason))


def _depend(document: CompareDocument, _: RecommendationPart) -> Answer:
    return Answer("It depends on the work", _winners(document))


def _why_use(document: CompareDocument, advised: RecommendationPart) -> _Clause:
    """The figures that show that a change is worth it."""
    chosen, own = advised.scheduler or "", advised.in_force or ""
    if advised.reason == "good_enough":
        text = _near_the_best(document, advised)
        bound = next((one.bound for one in document.verdict.regret if one.label == own), None)
        known = "that is not known" if bound is None else f"it is {_percent(bound)}"
        return _Clause(f"{text}; of {scheduler_text(own)}, in use now, {known}")
    clause = _against(document, chosen, own, ", in use now")
    if advised.reason != "better":
        return clause
    return clause._replace(text=f"{clause.text}; the first place is still open")


def _finding(document: CompareDocument, advised: RecommendationPart) -> Answer:
    """The answer where nothing that was compared is in force."""
    own = document.target_description.default_scheduler
    left_out = []
    if advised.subject == "disk" and own is not None:
        left_out = [f"{scheduler_text(own)}, in use now, was not compared"]
    if advised.reason == "good_enough":
        headline = f"{scheduler_text(advised.scheduler or '')} is good enough"
        return Answer(headline, "; ".join([_near_the_best(document, advised), *left_out]))
    best = document.verdict.best
    if advised.reason == "best":
        return _lead(document, best[0]).below(f"{scheduler_text(best[0])} is best", *left_out)
    everyone = labels_of(document)
    if len(best) <= MOST_NAMES:
        names = join_schedulers(best)
    else:
        names = f"All {len(best)}" if len(best) == len(everyone) else f"{len(best)} of {len(everyone)}"
    behind = [label for label in everyone if label not in best]
    ahead = [f"ahead of {join_schedulers(behind)}"] if behind and len(behind) <= MOST_NAMES else []
    return Answer(f"{names} are equal within {margin_text(document.margin)}", "; ".join([*ahead, *left_out]))


def _of_kernels(document: CompareDocument, advised: RecommendationPart, pair: KernelPair) -> Answer:
    """One scheduler under two kernels: whether the second kernel makes a difference."""
    subject = "The patch" if pair.is_patch else f"The kernel {pair.kernel}"
    if advised.action == "unknown" or advised.reason == "not_shown":
        headline = f"Not known yet whether {subject[:1].lower()}{subject[1:]} makes a difference here"
        return Answer(headline, _why_unknown(document, advised.reason))
    if advised.action == "depends":
        return Answer(f"{subject} helps here and harms there", _winners(document))
    if advised.reason in ("equal", "good_enough"):
        within = "" if not advised.loss else f" (within {_percent(advised.loss)})"
        return Answer(f"{subject} makes no difference here{within}", "")
    verb = "is better here" if advised.scheduler == pair.patched else "is worse here"
    return _against(document, pair.patched, pair.base).below(f"{subject} {verb}")


def _near_the_best(document: CompareDocument, advised: RecommendationPart) -> str:
    sure = confidence_text(document.confidence)
    if not advised.loss:
        return f"no other is better ({sure} sure)"
    return f"whichever is best is at most {_percent(advised.loss)} better ({sure} sure)"


def _why_unknown(document: CompareDocument, reason: Reason) -> str:
    """The figures that are missing, or the first place that is open."""
    if reason == "too_few":
        return _too_few(document)
    names = document.verdict.candidates
    alone = document.goal is not None or len(judged_workloads(document)) == 1
    if reason == "open" and alone and 1 < len(names) <= MOST_NAMES:
        return f"the first place is open between {join_schedulers(names)}"
    return open_question(document)


def _too_few(document: CompareDocument) -> str:
    """``2 repetitions of write-ahead-log are too few for an answer``; named if other loads have more."""
    judged = judged_workloads(document)
    parts = [part for part in document.designs if part.workload in judged]
    numbers = {part.rounds for part in parts}
    if len(numbers) < 2:
        return f"{repetitions(document)} {'is' if document.blocks == 1 else 'are'} too few for an answer"
    least = min(numbers)
    names = join_names([part.workload for part in parts if part.rounds == least])
    return f"{count_of(least, 'repetition')} of {names} {'is' if least == 1 else 'are'} too few for an answer"


def _winners(document: CompareDocument) -> str:
    """The best of each workload."""
    found = [deciding_verdict(document, name) for name in judged_workloads(document)]
    return ", ".join(f"{join_schedulers(one.best)} for {one.workload}" for one in found if one is not None)


def _lead(document: CompareDocument, winner: str) -> _Clause:
    """The winner against the next best; over several workloads, its place in each of them."""
    if document.goal is not None:
        pairs = _goal_pairs(document, winner)
        if not pairs:
            return _Clause(f"it is best for the goal {document.goal.goal}")
        nearest = min(pairs, key=lambda pair: pair.ratio)
        text = _effect(nearest, f"its score for the goal {document.goal.goal}")
        return _Clause(f"{text}{', the next best' if len(pairs) > 1 else ''}")
    judged = judged_workloads(document)
    found = [one for name in judged if (one := deciding_verdict(document, name)) is not None]
    if len(found) != 1:
        return _Clause(_BEST_EVERYWHERE)
    rivals = rivals_of(document, found[0], winner)
    if not rivals:
        return _Clause("no other has figures")
    text = f"{_effect(rivals[0])}{', the next best' if len(rivals) > 1 else ''}"
    return _Clause(text, is_figure=True)


def rivals_of(document: CompareDocument, verdict: MetricVerdictPart, winner: str) -> list[PairPart]:
    """The winner against each other scheduler that has figures, the next best first."""
    results = results_of(document, verdict.workload, verdict.metric)
    sign = -1 if METRICS[verdict.metric].better == "higher" else 1
    pairs = pairs_against(document, verdict.workload, verdict.metric, winner)
    order = sorted((name for name in pairs if name in results), key=lambda name: sign * results[name].mean)
    return [reversed_pair(pairs[name]) for name in order]


def _against(document: CompareDocument, label: str, own: str, remark: str = "") -> _Clause:
    """One scheduler against another, under each workload; the remark is about the other."""
    if document.goal is not None:
        found = [pair for pair in _goal_pairs(document, label) if pair.second == own]
        title = f"its score for the goal {document.goal.goal}"
        best = f"it is best for the goal {document.goal.goal}"
        return _Clause(_effect(found[0], title) + remark if found else best)
    judged = judged_workloads(document)
    better: dict[str, PairPart] = {}
    for name in judged:
        verdict = deciding_verdict(document, name)
        pair = None if verdict is None else pairs_against(document, name, verdict.metric, own).get(label)
        if pair is not None and pair.outcome in ("better", "worse"):
            better[name] = pair
    clauses = [
        (f"for {name}, " if len(judged) > 1 else "") + _effect(pair) + ("" if number else remark)
        for number, (name, pair) in enumerate(better.items())
    ]
    left = len(clauses) - MOST_CLAUSES
    if left > 0:
        clauses[MOST_CLAUSES:] = [f"likewise for {left} more"]
    as_good = [name for name in judged if name not in better]
    if as_good and clauses:
        clauses.append(f"as good for {join_names(as_good)}")
    text = "; ".join(clauses) or _BEST_EVERYWHERE
    return _Clause(text, is_figure=bool(better) and len(judged) == 1)


def _effect(pair: PairPart, title: str | None = None) -> str:
    """``IOPS is 12 % [8, 17] higher than with mq-deadline``."""
    effect = effect_of(pair.ratio, pair.ci_low, pair.ci_high)
    return f"{title or metric_title(pair.metric)} is {effect} with {scheduler_text(pair.second)}"


def _goal_pairs(document: CompareDocument, label: str) -> list[PairPart]:
    goal = document.goal
    pairs = [] if goal is None else goal.comparisons
    return [
        pair if pair.first == label else reversed_pair(pair)
        for pair in pairs
        if label in (pair.first, pair.second)
    ]


def _percent(loss: float | None) -> str:
    return bound_text(loss)


_ANSWERS: dict[Action, Callable[[CompareDocument, RecommendationPart], Answer]] = {
    "use": _use,
    "keep": _keep,
    "choose": _finding,
    "unknown": _wait,
    "depends": _depend,
    "withheld": _withhold,
}
