"""Carry-over: not seen where there is none, seen in slots that settle slowly or remember."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from slot_samples import SLOT_MS, WINDOW_MS, Speed, slot_samples, switched_spec

from blklab.analysis.carry_over import CarryOverFindings, carry_over, kept_windows
from blklab.report.sentences.slots import carry_over_text
from blklab.spec.stretches import Slot

WINDOWS = SLOT_MS // WINDOW_MS


def _found(labels: str, speed: Speed, rounds: int = 60) -> CarryOverFindings:
    spec = switched_spec(labels)
    return carry_over("reads", slot_samples(spec, rounds, speed), level=0.05)


def _noise(seed: int) -> Speed:
    """A wandering speed, 5 % of noise in every window; b is a tenth slower than the others."""
    generator = np.random.default_rng(seed)
    level = np.exp(np.cumsum(generator.normal(0, 0.03, 2000)))

    def speed(slots: Sequence[Slot], place: int, window: int) -> float:
        own = 0.9 if slots[place].scheduler.label == "b" else 1.0
        return float(30 * own * level[place] * np.exp(generator.normal(0, 0.05)))

    return speed


def test_no_carry_over_is_seldom_seen() -> None:
    seen = [bool(_found("abc", _noise(seed), rounds=40).seen) for seed in range(40)]
    assert sum(seen) <= 7  # 5 % and three binomial standard deviations


def test_a_scheduler_that_settles_slowly_is_named() -> None:
    noise = _noise(1)

    def speed(slots: Sequence[Slot], place: int, window: int) -> float:
        slow = slots[place].scheduler.label == "b" and window < 4
        return noise(slots, place, window) * (0.8 if slow else 1.0)

    found = _found("ab", speed)
    assert [(one.kind, {one.scheduler, one.other}) for one in found.seen] == [("within", {"a", "b"})]
    assert "first half" in carry_over_text(found)


def test_a_scheduler_that_leaves_something_behind_is_named() -> None:
    noise = _noise(2)

    def speed(slots: Sequence[Slot], place: int, window: int) -> float:
        after_c = place > 0 and slots[place - 1].scheduler.label == "c" != slots[place].scheduler.label
        return noise(slots, place, window) * (0.85 if after_c else 1.0)

    found = _found("abc", speed, rounds=80)
    seen = {(one.kind, one.scheduler, one.other) for one in found.seen}
    assert seen == {("before", "a", "c"), ("before", "b", "c")}
    assert all(one.ratio < 1 for one in found.seen)
    assert "slots of a after c" in carry_over_text(found)


def test_too_few_slots_say_nothing() -> None:
    found = _found("ab", _noise(3), rounds=2)
    assert (found.contrasts, found.seen) == ([], [])
    assert carry_over_text(found).startswith("too few slots")


def test_only_windows_within_the_kept_part_count() -> None:
    spec = switched_spec("ab")
    slot = slot_samples(spec, 1, lambda slots, place, window: float(window))[1].slot
    assert slot is not None
    cut = slot.model_copy(update={"kept_from_ns": slot.start_ns + 60_000_000})
    assert len(kept_windows(slot)) == WINDOWS
    assert kept_windows(cut) == [float(window) for window in range(3, WINDOWS)]
