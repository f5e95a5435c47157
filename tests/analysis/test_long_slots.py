"""Long slots: noise is no contradiction, and a scheduler that does otherwise when left alone is one."""

from __future__ import annotations

import math
import random

import pytest

from blklab.analysis.long_slots import LONG_ROUNDS, LONG_SLOT_NS, compare_long_slots
from blklab.records.samples import RunSample, SlotSample
from blklab.report.sentences.slots import long_slots_text
from blklab.spec.plan import CellKey

SHORT_NS = 500_000_000
WINDOW_NS = 50_000_000
STRETCHES, ROUNDS = 3, 8


def samples_of(seed: int, *, change: float = 1.0, wander: float = 0.03) -> list[RunSample]:
    """Two schedulers on a disk whose speed wanders; ``one`` is `change` times as fast after a second."""
    stream = random.Random(seed)  # noqa: S311
    level = 0.0
    made: list[RunSample] = []

    def slot(stretch: int, number: int, label: str, start_ns: int, length_ns: int, long: bool) -> int:
        nonlocal level
        ios = []
        for window in range(length_ns // WINDOW_NS):
            level = 0.98 * level + stream.gauss(0, wander * math.sqrt(1 - 0.98**2))
            late = label == "one" and window * WINDOW_NS >= 1_000_000_000
            ios.append(100 * math.exp(level) * (change if late else 1.0) * stream.gauss(1, 0.05))
        cut_ns = length_ns // 2 if long else WINDOW_NS
        place = SlotSample(
            stretch=stretch,
            start_ns=start_ns,
            end_ns=start_ns + length_ns,
            switch_ns=10_000_000,
            kept_from_ns=start_ns + cut_ns,
            kept_to_ns=start_ns + length_ns,
            window_ns=WINDOW_NS,
            ios=ios,
            long=long,
        )
        key = CellKey(block=number, sequence=len(made), position=0, workload="w", scheduler=label, seed=0)
        made.append(
            RunSample(
                cell=key,
                status="ok",
                started_at="2026-01-01T00:00:00.000+00:00",
                elapsed_ns=1,
                jobs=[],
                slot=place,
            )
        )
        return start_ns + length_ns

    for stretch in range(STRETCHES + 1):
        long = stretch == STRETCHES
        at_ns = 0
        for number in range(LONG_ROUNDS if long else ROUNDS):
            labels = ["one", "other"]
            stream.shuffle(labels)
            for label in labels:
                at_ns = slot(
                    stretch, stretch * ROUNDS + number, label, at_ns, LONG_SLOT_NS if long else SHORT_NS, long
                )
    return made


def test_noise_is_rarely_a_contradiction(seed: int) -> None:
    wrong = 0
    for number in range(200):
        found = compare_long_slots("w", samples_of(seed + number), SHORT_NS)
        assert found is not None
        wrong += found.p < 0.05
    assert wrong <= 24, "of 200, where 10 are expected"


@pytest.mark.parametrize("change", [0.7, 1.4])
def test_a_scheduler_that_changes_when_left_alone_is_found(seed: int, change: float) -> None:
    found = [compare_long_slots("w", samples_of(seed + n, change=change), SHORT_NS) for n in range(20)]
    assert sum(one is not None and one.p < 0.05 for one in found) >= 15
    (first, *_) = [one for one in found if one is not None]
    sign = 1 if first.first == "one" else -1
    assert first.log_change * sign == pytest.approx(math.log(change), abs=0.15)
    assert "in slots of 4.00 s" in long_slots_text(first)
    assert "500 ms" in long_slots_text(first)


def test_without_long_slots_there_is_nothing_to_compare(seed: int) -> None:
    short = [sample for sample in samples_of(seed) if sample.slot is not None and not sample.slot.long]
    assert compare_long_slots("w", short, SHORT_NS) is None
    long = [sample for sample in samples_of(seed) if sample.slot is not None and sample.slot.long]
    assert compare_long_slots("w", long, SHORT_NS) is None
    assert compare_long_slots("another", samples_of(seed), SHORT_NS) is None
