"""Puts findings into sentences: what the values support, and what they leave open."""

from __future__ import annotations

from blklab.labs.reanalysis.findings import LevelSummary, PairFinding, StratumFindings
from blklab.labs.reanalysis.strata import ALL_VALUES
from blklab.quantities.formatting import MOST_DIGITS, ratio_text, rounded


def value_text(value: float, low: float | None = None, high: float | None = None) -> str:
    """A value with digits that suit its interval: ``1082 [1063, 1100]``."""
    if low is None or high is None:
        return rounded(value, abs(value) / 10 ** (MOST_DIGITS - 1) if value else None)
    half = (high - low) / 2
    center = max(abs(value), half)
    bounds = ", ".join(rounded(bound, half, digits_of=center) for bound in (low, high))
    return f"{rounded(value, half, digits_of=center)} [{bounds}]"


def effect_text(pair: PairFinding, unit: str) -> str:
    """A pair's effect with its interval: ``+47.0 MB/s [18.4, 75.6]`` or ``2.93 times``."""
    if pair.scale == "ratio":
        return ratio_text(pair.estimate, pair.ci_low, pair.ci_high)
    half = None if pair.ci_low is None or pair.ci_high is None else (pair.ci_high - pair.ci_low) / 2
    digits_of = None if half is None else max(abs(pair.estimate), half)
    value = rounded(pair.estimate, half, digits_of=digits_of)
    value = value if value.startswith("-") else f"+{value}"
    value = f"{value} {unit}".strip()
    if pair.ci_low is None or pair.ci_high is None:
        return value
    bounds = ", ".join(rounded(bound, half, digits_of=digits_of) for bound in (pair.ci_low, pair.ci_high))
    return f"{value} [{bounds}]"


def downward(pair: PairFinding) -> PairFinding:
    """The pair with the higher level first."""
    lower_first = pair.estimate < (1 if pair.scale == "ratio" else 0)
    return pair.seen_from(pair.second) if lower_first else pair


def supported_sentences(found: StratumFindings) -> list[str]:
    """One sentence for each settled pair."""
    sentences = []
    for pair in map(downward, found.pairs):
        effect = effect_text(pair, found.stratum.unit)
        if pair.different:
            sentences.append(f"{pair.first} is higher than {pair.second}{_valued(found)}: {effect}")
        elif pair.outcome == "equal":
            sentences.append(f"{pair.first} and {pair.second} are equal within the margin: {effect}")
    return sentences


def level_cells(one: LevelSummary) -> list[str]:
    """A level's row in a table: n, mean, standard deviation, lowest, highest, trend with its p value."""
    trend = "-"
    if one.trend is not None and one.p_trend is not None:
        trend = f"{one.trend.tau:+.2f} ({one.p_trend:.2g})"
    return [
        str(one.n),
        value_text(one.mean, one.ci_low, one.ci_high),
        "-" if one.deviation is None else rounded(one.deviation),
        value_text(one.minimum),
        value_text(one.maximum),
        trend,
    ]


def not_supported_sentences(found: StratumFindings) -> list[str]:
    """One sentence for each open pair, with the smallest detectable difference."""
    if len(found.levels) == 1:
        return ["no comparison: there is only one level"] if found.levels[0].level != ALL_VALUES else []
    openly = [downward(pair) for pair in found.pairs if pair.outcome == "open"]
    sentences = []
    for pair in openly:
        effect = effect_text(pair, found.stratum.unit)
        if pair.ci_low is None:
            reason = "one value is not enough for an interval"
        elif pair.p_adjusted < pair.p * 1.000001 and pair.p < 0.05:
            reason = "a difference, but not certainly beyond the margin"
        else:
            reason = f"p = {pair.p_adjusted:.2g} after Holm's correction"
        sentences.append(f"{pair.first} over {pair.second}: {effect}, {reason}{_detectable(pair, found)}")
    compared = {frozenset((pair.first, pair.second)) for pair in found.pairs}
    names = [one.level for one in found.levels]
    lacking = [
        f"{first} and {second}: no common block"
        for index, first in enumerate(names)
        for second in names[index + 1 :]
        if frozenset((first, second)) not in compared
    ]
    return sentences + lacking


def _detectable(pair: PairFinding, found: StratumFindings) -> str:
    if pair.detectable is None:
        return ""
    if pair.scale == "ratio":
        size = f"{rounded(100 * (pair.detectable - 1))} %"
    else:
        size = f"{rounded(pair.detectable)} {found.stratum.unit}".strip()
    return f"; detectable from {size}"


def _valued(found: StratumFindings) -> str:
    """Whether higher is better, if known."""
    return {None: "", "higher": " (better)", "lower": " (worse)"}[found.stratum.better]
