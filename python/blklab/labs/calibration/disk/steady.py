"""Conditions a disk until it is steady: what is measured on fresh flash does not last.

The rule is SNIA's (Solid State Storage Performance Test Specification 2.0.2, October 2020, definition of
steady state): over the last five rounds, the rates differ by at most 20 % of their average, and the line
through them rises or falls by at most 10 % of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict

from blklab.errors import RequirementError
from blklab.labs.calibration.disk.ground import DiskFacts, Measure
from blklab.labs.calibration.disk.placed_loads import PlacedLoad
from blklab.quantities.formatting import count_of

WINDOW = 5
MOST_ROUNDS = 25
ROUND_US = 60_000_000
_MOST_RANGE = 0.2
_MOST_SLOPE = 0.1
_DEPTH = 32


class SteadyState(BaseModel):
    """The rounds of conditioning."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    iops: list[float]
    """Of each round."""
    reached: bool
    spread: float
    """Of the last five rounds: largest less smallest, over their average."""
    change: float
    """Rise of the line through them, over their average."""

    def remarks(self) -> list[str]:
        """A note for the reader of the profile."""
        rounds = f"{count_of(len(self.iops), 'round')} of random writes"
        if not self.reached:
            return [f"the disk was not steady after {rounds}: its figures may change with further writes"]
        last = f"the last {WINDOW} differ by {100 * self.spread:.0f} %"
        return [f"steady after {rounds}: {last} and change by {100 * self.change:+.0f} %"]


def conditioning_load(space_bytes: int, queue_depth: int) -> PlacedLoad:
    """Random writes over the whole space."""
    return PlacedLoad(
        name="condition-randwrite-4k",
        readwrite="randwrite",
        block_kib=4,
        depth=min(_DEPTH, max(1, queue_depth)),
        offset_bytes=0,
        size_bytes=space_bytes // (1 << 20) * (1 << 20),
        from_rest=True,
    )


def require_conditionable(facts: DiskFacts, target: str) -> None:
    """Makes sure that writes change the disk, and nobody else's data.

    Raises:
        RequirementError: if they would not, or would.
    """
    if not facts.writable:
        raise RequirementError(
            f"{target} is only read, so it cannot be brought to a steady state",
            hint="name a directory on it: blklab writes to a file of its own there",
        )
    if facts.rested:
        raise RequirementError(
            f"{target} is a model, which begins each run in the same condition",
            hint="models of kind flash take condition=random",
        )


def conditioned(measure: Measure, load: PlacedLoad, *, round_us: int = ROUND_US) -> SteadyState:
    """Runs rounds until the disk is steady, or there were 25.

    Args:
        measure: Measures a load for so many microseconds.
        load: From `conditioning_load`.
        round_us: Length of a round; SNIA's is a minute.
    """
    rates: list[float] = []
    while True:
        rates.append(measure(load, round_us).iops)
        state = steady_state(rates)
        if state.reached or len(rates) >= MOST_ROUNDS:
            return state


def steady_state(rates: Sequence[float]) -> SteadyState:
    """Whether the last five rounds were steady."""
    last = np.array(rates[-WINDOW:])
    average = float(last.mean())
    spread = float(np.ptp(last)) / average
    slope = float(np.polyfit(np.arange(len(last)), last, 1)[0]) if len(last) > 1 else 0.0
    change = slope * (len(last) - 1) / average
    reached = len(last) == WINDOW and spread <= _MOST_RANGE and abs(change) <= _MOST_SLOPE
    return SteadyState(iops=list(rates), reached=reached, spread=spread, change=change)
