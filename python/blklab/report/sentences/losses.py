"""Bounds of regret in words."""

from __future__ import annotations

import math

from blklab.analysis.regret import Regret
from blklab.quantities.formatting import confidence_text


def bound_text(bound: float | None) -> str:
    """A bound, rounded up: ``6 %``."""
    percent = 100 * (bound or 0.0)
    return f"{math.ceil(10 * percent) / 10 if percent < 10 else math.ceil(percent):g} %"


def loss_text(regret: Regret, confidence: float) -> str:
    """The bound as the reason for a choice."""
    if regret.bound is None:
        return "the most that is lost is not known yet"
    if not regret.bound:
        return f"no other is better ({confidence_text(confidence)})"
    return f"no other is more than {bound_text(regret.bound)} better ({confidence_text(confidence)})"
