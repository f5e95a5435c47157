"""The length of a switchback's slots, as a pilot finds it."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field


class SlotDecision(BaseModel):
    """Whether the schedulers of a workload take turns within one load, and how fast."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    slot_ns: int | None = Field(default=None, gt=0)
    """Length of a slot, from one switch to the next; None if each scheduler has runs of its own."""
    settling_ns: int = Field(default=0, ge=0)
    """Time after the beginning of a slot that is cut off, the switch included."""
    first_round: int = Field(default=0, ge=0)
    """Rounds before this one had slots that turned out too short; they are kept, but not analysed."""
    reason: str
    """Why the slots are this long, or why there are none, in one line."""


def with_one_design(reasons: Mapping[str, str | None]) -> dict[str, str | None]:
    """Reasons for runs where a goal combines the workloads: its score takes one value of each for each block.

    Args:
        reasons: Why a workload has runs, by its name; None for those that have slots.

    Returns:
        The same; if any has runs, a reason for each.
    """
    refused = [(name, reason) for name, reason in reasons.items() if reason is not None]
    if not refused:
        return dict(reasons)
    name, first = refused[0]
    rest = f"the goal needs one design for all workloads, and {name} has runs: {first}"
    return {other: rest if reason is None else reason for other, reason in reasons.items()}


def slots_with_one_design(slots: Mapping[str, SlotDecision]) -> dict[str, SlotDecision]:
    """`with_one_design` for decisions."""
    reasons = with_one_design(
        {name: decision.reason if decision.slot_ns is None else None for name, decision in slots.items()}
    )
    return {
        name: decision if (reason := reasons[name]) is None else SlotDecision(reason=reason)
        for name, decision in slots.items()
    }
