"""The length of slots: settling that is there is found, settling that is not there costs nothing."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from blklab.analysis.settling import (
    LARGEST_CUT,
    SHORTEST_SLOT_NS,
    settling_time,
)
from blklab.records.samples import SlotSample
from blklab.report.sentences.slots import settling_text, slot_decision

MS = 1_000_000
Shape = Callable[[float], float]
"""The rate at a time after the switch (s), relative to the plateau."""


def slot_of(ios: list[float], *, switch_ns: int = 0) -> SlotSample:
    """A slot with windows of 10 ms."""
    length_ns = 10 * MS * len(ios)
    return SlotSample(
        stretch=0,
        start_ns=0,
        end_ns=length_ns,
        switch_ns=switch_ns,
        kept_from_ns=0,
        kept_to_ns=length_ns,
        window_ns=10 * MS,
        ios=ios,
    )


def flat(_time_s: float) -> float:
    return 1.0


def relaxing(amplitude: float, tau_s: float) -> Shape:
    return lambda time_s: 1 + amplitude * math.exp(-time_s / tau_s)


def slots_of(
    shape: Shape,
    *,
    seed: int,
    slots: int = 8,
    length_ms: int = 4000,
    rate: float = 100.0,
    noise: float = 0.05,
    wander: float = 0.0,
) -> list[SlotSample]:
    """Slots with windows of 10 ms, a switch of 28 ms, and a level that wanders from slot to slot."""
    stream = random.Random(seed)  # noqa: S311
    made = []
    for _ in range(slots):
        level = math.exp(stream.gauss(0, wander))
        ios = []
        for number in range(length_ms // 10):
            value = rate * level * shape(number / 100) * max(0.0, stream.gauss(1, noise))
            ios.append(0.0 if number < 3 else value)
        made.append(slot_of(ios, switch_ns=28 * MS))
    return made


def test_schedulers_that_settle_at_once_have_the_shortest_slots(seed: int) -> None:
    found = settling_time({"none": slots_of(flat, seed=seed), "kyber": slots_of(flat, seed=seed + 1)})
    assert found.slot_ns is not None
    assert found.slot_ns < 3 * SHORTEST_SLOT_NS
    assert found.settling_ns <= LARGEST_CUT * found.slot_ns
    assert slot_decision(found).slot_ns == found.slot_ns
    assert "settles within" in settling_text(found.reason)


@pytest.mark.parametrize("tau_s", [0.02, 0.1, 0.2])
@pytest.mark.parametrize("amplitude", [-0.5, 0.3])
def test_what_settles_is_cut_off(seed: int, amplitude: float, tau_s: float) -> None:
    shape = relaxing(amplitude, tau_s)
    slots = {"none": slots_of(flat, seed=seed), "bfq": slots_of(shape, seed=seed + 1, noise=0.02)}
    found = settling_time(slots)
    assert found.slot_ns is not None
    kept = range(found.settling_ns // (10 * MS), found.slot_ns // (10 * MS))
    bias = sum(shape(number / 100) for number in kept) / len(kept) - 1
    assert abs(bias) < 0.015, found
    assert found.settling_ns <= LARGEST_CUT * found.slot_ns + 10 * MS


def test_slow_settling_is_refused_with_its_scheduler(seed: int) -> None:
    slots = {"none": slots_of(flat, seed=seed), "bfq": slots_of(relaxing(0.5, 3.0), seed=seed)}
    found = settling_time(slots)
    assert found.slot_ns is None
    assert slot_decision(found).slot_ns is None
    assert "bfq" in settling_text(found.reason)
    late = slots_of(lambda time_s: 1.0 if time_s < 1.9 else 1.1, seed=seed, noise=0.02)
    assert settling_time({"kyber": late}).slot_ns is None or settling_time({"kyber": late}).settling_ns > 1e9


def test_drift_from_slot_to_slot_is_not_settling(seed: int) -> None:
    slots = {label: slots_of(flat, seed=seed + number, wander=0.3) for number, label in enumerate("ab")}
    found = settling_time(slots)
    assert found.slot_ns is not None
    assert found.slot_ns < 4 * SHORTEST_SLOT_NS


def test_slots_hold_enough_ios_and_are_long_against_latencies(seed: int) -> None:
    slow = {"none": slots_of(flat, seed=seed, rate=1.0)}
    few = settling_time(slow)
    assert few.slot_ns is not None
    assert few.slot_ns >= 480 * MS
    assert "50 I/Os" in settling_text(few.reason)
    latency = settling_time({"none": slots_of(flat, seed=seed)}, tail_latency_ns=80 * MS)
    assert latency.slot_ns is not None
    assert latency.slot_ns >= 800 * MS
    assert "80.0 ms" in settling_text(latency.reason)
    refused = settling_time({"none": slots_of(flat, seed=seed)}, tail_latency_ns=2000 * MS)
    assert refused.slot_ns is None
    assert "2.00 s" in settling_text(refused.reason)


def test_pilots_that_say_nothing_are_refused() -> None:
    assert settling_time({}).slot_ns is None
    assert settling_time({"none": []}).slot_ns is None
    assert settling_time({"none": [slot_of([0.0] * 100)]}).slot_ns is None
