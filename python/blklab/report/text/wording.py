"""The verdict in words, for people."""

from __future__ import annotations

from blklab.analysis.metrics import METRICS
from blklab.quantities.formatting import join_names, metric_title, rounded
from blklab.report.documents.comparison import CompareDocument, MetricVerdictPart
from blklab.report.summary.standing import deciding_verdict, pairs_against, results_of

MOST_NAMES_IN_HEADLINE = 3


def headline(document: CompareDocument) -> str:
    """The verdict in a few words."""
    verdict = document.verdict
    if verdict.status == "best":
        return f"{verdict.best[0]} is best"
    if verdict.status == "equal":
        return f"{join_names(verdict.best)} are equal"
    if verdict.status == "withheld":
        return "Withheld: a control differs"
    if not verdict.candidates:
        return "It depends on the work"
    if 1 < len(verdict.candidates) <= MOST_NAMES_IN_HEADLINE and len(_judged(document)) == 1:
        return f"Undecided between {join_names(verdict.candidates)}"
    return "Undecided"


def _judged(document: CompareDocument) -> list[str]:
    """Names of the workloads that the verdict rests on: all but controls, if there are others."""
    names = [str(workload["name"]) for workload in document.workloads if not workload["control"]]
    return names or [str(workload["name"]) for workload in document.workloads]


def explanation(document: CompareDocument) -> str:
    """The sentence beneath the headline."""
    judged = _judged(document)
    if len(judged) == 1 and document.goal is None and document.verdict.status != "withheld":
        name = judged[0]
        only = deciding_verdict(document, name)
        if only is not None:
            return _sentence(
                f"Under {name}, by {metric_title(only.metric)}: {finding(document, only)}{_tie(document)}"
            )
    return _sentence(document.verdict.text)


def _tie(document: CompareDocument) -> str:
    """Which of several equals to take, where a rule tells."""
    verdict = document.verdict
    if verdict.status != "equal" or verdict.choice is None:
        return ""
    return f"; of these take {verdict.choice} ({verdict.choice_reason})"


def finding(document: CompareDocument, verdict: MetricVerdictPart) -> str:
    """What one metric says of one workload; of a winner, how far ahead of the next best it is."""
    if verdict.status != "best":
        return verdict.text
    winner = verdict.best[0]
    results = results_of(document, verdict.workload, verdict.metric)
    sign = -1 if METRICS[verdict.metric].better == "higher" else 1
    pairs = pairs_against(document, verdict.workload, verdict.metric, winner)
    rivals = sorted((name for name in pairs if name in results), key=lambda name: sign * results[name].mean)
    if not rivals:
        return verdict.text
    pair = pairs[rivals[0]]
    # The pair is the rival over the winner; said is the winner over the rival.
    low, high = (None if not bound else 1 / bound for bound in (pair.ci_high, pair.ci_low))
    next_best = f"with {rivals[0]}, the next best" if len(rivals) > 1 else f"with {rivals[0]}"
    effect = _effect(1 / pair.ratio, low, high)
    if verdict.control:
        return f"a control, yet {winner} has {metric_title(verdict.metric)} {effect} {next_best}"
    return f"{winner} is best, with {metric_title(verdict.metric)} {effect} {next_best}"


def _effect(ratio: float, low: float | None, high: float | None) -> str:
    """``12 % [8, 17] higher than``, or for large ratios ``3.1 times [2.8, 3.4] as high as``."""
    if not 1 / 2 < ratio < 2:
        if ratio < 1:
            bounds = _ordered([None if not bound else 1 / bound for bound in (low, high)])
            return f"{_with_interval(1 / ratio, bounds)} times lower than"
        return f"{_with_interval(ratio, _ordered([low, high]))} times as high as"
    factor = 100 if ratio >= 1 else -100
    bounds = _ordered([None if bound is None else factor * (bound - 1) for bound in (low, high)])
    figure, _, interval = _with_interval(factor * (ratio - 1), bounds).partition(" ")
    return f"{figure} %{' ' + interval if interval else ''} {'higher' if ratio >= 1 else 'lower'} than"


def _ordered(bounds: list[float | None]) -> tuple[float, float] | None:
    present = sorted(bound for bound in bounds if bound is not None)
    return (present[0], present[1]) if len(present) == 2 else None


def _with_interval(value: float, bounds: tuple[float, float] | None) -> str:
    if bounds is None:
        return rounded(value)
    half = (bounds[1] - bounds[0]) / 2
    low, high = (rounded(bound, half, digits_of=value) for bound in bounds)
    return f"{rounded(value, half)} [{low}, {high}]"


def _sentence(text: str) -> str:
    """With a capital where it begins with a word of ours (a scheduler's name keeps its letters)."""
    ours = text.startswith(("undecided", "it depends", "withheld", "for the goal"))
    text = text[:1].upper() + text[1:] if ours else text
    return text if text.endswith(".") else f"{text}."
