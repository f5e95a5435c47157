"""Compares the levels of a stratum: means, all pairs, drift, and the smallest detectable differences.

Holm's method corrects the pairs of a stratum together. A pair is **higher** or **lower** if the difference is
significant at the chosen confidence and its estimate lies beyond the margin of practical equality, **equal**
if two one-sided tests place it within the margin, and **open** otherwise.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from blklab.analysis.statistics.multiplicity import holm
from blklab.analysis.statistics.sample import Sample
from blklab.analysis.statistics.spread import SpreadRatio, spread_ratio
from blklab.analysis.statistics.trend import Trend, trend_of
from blklab.analysis.statistics.two_samples import (
    MeanDifference,
    independent_difference,
    matched_difference,
    standardised_difference,
)
from blklab.labs.reanalysis.design import ComparisonScale, DataDesign
from blklab.labs.reanalysis.strata import ALL_VALUES, Stratum, block_means, matched

PairOutcome = Literal["higher", "lower", "equal", "open"]

POWER = 0.8
"""Power of the test at the smallest detectable difference."""
OUTLIER_DEVIATIONS = 5.0
"""Median absolute deviations (scaled to a normal's sigma) beyond which a value counts as an outlier."""
MOST_OUTLIERS_NAMED = 4
_MAD_TO_SIGMA = 1.4826
_LARGEST_LOGARITHM = 300.0


@dataclass(frozen=True)
class LevelSummary:
    """One level's values."""

    level: str
    n: int
    blocks: int | None
    """Blocks with a value of this level; None for independent runs. Mean and interval are over blocks."""
    mean: float
    """Arithmetic mean, or geometric mean on the ratio scale."""
    ci_low: float | None
    ci_high: float | None
    deviation: float | None
    minimum: float
    maximum: float
    outliers: tuple[str, ...]
    """Locations of values far from the rest; they are not left out."""
    trend: Trend | None
    p_trend: float | None
    """After Holm's correction over the levels of the stratum."""


@dataclass(frozen=True)
class PairFinding:
    """Comparison of two levels."""

    first: str
    second: str
    n: int
    """Common blocks; for independent runs the smaller number of runs."""
    paired: bool
    scale: ComparisonScale
    estimate: float
    """First minus second in the stratum's unit, or first over second."""
    ci_low: float | None
    ci_high: float | None
    p: float
    p_adjusted: float
    outcome: PairOutcome
    effect_size: float | None
    """Hedges' g; None for paired runs."""
    detectable: float | None
    """Smallest difference (or ratio above 1) that the test detects with `POWER`."""
    spread: SpreadRatio | None
    p_spread: float | None
    """p value of equal scatter after Holm's correction over the pairs of the stratum; None for paired
    runs."""

    @property
    def different(self) -> bool:
        """Whether one level is higher than the other."""
        return self.outcome in ("higher", "lower")

    def _turned(self, value: float) -> float:
        return -value if self.scale == "difference" else 1 / value

    def seen_from(self, level: str) -> PairFinding:
        """The same comparison with `level` first."""
        if level == self.first:
            return self
        opposite: dict[PairOutcome, PairOutcome] = {"higher": "lower", "lower": "higher"}
        return replace(
            self,
            first=self.second,
            second=self.first,
            estimate=self._turned(self.estimate),
            ci_low=None if self.ci_high is None else self._turned(self.ci_high),
            ci_high=None if self.ci_low is None else self._turned(self.ci_low),
            outcome=opposite.get(self.outcome, self.outcome),
            effect_size=None if self.effect_size is None else -self.effect_size,
            spread=None if self.spread is None else replace(self.spread, log_ratio=-self.spread.log_ratio),
        )


@dataclass
class StratumFindings:
    """Summaries and comparisons of one stratum."""

    stratum: Stratum
    scale: ComparisonScale
    levels: list[LevelSummary]
    pairs: list[PairFinding] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def pair(self, first: str, second: str) -> PairFinding | None:
        """The comparison of two levels, with `first` as its first level."""
        for one in self.pairs:
            if {one.first, one.second} == {first, second}:
                return one.seen_from(first)
        return None

    def level(self, name: str) -> LevelSummary | None:
        """A level's summary."""
        return next((one for one in self.levels if one.level == name), None)


def analyse_stratum(
    stratum: Stratum, design: DataDesign, *, confidence: float, margin: float
) -> StratumFindings:
    """Analyses one stratum.

    Args:
        stratum: The values.
        design: The design of the values.
        confidence: Confidence of the intervals and of the family of pairs, such as 0.95.
        margin: Relative difference that counts as equal.
    """
    scale = design.scale
    warnings: list[str] = []
    if scale == "ratio" and any(one.value <= 0 for series in stratum.series.values() for one in series):
        warnings.append("some values are zero or negative and have no ratio: compared by differences")
        scale = "difference"
    found = StratumFindings(stratum, scale, _levels(stratum, design, scale, confidence), warnings=warnings)
    if len(stratum.series) > 1:
        found.pairs = _pairs(stratum, design, scale, confidence, margin, warnings)
    warnings += _warnings(stratum, design, found)
    return found


def _levels(
    stratum: Stratum, design: DataDesign, scale: ComparisonScale, confidence: float
) -> list[LevelSummary]:
    # Values of different tests, averaged within blocks, have neither a trend nor outliers.
    averages = bool(design.average)
    trends = {
        level: trend_of([one.value for one in series]) if stratum.order_known and not averages else None
        for level, series in stratum.series.items()
    }
    tested = [level for level, trend in trends.items() if trend is not None]
    adjusted = dict(zip(tested, holm([trend.p for trend in trends.values() if trend]), strict=True))
    return [
        _level(level, stratum, design, scale, confidence, trends[level], adjusted.get(level))
        for level in stratum.series
    ]


def _level(
    level: str,
    stratum: Stratum,
    design: DataDesign,
    scale: ComparisonScale,
    confidence: float,
    trend: Trend | None,
    p_trend: float | None,
) -> LevelSummary:
    values = stratum.values(level)
    means = block_means(stratum, level, logarithmic=scale == "ratio")
    # The mean is the difference from a sample of zeros.
    mean = matched_difference(means, [0.0] * len(means))
    interval = mean.interval(confidence)
    back = _from_logarithm if scale == "ratio" else float
    return LevelSummary(
        level=level,
        n=len(values),
        blocks=len(means) if design.block else None,
        mean=back(mean.estimate),
        ci_low=back(interval[0]) if interval else None,
        ci_high=back(interval[1]) if interval else None,
        deviation=statistics.stdev(values) if len(values) > 1 else None,
        minimum=min(values),
        maximum=max(values),
        outliers=() if design.average else _outliers(stratum, level),
        trend=trend,
        p_trend=p_trend,
    )


def _from_logarithm(value: float) -> float:
    """Inverse of the logarithm, clamped because intervals of two extreme values may overflow."""
    return math.exp(min(max(value, -_LARGEST_LOGARITHM), _LARGEST_LOGARITHM))


def _outliers(stratum: Stratum, level: str) -> tuple[str, ...]:
    series = stratum.series[level]
    if len(series) < 5:
        return ()
    middle = statistics.median(one.value for one in series)
    deviation = _MAD_TO_SIGMA * statistics.median(abs(one.value - middle) for one in series)
    if deviation == 0:
        return ()
    return tuple(
        str(one.location) for one in series if abs(one.value - middle) > OUTLIER_DEVIATIONS * deviation
    )


def _pairs(
    stratum: Stratum,
    design: DataDesign,
    scale: ComparisonScale,
    confidence: float,
    margin: float,
    warnings: list[str],
) -> list[PairFinding]:
    names = list(itertools.combinations(stratum.series, 2))
    level = (1 - confidence) / len(names)
    samples = {name: Sample(stratum.values(name)) for name in stratum.series}
    differences, alone = _differences(stratum, design, scale, names)
    if alone:
        warnings.append(
            f"up to {alone} values of a pair have no counterpart in their block and are not compared"
        )
    present = [one for one in differences if one is not None]
    adjusted = iter(holm([one.p_difference for one in present]))
    bounds = [_bound(stratum, scale, second, margin) for _, second in names]
    equivalent = iter(
        holm([d.p_equivalence(b) for d, b in zip(differences, bounds, strict=True) if d is not None])
    )
    spreads = [None if design.block else spread_ratio(samples[a], samples[b]) for a, b in names]
    spread_p = iter(holm([one.p_difference for one in spreads if one is not None]))
    pairs = []
    for (first, second), difference, bound, spread in zip(names, differences, bounds, spreads, strict=True):
        p_spread = None if spread is None else next(spread_p)
        if difference is None:
            continue
        p_different, p_equivalent = next(adjusted), next(equivalent)
        outcome = _outcome(difference, p_different, p_equivalent, bound, confidence)
        interval = difference.interval(confidence)
        detectable = difference.detectable(level, POWER)
        back = _from_logarithm if scale == "ratio" else float
        pairs.append(
            PairFinding(
                first=first,
                second=second,
                n=min(difference.n_first, difference.n_second),
                paired=bool(design.block),
                scale=scale,
                estimate=back(difference.estimate),
                ci_low=back(interval[0]) if interval else None,
                ci_high=back(interval[1]) if interval else None,
                p=difference.p_difference,
                p_adjusted=p_different,
                outcome=outcome,
                effect_size=None
                if design.block
                else standardised_difference(samples[first], samples[second]),
                detectable=None if detectable is None else back(detectable),
                spread=spread,
                p_spread=p_spread,
            )
        )
    return pairs


def _differences(
    stratum: Stratum, design: DataDesign, scale: ComparisonScale, names: Sequence[tuple[str, str]]
) -> tuple[list[MeanDifference | None], int]:
    """The difference of every pair, and for blocks the largest number of values without a counterpart."""
    if design.block:
        series = [matched(stratum, first, second, logarithmic=scale == "ratio") for first, second in names]
        return (
            [matched_difference(one, other) if one else None for one, other, _ in series],
            max(alone for _, _, alone in series),
        )
    scaled = math.log if scale == "ratio" else float
    samples = {name: Sample([scaled(value) for value in stratum.values(name)]) for name in stratum.series}
    return [independent_difference(samples[first], samples[second]) for first, second in names], 0


def _bound(stratum: Stratum, scale: ComparisonScale, reference: str, margin: float) -> float:
    """The margin on the scale of the differences, relative to the second level's mean."""
    if scale == "ratio":
        return math.log1p(margin)
    return margin * abs(statistics.fmean(stratum.values(reference)))


def _outcome(
    difference: MeanDifference, p_different: float, p_equivalent: float, bound: float, confidence: float
) -> PairOutcome:
    if p_equivalent < 1 - confidence:
        return "equal"
    if p_different < 1 - confidence and abs(difference.estimate) > bound:
        return "higher" if difference.estimate > 0 else "lower"
    return "open"


def _warnings(stratum: Stratum, design: DataDesign, found: StratumFindings) -> list[str]:
    warnings = []
    single = [one.level for one in found.levels if one.n == 1]
    if single:
        whose = "each" if len(single) == len(found.levels) > 1 else ", ".join(single)
        whose = "it" if whose == ALL_VALUES else whose
        if not (design.block and len(found.levels) > 1):
            warnings.append(
                f"only one run of {whose}: its scatter is unknown, so there is no interval and no test"
            )
    counts = sorted({one.n for one in found.levels})
    if len(counts) > 1:
        warnings.append(
            f"levels have different numbers of values ({counts[0]} to {counts[-1]}): some may be missing"
        )
    warnings += [
        f"{one.level}: {_some(one.outliers)} far from its other values; not left out"
        for one in found.levels
        if one.outliers
    ]
    drifting = [one for one in found.levels if one.p_trend is not None and one.p_trend < 0.05]
    warnings += [
        f"{one.level} drifts: its runs {'rise' if one.trend.tau > 0 else 'fall'} with their order "
        f"(Kendall's tau {one.trend.tau:+.2f}, p = {one.p_trend:.2g}), so they are not repetitions"
        for one in drifting
        if one.trend is not None
    ]
    if stratum.order_across_levels and not design.block and _one_stretch_each(stratum):
        warnings.append(
            "all runs of a level were made in one stretch: a change of the machine during it looks "
            "like a difference between levels, and no analysis can separate the two"
        )
    return warnings


def _some(places: Sequence[str]) -> str:
    """The first few locations and the number of the others."""
    more = len(places) - MOST_OUTLIERS_NAMED
    shown = ", ".join(places[:MOST_OUTLIERS_NAMED])
    return f"{shown} and {more} more" if more > 0 else shown


def _one_stretch_each(stratum: Stratum) -> bool:
    """Whether the runs were made one level after another."""
    if len(stratum.series) < 2 or max(map(len, stratum.series.values())) < 2:
        return False
    ordered = sorted((one.order or 0.0, level) for level, series in stratum.series.items() for one in series)
    changes = sum(a[1] != b[1] for a, b in itertools.pairwise(ordered))
    return changes == len(stratum.series) - 1
