"""Slots of switchbacks in sentences: their length, and the influence of one on the next."""

from __future__ import annotations

from blklab.analysis.carry_over import CarryOver, CarryOverFindings
from blklab.analysis.long_slots import LONG_SLOT_NS, LongSlots
from blklab.analysis.settling import Settling, SettlingKind, SettlingReason
from blklab.quantities.formatting import ratio_text
from blklab.quantities.units import format_duration
from blklab.spec.slots import SlotDecision


def slot_decision(found: Settling) -> SlotDecision:
    """The slots that follow from a pilot, as an experiment states them."""
    return SlotDecision(
        slot_ns=found.slot_ns,
        settling_ns=0 if found.slot_ns is None else found.settling_ns,
        reason=settling_text(found.reason),
    )


def settling_text(reason: SettlingReason) -> str:
    """The reason for slots of this length, or for none."""
    text = _SETTLING[reason.kind].format(
        scheduler=reason.scheduler,
        duration=format_duration(reason.duration_ns),
        latency=format_duration(reason.latency_ns or 0),
    )
    if reason.kind == "settles" and reason.latency_ns is not None:
        return f"{text}, and I/Os take up to {format_duration(reason.latency_ns)}"
    return text if reason.fewest_ios is None else f"{text}, and a slot has to hold {reason.fewest_ios} I/Os"


_SETTLING: dict[SettlingKind, str] = {
    "too_few_windows": "the pilot's slots have too few windows",
    "nothing_completed": "nothing was completed under {scheduler}",
    "slow_ios": "I/Os that take {latency} would need slots of {duration}",
    "still_changing": "under {scheduler} the load was still changing {duration} after a switch",
    "never_settles": "under {scheduler} the load needs longer than {duration} to settle after a switch",
    "settles": "under {scheduler} the load settles within {duration} of a switch",
}


def carry_over_text(found: CarryOverFindings) -> str:
    """The influence of slots on one another."""
    if not found.contrasts:
        return "too few slots to tell whether one influences the next"
    if not found.seen:
        return "no slot shows which scheduler had the disk before"
    return "; ".join(map(_contrast_text, found.seen))


def long_slots_text(found: LongSlots) -> str:
    """The ratio of two schedulers in long slots and in short ones."""
    return (
        f"in slots of {format_duration(LONG_SLOT_NS)} the I/Os of {found.first} are "
        f"{ratio_text(found.in_long)} against {found.second}, in those of {format_duration(found.slot_ns)} "
        f"{ratio_text(found.in_short)}"
    )


def _contrast_text(one: CarryOver) -> str:
    if one.kind == "within":
        return (
            f"slots of {one.scheduler} change from their first half to their second by "
            f"{ratio_text(1 / one.ratio)} more than those of {one.other}"
        )
    return f"slots of {one.scheduler} after {one.other} differ from its others by {ratio_text(one.ratio)}"
