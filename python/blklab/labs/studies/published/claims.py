"""Compares printed conclusions with the values printed beside them.

A claim is **supported** if every comparison that it needs has the claimed outcome at the chosen confidence.
It is **contradicted** if one has the opposite outcome or is equal within the margin. Otherwise it is **not
supported**: the values leave it open, however their means look.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from blklab.analysis.statistics.multiplicity import holm
from blklab.analysis.statistics.two_samples import matched_difference
from blklab.errors import SpecError
from blklab.labs.reanalysis.findings import PairFinding, StratumFindings

ClaimKind = Literal["higher", "lower", "equal", "more-scattered", "less-scattered", "shares"]
ClaimStatus = Literal["supported", "not supported", "contradicted"]


class Claim(BaseModel):
    """One printed conclusion, in our words, and the comparisons that would support it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    says: str
    reanalysis: str
    """Name of the reanalysis that decides."""
    condition: dict[str, str] = {}
    kind: ClaimKind
    level: str = ""
    than: list[str] = []
    """The other levels; empty: all other levels."""
    shares: dict[str, float] = {}
    """For ``shares``: the claimed percentage of each level."""
    within: float = 2.0
    """For ``shares``: the tolerance in percentage points."""
    remark: str = ""


@dataclass(frozen=True)
class ClaimReading:
    """A claim compared with the published values."""

    claim: Claim
    status: ClaimStatus
    pairs: tuple[PairFinding, ...]
    """The comparisons that the claim depends on, with its level first."""
    reasons: tuple[str, ...]
    """Reasons beyond the pairs, such as the direction of the means or missing runs."""


def read_claim(claim: Claim, findings: Sequence[StratumFindings], confidence: float) -> ClaimReading:
    """Compares a claim with the findings of its reanalysis.

    Raises:
        SpecError: if the claim names a condition or level that the values do not have.
    """
    matching = [found for found in findings if claim.condition.items() <= found.stratum.condition.items()]
    if len(matching) != 1:
        raise SpecError(f"claim {claim.says!r}: {len(matching)} tables match its condition {claim.condition}")
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
    """The direction of the means, if the comparison itself does not decide."""
    if claim.kind == "equal":
        return ()
    opposite = [
        pair.second
        for pair in pairs
        if (pair.estimate > (1 if pair.scale == "ratio" else 0)) != (claim.kind == "higher")
    ]
    if opposite:
        return (f"the means even point the other way, compared with {', '.join(opposite)}",)
    single = any(pair.ci_low is None for pair in pairs)
    return () if single else ("the means agree with it, but chance could explain that",)


def _scatter(claim: Claim, pairs: Sequence[PairFinding], confidence: float) -> ClaimReading:
    wanted = 1 if claim.kind == "more-scattered" else -1
    ways = []
    for pair in pairs:
        if pair.spread is None or pair.p_spread is None:
            return ClaimReading(
                claim, "not supported", tuple(pairs), ("there are too few runs to compare the scatter",)
            )
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
        f"the deviations even point the other way, compared with {', '.join(opposite)}"
        if opposite
        else "the deviations agree with it, but chance could explain that"
    )
    return ClaimReading(claim, "not supported", tuple(pairs), (reason,))


def _shares(claim: Claim, found: StratumFindings, confidence: float) -> ClaimReading:
    """Compares each level's share with its target: a test of difference and one of equivalence."""
    reasons = []
    tests = []
    for level, target in claim.shares.items():
        summary = found.level(level)
        if summary is None:
            raise SpecError(f"claim {claim.says!r}: there is no level {level!r}")
        values = found.stratum.values(level)
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
