"""The verdict in words, for people."""

from __future__ import annotations

from blklab.analysis.metrics import METRICS
from blklab.quantities.formatting import join_names, margin_text, metric_title, rounded
from blklab.report.documents.comparison import CompareDocument, MetricVerdictPart
from blklab.report.summary.designs import unit_of
from blklab.report.summary.model_answer import ModelAnswer
from blklab.report.summary.regret import Lead, lead_of
from blklab.report.summary.standing import (
    deciding_verdict,
    differing_controls,
    has_open_question,
    judged_workloads,
    pairs_against,
    results_of,
)

MOST_NAMES_IN_HEADLINE = 3


def headline(document: CompareDocument) -> str:
    """The verdict in a few words; while it is open, what to do meanwhile."""
    lead = lead_of(document)
    return _verdict_in_words(document) if lead is None else lead.action


def _verdict_in_words(document: CompareDocument) -> str:
    verdict = document.verdict
    if verdict.status == "best":
        return f"{verdict.best[0]} is best"
    if verdict.status == "equal":
        return f"{join_names(verdict.best)} are equal"
    if verdict.status == "withheld":
        return "Withheld: a control differs"
    if not verdict.candidates:
        return "It depends on the work"
    if 1 < len(verdict.candidates) <= MOST_NAMES_IN_HEADLINE and len(judged_workloads(document)) == 1:
        return f"Undecided between {join_names(verdict.candidates)}"
    return "Undecided"


def explanation(document: CompareDocument) -> str:
    """The sentence beneath the headline."""
    if document.verdict.status == "undecided" and has_open_question(document):
        lead = lead_of(document)
        if lead is None:
            return _open_question(document)
        return f"{lead.loss[:1].upper()}{lead.loss[1:]}. {beyond_the_lead(document, lead)}"
    judged = judged_workloads(document)
    if len(judged) == 1 and document.goal is None and document.verdict.status != "withheld":
        name = judged[0]
        only = deciding_verdict(document, name)
        if only is not None:
            return _sentence(
                f"Under {name}, by {metric_title(only.metric)}: {finding(document, only)}{_tie(document)}"
            )
    # What each workload says comes first; what one choice for all of them costs follows.
    advice, answer, found = document.verdict.text.partition("it depends on the work")
    if answer and advice:
        return f"{_sentence(answer + found)} {_sentence(advice.removesuffix('; '))}"
    return _sentence(document.verdict.text)


def _open_question(document: CompareDocument) -> str:
    """The workloads whose first place is open, and those where it is settled."""
    if document.goal is not None:
        return _sentence(f"the best scheduler for the goal {document.goal.goal} is not settled yet")
    judged = judged_workloads(document)
    found = {name: verdict for name in judged if (verdict := deciding_verdict(document, name)) is not None}
    without_figure = [name for name in judged if name not in found]
    open_ones = [name for name in found if found[name].status == "undecided"]
    settled = [name for name in found if found[name].status != "undecided"]
    parts = []
    if open_ones:
        parts.append(f"the best scheduler for {join_names(open_ones)} is not settled yet")
    if without_figure:
        parts.append(f"no run gave a figure for {join_names(without_figure)}")
    if settled:
        parts.append(f"{join_names(settled)} {'is' if len(settled) == 1 else 'are'} settled")
    return _sentence("; ".join(parts))


def beyond_the_lead(document: CompareDocument, lead: Lead) -> str:
    """The sentences that follow what a choice costs at most: a safer one, and what is open."""
    return " ".join(f"{text}." for text in (lead.safest, _what_is_open(document)) if text is not None)


def _what_is_open(document: CompareDocument) -> str:
    """``The first place is undecided between none and kyber``, or the workloads that are open."""
    verdict = _verdict_in_words(document)
    if verdict == "Undecided":
        return _open_question(document).removesuffix(".")
    return f"The first place is {verdict[:1].lower()}{verdict[1:]}"


def _tie(document: CompareDocument) -> str:
    """The one to take among equals, where a rule names one."""
    verdict = document.verdict
    if verdict.status != "equal" or verdict.choice is None:
        return ""
    return f"; of these take {verdict.choice} ({verdict.choice_reason})"


def finding(document: CompareDocument, verdict: MetricVerdictPart) -> str:
    """The verdict of one metric for one workload; for a winner, its lead over the next best."""
    quiet_control = verdict.control and verdict.workload not in differing_controls(document)
    if quiet_control and verdict.status == "undecided":
        margin = margin_text(document.margin)
        part = unit_of(document, verdict.workload).part
        return f"no difference found, but the {part}s scatter too much to call all equal within {margin}"
    if verdict.status == "undecided" and verdict.text.startswith("undecided between"):
        return f"undecided between {join_names(verdict.candidates)}"
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
    # The pair is rival over winner; the sentence gives winner over rival.
    low, high = (None if not bound else 1 / bound for bound in (pair.ci_high, pair.ci_low))
    next_best = f"with {rivals[0]}, the next best" if len(rivals) > 1 else f"with {rivals[0]}"
    effect = effect_of(1 / pair.ratio, low, high)
    if verdict.control:
        return f"a control, yet {winner} has {metric_title(verdict.metric)} {effect} {next_best}"
    return f"{winner} is best, with {metric_title(verdict.metric)} {effect} {next_best}"


def model_sentences(model: ModelAnswer) -> tuple[str, list[str]]:
    """A title that says whose answer it is, and the model's answer."""
    found = model.document
    where = f"On a modelled disk ({model.device})"
    if model.undecided_nearest is not None:
        where = (
            f"The nearest model, {model.undecided_nearest}, is undecided as well. On another ({model.device})"
        )
    settled = "the same question is settled" if model.is_settled else "the same question stays open, too"
    # What a choice costs on a model is no advice for a disk.
    says = explanation(found) if lead_of(found) is None else _open_question(found)
    return "A model's answer, not this disk's", [f"{where} {settled}: {_verdict_in_words(found)}.", says]


def effect_of(ratio: float, low: float | None, high: float | None) -> str:
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
    """Capitalised if the first word is blklab's own; a scheduler's name keeps its letters."""
    ours = text.startswith(
        ("undecided", "it depends", "withheld", "for the goal", "the best", "no run", "stay ", "take ")
    )
    text = text[:1].upper() + text[1:] if ours else text
    return text if text.endswith(".") else f"{text}."
