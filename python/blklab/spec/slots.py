"""The length of a switchback's slots, as a pilot finds it."""

from __future__ import annotations

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
