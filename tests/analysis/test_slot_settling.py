"""How fast schedulers settle after a switch."""

from __future__ import annotations

import random

import pytest

from blklab.analysis.settling import SHORTEST_SLOT_NS, recommended_slots, settling_ns
from blklab.records.samples import SlotSample

WINDOW_NS = 25_000_000
WINDOWS = 40
SWITCH_NS = 30_000_000


def _slot(rates: list[float]) -> SlotSample:
    length_ns = len(rates) * WINDOW_NS
    return SlotSample(
        stretch=0,
        start_ns=0,
        end_ns=length_ns,
        switch_ns=SWITCH_NS,
        kept_from_ns=SWITCH_NS,
        kept_to_ns=length_ns,
        window_ns=WINDOW_NS,
        ios=rates,
    )


def _slots(settles_after: int, *, count: int = 3, scatter: float = 0.02, seed: int = 1) -> list[SlotSample]:
    """Slots at a third of their rate until a window, then at their plateau."""
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    levels = [chance.uniform(500, 2000) for _ in range(count)]
    return [
        _slot(
            [
                level * (1 / 3 if window < settles_after else 1) * chance.gauss(1, scatter)
                for window in range(WINDOWS)
            ]
        )
        for level in levels
    ]


@pytest.mark.parametrize("windows", [2, 4, 8, 16])
def test_the_first_step_at_the_plateau_is_found(windows: int) -> None:
    found = settling_ns(_slots(windows))
    assert found is not None
    assert found == pytest.approx(windows * WINDOW_NS, abs=2 * WINDOW_NS)


def test_nothing_settles_before_the_switch_is_over() -> None:
    assert settling_ns(_slots(0)) == SWITCH_NS + WINDOW_NS


@pytest.mark.parametrize("seed", range(20))
def test_noise_leads_to_longer_slots_and_not_to_refusal(seed: int) -> None:
    found = settling_ns(_slots(2, scatter=0.5, seed=seed))
    assert found is not None
    assert SWITCH_NS + WINDOW_NS <= found <= WINDOWS // 2 * WINDOW_NS


def test_schedulers_that_settle_at_once_have_the_shortest_slots() -> None:
    decision = recommended_slots({"none": _slots(1), "kyber": _slots(1, seed=2)})
    assert (decision.slot_ns, decision.settling_ns) == (SHORTEST_SLOT_NS, SWITCH_NS + WINDOW_NS)


def test_the_slowest_scheduler_decides() -> None:
    decision = recommended_slots({"none": _slots(1), "bfq": _slots(12, seed=2)})
    assert decision.slot_ns == 4 * decision.settling_ns == 4 * 300_000_000
    assert decision.reason == "bfq settled 300 ms after a switch"


def test_a_scheduler_that_does_not_settle_is_not_switched() -> None:
    decision = recommended_slots({"none": _slots(1), "bfq": _slots(24, seed=2)})
    assert decision.slot_ns is None
    assert decision.reason == "bfq had not settled 500 ms after a switch"


def test_slots_without_io_tell_nothing() -> None:
    assert settling_ns([_slot([0.0] * WINDOWS)]) is None
