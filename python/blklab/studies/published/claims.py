"""Printed conclusions, and whether the figures printed beside them support them.

A claim is **supported** if every comparison that it needs came out its way at the confidence asked for,
**contradicted** if one came out the other way or as equal within the margin, **not supported** otherwise:
the figures leave it open, whatever their means look like.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from blklab.analysis.statistics.multiplicity import holm
from blklab.analysis.statistics.two_samples import matched_difference
from blklab.errors import SpecError
from blklab.reanalysis.findings import ConditionFindings, PairFinding

ClaimKind = Literal["higher", "lower", "equal", "more-scattered", "less-scattered", "shares"]
ClaimStatus = Literal["supported", "not supported", "contradicted"]


class Claim(BaseModel):
    """One printed conclusion, in our words, and the comparisons that would support it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    says: str
    question: str
    """Name of the question whose figures decide."""
    condition: dict[str, str] = {}
    kind: ClaimKind
    level: str = ""
    than: list[str] = []
    """The other levels; all others where none is named."""
    shares: dict[str, float] = {}
    """Of ``shares``: percentage by level."""
    within: float = 2.0
    """Of ``shares``: percentage points that do not matter."""
    remark: str = ""


@dataclass(frozen=True)
class ClaimReading:
    """What became of a claim."""

    claim: Claim
    status: ClaimStatus
    pairs: tuple[PairFinding, ...]
    """The comparisons that it rests on, as seen from its level."""
    reasons: tuple[str, ...]
    """Beyond the pairs: what the means look like, what is missing."""


def read_claim(claim: Claim, findings: Sequence[ConditionFindings], confidence: float) -> ClaimReading:
    """Holds a claim against the findings of its question.

    Raises:
        SpecError: if the claim names a condition or level that the figures do not have.
    """
    matching = [found for found in findings if claim.condition.items() <= found.cell.condition.items()]
    if len(matching) != 1:
        raise SpecError(f"claim {claim.says!r}: {len(matching)} tables fit its condition {claim.condition}")
    found = matching[0]
    if claim.kind == "shares":
        return _shares(claim, found, confidence)
    others = claim.than or [one.level for one in found.levels if one.level != claim.level]
    for name in (claim.level, *others):
        if found.level(name) is None:
            raise SpecError(f"claim {claim.says!r}: there is no level {name!r}")
    pairs = [pair for other in others if (pair := found.pair(claim.level, other)) is not None]
    if len(pairs) < len(others) or any(pair.ci_low is None for pair in pairs):
        single = ("one run is not enough for an interval", *_direction(claim, pairs))
        return ClaimReading(claim, "not supported", tuple(pairs), single)
    if claim.kind in ("more-scattered", "less-scattered"):
        return _scatter(claim, pairs, confidence)
    wanted = claim.kind
    if all(pair.outcome == wanted for pair in pairs):
        return ClaimReading(claim, "supported", tuple(pairs), ())
    against = [pair for pair in pairs if pair.outcome not in (wanted, "open")]
    if against:
        return ClaimReading(claim, "contradicted", tuple(pairs), ())
    return ClaimReading(claim, "not supported", tuple(pairs), _direction(claim, pairs))


def _direction(claim: Claim, pairs: Sequence[PairFinding]) -> tuple[str, ...]:
    """What the bare means say, where nothing more can be said."""
    if claim.kind == "equal":
        return ()
    opposite = [
        pair.second
        for pair in pairs
        if (pair.estimate > (1 if pair.scale == "ratio" else 0)) != (claim.kind == "higher")
    ]
    if opposite:
        return (f"the means even point the other way against {', '.join(opposite)}",)
    single = any(pair.ci_low is None for pair in pairs)
    return () if single else ("the means point its way, but chance could do that",)


def _scatter(claim: Claim, pairs: Sequence[PairFinding], confidence: float) -> ClaimReading:
    wanted = 1 if claim.kind == "more-scattered" else -1
    ways = []
    for pair in pairs:
        if pair.spread is None or pair.p_spread is None:
            return ClaimReading(claim, "not supported", tuple(pairs), ("too few runs to compare scatter",))
        certain = pair.p_spread < 1 - confidence
        ways.append((1 if pair.spread.log_ratio > 0 else -1) * wanted if certain else 0)
    if all(way == 1 for way in ways):
        return ClaimReading(claim, "supported", tuple(pairs), ())
    if -1 in ways:
        return ClaimReading(claim, "contradicted", tuple(pairs), ())
    opposite = [
        pair.second
        for pair in pairs
        if pair.spread is not None and (pair.spread.log_ratio > 0) != (wanted > 0)
    ]
    reason = (
        f"the deviations even point the other way against {', '.join(opposite)}"
        if opposite
        else "the deviations point its way, but chance could do that"
    )
    return ClaimReading(claim, "not supported", tuple(pairs), (reason,))


def _shares(claim: Claim, found: ConditionFindings, confidence: float) -> ClaimReading:
    """Each level's share against its target: tests of a difference, and of lying within so many points."""
    reasons = []
    tests = []
    for level, target in claim.shares.items():
        summary = found.level(level)
        if summary is None:
            raise SpecError(f"claim {claim.says!r}: there is no level {level!r}")
        values = found.cell.values(level)
        tests.append(matched_difference(values, [target] * len(values)))
        interval = "" if summary.ci_low is None else f" [{summary.ci_low:.1f}, {summary.ci_high:.1f}]"
        reasons.append(f"{level}: {summary.mean:.1f} %{interval} against {target:g} %")
    different = [p < 1 - confidence for p in holm([test.p_difference for test in tests])]
    equal = [p < 1 - confidence for p in holm([test.p_equivalence(claim.within) for test in tests])]
    outside = any(
        differs and abs(test.estimate) > claim.within for differs, test in zip(different, tests, strict=True)
    )
    status: ClaimStatus = "contradicted" if outside else "supported" if all(equal) else "not supported"
    return ClaimReading(claim, status, (), tuple(reasons))
