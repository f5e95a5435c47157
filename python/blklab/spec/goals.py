"""Goals, the purpose of a comparison: weights of metrics, ``latency`` or ``iops=0.6,latency_p99=0.4``."""

from __future__ import annotations

import math
from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, field_validator

from blklab.errors import SpecError, did_you_mean

NAMED_GOALS: dict[str, dict[str, float]] = {
    "throughput": {"throughput": 1},
    "latency": {"latency_mean": 1, "latency_p99": 1, "sync_latency_p99": 1},
    "fairness": {"jain_index": 1, "share_deviation": 1, "longest_wait": 1},
    "balanced": {"throughput": 1, "latency_p99": 1, "jain_index": 1},
}
"""Weights by name. Metrics that a workload does not have (sync calls, competing jobs) are left out for it."""

OWN = "own"
"""Name of a goal with custom weights."""

GRAMMAR_HINT = (
    f"{', '.join(NAMED_GOALS)}, share:JOB, ratio:JOB/JOB, or weights over metrics such as "
    "iops=0.6,latency_p99=0.4"
)


class Goal(BaseModel):
    """Metrics with their weights; only the proportions of the weights matter."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    weights: dict[str, float]

    @field_validator("weights")
    @classmethod
    def _positive(cls, weights: dict[str, float]) -> dict[str, float]:
        if not weights:
            raise ValueError("a goal needs at least one metric")
        for metric, weight in weights.items():
            if not (math.isfinite(weight) and weight > 0):
                raise ValueError(f"the weight of {metric} must be positive, not {weight:g}")
        return weights

    @property
    def canonical(self) -> str:
        """The goal in its own grammar; parsing it again gives an equal goal."""
        if NAMED_GOALS.get(self.name) == self.weights:
            return self.name
        only = next(iter(self.weights))
        if self.weights == {only: 1} and only.startswith(("share:", "ratio:")):
            return only
        return ",".join(f"{metric}={weight!r}" for metric, weight in self.weights.items())


def parse_goal(text: str) -> Goal:
    """Reads ``NAME`` or ``METRIC=WEIGHT[,METRIC=WEIGHT…]``. Whether metrics exist is checked later.

    Raises:
        SpecError: if it is neither.
    """
    text = text.strip()
    if text in NAMED_GOALS:
        return Goal(name=text, weights=NAMED_GOALS[text])
    if "=" not in text and text.startswith(("share:", "ratio:")):
        return goal_from_weights({text: 1})
    if "=" not in text:
        close = did_you_mean(text, list(NAMED_GOALS))
        hint = f"{close} " if close else ""
        raise SpecError(f"there is no goal {text!r}", hint=f"{hint}known are {GRAMMAR_HINT}")
    weights: dict[str, float] = {}
    for part in text.split(","):
        metric, separator, number = (piece.strip() for piece in part.partition("="))
        if not (metric and separator):
            raise SpecError(f"goal: {part.strip()!r} is not METRIC=WEIGHT", hint=GRAMMAR_HINT)
        if metric in weights:
            raise SpecError(f"goal: {metric} is named twice")
        try:
            weights[metric] = float(number)
        except ValueError as error:
            raise SpecError(f"goal: the weight of {metric}, {number!r}, is not a number") from error
    return goal_from_weights(weights)


def goal_from_weights(weights: Mapping[str, float]) -> Goal:
    """A goal with custom weights.

    Raises:
        SpecError: if a weight is not positive.
    """
    try:
        return Goal(name=OWN, weights=dict(weights))
    except ValueError as error:
        first = str(error).splitlines()
        reason = next((line.strip() for line in first if "must be" in line or "needs" in line), first[0])
        raise SpecError(f"goal: {reason.removeprefix('Value error, ').partition(' [type')[0]}") from error
