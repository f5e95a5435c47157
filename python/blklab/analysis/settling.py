"""How long schedulers take to settle after a switch, and how long their slots should therefore be."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from blklab.quantities.units import format_duration
from blklab.records.samples import SlotSample
from blklab.spec.slots import SlotDecision

SHORTEST_SLOT_NS = 250_000_000
"""Shorter slots gain little: a disk's speed wanders over seconds, and a switch takes some 30 ms."""
SETTLED_PART = 4
"""A slot is this many times as long as settling, so that at most a quarter is cut off."""
TOLERANCE = 0.05
"""A rate this close to the plateau has settled."""
STEP_NS = 50_000_000
"""Rates are judged over steps of this length."""
_DEVIATIONS = 2.5
"""A rate that is further from the plateau than this many standard errors is not there by chance."""
_TOGETHER = 3
_CLEARLY = 0.15
_SURE = 2.0
"""Rates that have not settled after half a slot are off by this fraction, and by this many times chance."""

Floats = NDArray[np.float64]


def recommended_slots(slots: Mapping[str, Sequence[SlotSample]]) -> SlotDecision:
    """The slots that a pilot recommends.

    Settling that all schedulers share, above all the switch itself, is looked for in all slots together,
    where noise hides it least.

    Args:
        slots: The pilot's by scheduler, all of about one length.

    Returns:
        Without a length if a scheduler takes longer than half of the pilot's slots to settle.
    """
    every = [slot for own in slots.values() for slot in own]
    limit_ns = min(slot.end_ns - slot.start_ns for slot in every) // 2
    longest_ns, slowest = 0, ""
    for label, own in [*slots.items(), ("the load", every)]:
        found = settling_ns(own)
        if found is None:
            return SlotDecision(reason=f"{label} had not settled {format_duration(limit_ns)} after a switch")
        if found > longest_ns:
            longest_ns, slowest = found, label
    slot_ns = max(SHORTEST_SLOT_NS, math.ceil(longest_ns * SETTLED_PART / STEP_NS) * STEP_NS)
    return SlotDecision(
        slot_ns=slot_ns,
        settling_ns=longest_ns,
        reason=f"{slowest} settled {format_duration(longest_ns)} after a switch",
    )


def settling_ns(slots: Sequence[SlotSample]) -> int | None:
    """Time from the beginning of a slot until its rate has reached its plateau.

    The plateau of each slot is its second half. The rates of the first half, divided by it, are judged in
    steps by their median over the slots. They have settled with the first step that is as close to the
    plateau as `TOLERANCE` or chance explains, if so is the mean of the three steps from there. Later dips are
    noise or carry-over, for which the measured slots themselves are tested (`blklab.analysis.carry_over`).

    Args:
        slots: Of about equal length.

    Returns:
        Half a slot if no step of the first half has settled for sure, as on a very noisy machine; None if
        even its end is clearly off the plateau.
    """
    window_ns = slots[0].window_ns
    size = max(1, STEP_NS // window_ns)
    half = min(len(slot.ios) for slot in slots) // 2
    steps = half // size
    profiles = []
    for slot in slots:
        rates = np.array(slot.ios, dtype=float)
        plateau = float(rates[half:].mean())
        if plateau > 0:
            profiles.append(rates / plateau)
    if not profiles or not steps:
        return None
    first = [profile[: steps * size].reshape(steps, size).mean(axis=1) for profile in profiles]
    deviations = np.median(np.array(first), axis=0) - 1
    chance = _DEVIATIONS * _scatter(profiles, half, size)
    switched_ns = int(np.median([slot.switch_ns for slot in slots])) + window_ns
    for step in range(steps):
        near = deviations[step : step + _TOGETHER]
        if abs(near[0]) <= max(TOLERANCE, chance) and abs(near.mean()) <= max(
            TOLERANCE, chance / math.sqrt(len(near))
        ):
            return max(step * size * window_ns, switched_ns)
    end = deviations[-_TOGETHER:]
    clearly_off = abs(end.mean()) > max(_CLEARLY, _SURE * chance / math.sqrt(len(end)))
    return None if clearly_off else max(half * window_ns, switched_ns)


def _scatter(profiles: Sequence[Floats], half: int, size: int) -> float:
    """Standard error of a step's median over the slots, from the steps of the plateau."""
    deviations = []
    for profile in profiles:
        steps = len(profile[half:]) // size
        means = profile[half : half + steps * size].reshape(steps, size).mean(axis=1)
        deviations.append(float(means.std(ddof=1)) if steps > 1 else 0.0)
    # The median of normal values scatters by a quarter more than their mean.
    return 1.25 * float(np.median(deviations)) / math.sqrt(len(profiles))
