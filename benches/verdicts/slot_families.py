"""Kinds of noise within one continuous load, slot by slot, for the switchback.

Each gives the values that the slots of two equal schedulers would have: an array (experiments, 2, slots), of
which an experiment sees one scheduler's value in each slot. Most kinds of noise are the disk's, and so the
same for both; in some one scheduler scatters more. The means of both are equal.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RECORDED = Path(__file__).with_name("windows.zip")
SLOT_DEVIATION = 0.06
"""Standard deviation of the logarithm of a slot, as on the disk of `RECORDED` when quiet."""
SLOT_WINDOWS = 2
"""Windows of `RECORDED` (50 ms) that make one slot."""

Draw = Callable[[np.random.Generator, int, int], Floats]


@dataclass(frozen=True)
class SlotFamily:
    """A kind of noise."""

    name: str
    meaning: str
    draw: Draw
    """(generator, experiments, slots) → values of shape (experiments, 2, slots)."""
    alike: bool = True
    """Whether both schedulers' slots are alike up to a factor, which the design assumes. Where they are not,
    its level is not promised, and is measured to show how much that matters."""


def slot_families() -> list[SlotFamily]:
    """All kinds of noise, the recorded ones first."""
    return [*_recorded(), *_made_up()]


def tuning_families() -> list[SlotFamily]:
    """Those that the constants of the switchback were chosen by; none of them is among `slot_families`."""

    def laplace(generator: np.random.Generator, experiments: int, slots: int) -> Floats:
        return _both(np.exp(generator.laplace(0, SLOT_DEVIATION / np.sqrt(2), (experiments, slots))))

    def bursts(generator: np.random.Generator, experiments: int, slots: int) -> Floats:
        slow = _sticky(generator, experiments, slots, begin=0.02, end=0.3)
        return _both(_white(generator, experiments, slots, 0.04) * np.where(slow, 0.4, 1.0))

    def rough(generator: np.random.Generator, experiments: int, slots: int) -> Floats:
        level = _wander(generator, experiments, slots, correlation=0.9, deviation=0.1)
        return _both(_white(generator, experiments, slots, 0.05) * np.exp(level))

    def pauses(generator: np.random.Generator, experiments: int, slots: int) -> Floats:
        share, left = 0.05, 0.2
        hit = generator.random((experiments, slots)) < share
        values = np.where(hit, left, 1.0) / (1 - share * (1 - left))
        own = values * _white(generator, experiments, slots, 0.05)
        return np.stack([own, _white(generator, experiments, slots, 0.05)], axis=1)

    return [
        SlotFamily("plain", "independent, normal", lambda g, e, s: _both(_white(g, e, s, SLOT_DEVIATION))),
        SlotFamily("Laplace", "longer tails", laplace),
        SlotFamily("slow bursts", "now and then three slots at 40 % of the speed", bursts),
        SlotFamily("rough", "AR(1), correlation 0.9", rough),
        SlotFamily("pauses", "one scheduler is at 20 % of its speed in a twentieth of its slots", pauses),
    ]


def _made_up() -> list[SlotFamily]:
    deviation = SLOT_DEVIATION

    def normal(generator: np.random.Generator, experiments: int, slots: int) -> Floats:
        return _both(_white(generator, experiments, slots, deviation))

    def wander(generator: np.random.Generator, experiments: int, slots: int) -> Floats:
        level = _wander(generator, experiments, slots, correlation=0.98, deviation=0.2)
        return _both(_white(generator, experiments, slots, 0.04) * np.exp(level))

    def drift(generator: np.random.Generator, experiments: int, slots: int) -> Floats:
        return _both(
            _white(generator, experiments, slots, deviation) * np.exp(np.linspace(0, np.log(0.5), slots))
        )

    def jumps(generator: np.random.Generator, experiments: int, slots: int) -> Floats:
        changes = generator.random((experiments, slots)) < 1 / 40
        levels = np.cumsum(changes * generator.normal(0, 0.3, (experiments, slots)), axis=1)
        return _both(_white(generator, experiments, slots, deviation) * np.exp(levels))

    def alternating(generator: np.random.Generator, experiments: int, slots: int) -> Floats:
        swing = np.where(np.arange(slots) % 2, 1.3, 1.0)
        return _both(_white(generator, experiments, slots, 0.03) * swing)

    def student(generator: np.random.Generator, experiments: int, slots: int) -> Floats:
        return _both(np.exp(0.5 * deviation * generator.standard_t(2, (experiments, slots))))

    def spikes(generator: np.random.Generator, experiments: int, slots: int) -> Floats:
        hit = generator.random((experiments, slots)) < 0.05
        slowdown = np.exp(-np.exp(generator.normal(-1.0, 1.0, (experiments, slots))))
        return _both(_white(generator, experiments, slots, deviation) * np.where(hit, slowdown, 1.0))

    def stalls(generator: np.random.Generator, experiments: int, slots: int) -> Floats:
        stalled = _sticky(generator, experiments, slots, begin=0.01, end=0.5)
        return _both(_white(generator, experiments, slots, deviation) * np.where(stalled, 0.0, 1.0))

    def bimodal(generator: np.random.Generator, experiments: int, slots: int) -> Floats:
        fast = generator.random((experiments, slots)) < 0.5
        return _both(_white(generator, experiments, slots, 0.03) * np.where(fast, 2.0, 1.0))

    def sticky(generator: np.random.Generator, experiments: int, slots: int) -> Floats:
        fast = _sticky(generator, experiments, slots, begin=0.1, end=0.1)
        return _both(_white(generator, experiments, slots, 0.03) * np.where(fast, 2.0, 1.0))

    def few(generator: np.random.Generator, experiments: int, slots: int) -> Floats:
        return _both(generator.choice([43.0, 44.0, 46.0, 48.0], (experiments, slots), p=[0.3, 0.5, 0.1, 0.1]))

    def unequal(generator: np.random.Generator, experiments: int, slots: int) -> Floats:
        steady, rough = (_white(generator, experiments, slots, size) for size in (0.03, 0.15))
        return np.stack([rough, steady], axis=1)

    def hiccups(generator: np.random.Generator, experiments: int, slots: int) -> Floats:
        share, depth = 0.1, 0.5
        hit = generator.random((experiments, slots)) < share
        values = np.where(hit, 1 - depth, 1.0) / (1 - share * depth)
        own = values * _white(generator, experiments, slots, deviation)
        return np.stack([own, _white(generator, experiments, slots, deviation)], axis=1)

    return [
        SlotFamily("normal", "independent, normal, 6 % a slot", normal),
        SlotFamily("wander", "AR(1): correlation 0.98 from slot to slot, 20 %, and 4 % of its own", wander),
        SlotFamily("drift", "loses half of its speed from the first slot to the last", drift),
        SlotFamily("jumps", "the level jumps by some 30 % every forty slots or so", jumps),
        SlotFamily(
            "alternating", "every second slot is 30 % faster, whichever scheduler has it", alternating
        ),
        SlotFamily("Student t", "two degrees of freedom: no finite variance", student),
        SlotFamily("spikes", "a twentieth of the slots slower, some by far", spikes),
        SlotFamily("stalls", "now and then no I/O for two slots", stalls),
        SlotFamily("bimodal", "each slot by chance twice as fast", bimodal),
        SlotFamily("sticky modes", "the same, for ten slots in the mean", sticky),
        SlotFamily("few I/Os", "43, 44, 46 or 48 in a slot, so that many are exactly equal", few),
        SlotFamily(
            "unequal scatter", "15 % a slot for one scheduler, 3 % for the other", unequal, alike=False
        ),
        SlotFamily(
            "hiccups", "one scheduler is at half its speed in a tenth of its slots", hiccups, alike=False
        ),
    ]


def _both(values: Floats) -> Floats:
    return np.stack([values, values], axis=1)


def _white(generator: np.random.Generator, experiments: int, slots: int, deviation: float) -> Floats:
    """Log-normal values with a mean of 1."""
    return np.exp(generator.normal(-(deviation**2) / 2, deviation, (experiments, slots)))


def _wander(
    generator: np.random.Generator, experiments: int, slots: int, *, correlation: float, deviation: float
) -> Floats:
    shocks = generator.normal(0, deviation, (experiments, slots))
    series = np.empty_like(shocks)
    series[:, 0] = shocks[:, 0]
    for slot in range(1, slots):
        innovation = np.sqrt(1 - correlation**2) * shocks[:, slot]
        series[:, slot] = correlation * series[:, slot - 1] + innovation
    return series


def _sticky(
    generator: np.random.Generator, experiments: int, slots: int, *, begin: float, end: float
) -> NDArray[np.bool_]:
    """A state that begins and ends with given probabilities per slot."""
    chances = generator.random((experiments, slots))
    states = np.empty((experiments, slots), dtype=bool)
    states[:, 0] = chances[:, 0] < begin / (begin + end)
    for slot in range(1, slots):
        before = states[:, slot - 1]
        states[:, slot] = np.where(before, chances[:, slot] >= end, chances[:, slot] < begin)
    return states


def _recorded() -> list[SlotFamily]:
    if not RECORDED.exists():
        return []
    found = []
    for name, meaning, windows in recorded_windows(RECORDED):
        slots = len(windows) // SLOT_WINDOWS
        values = windows[: slots * SLOT_WINDOWS].reshape(slots, SLOT_WINDOWS).mean(axis=1)
        found.append(SlotFamily(name, meaning, _pieces(values / values.mean())))
    return found


def recorded_windows(path: Path) -> list[tuple[str, str, Floats]]:
    """Name, meaning and I/Os per window of each recording (`record_windows.py`)."""
    found = []
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            head, *lines = archive.read(name).decode().splitlines()
            counts = np.loadtxt(BytesIO("\n".join(lines).encode()), dtype=float, ndmin=1)
            found.append((name.removesuffix(".txt"), head.removeprefix("# "), counts))
    return found


def _pieces(values: Floats) -> Draw:
    """Pieces of a recording from random positions, as they were recorded."""

    def draw(generator: np.random.Generator, experiments: int, slots: int) -> Floats:
        starts = generator.integers(0, len(values), experiments)
        places = (starts[:, None] + np.arange(slots)) % len(values)
        return _both(values[places])

    return draw
