"""The length of slots: how long schedulers need to settle after a switch, as a pilot's slots show it.

The pilot's slots are longer than those to come. They are aligned at their switch; the second half of each is
taken for its plateau. A shorter slot that is cut at both ends of ``[settling, slot)`` is good if its rate is
that of the plateau, for every scheduler: the difference must lie within a tolerance, or within the noise
that parts of the plateau of the same length show among themselves. The first, shortest cut that passes is
taken. Four things lengthen a slot:

* only a limited share of it may be cut off: a fifth by default;
* it holds enough I/Os that one more or less does not matter;
* it is long against the latency of the slowest I/Os: those under way at its end are completed by the next
  switch, not by their own scheduler;
* it has a shortest length, which its caller knows: a quarter of a second by default.

A pilot is short, so it finds no change that is smaller than its noise. `blklab.analysis.carry_over` looks
for such changes in the slots of the experiment itself, which are many.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from blklab.records.samples import LatencyHistogram, RunSample, SlotSample

SHORTEST_SLOT_NS = 250_000_000
"""By default."""
LONGEST_SETTLING_NS = 2_000_000_000
LONGEST_SLOT_NS = 10_000_000_000
LARGEST_CUT = 0.2
"""Share of a slot that may be cut off."""
TOLERANCE = 0.01
"""Difference from the plateau that does not matter, as a fraction of it."""
FEWEST_IOS = 50
"""I/Os that the kept part of a slot must hold."""
LATENCIES_PER_SLOT = 10
"""Times that a slow I/O must fit into a slot."""
FEWEST_WINDOWS = 20
"""Windows that a slot of the pilot must have."""
_GROWTH = 1.25
_NOISE_QUANTILE = 2.6
"""Standard errors that count as noise: 5 % for eight comparisons together, two of each of four schedulers."""
_FEWEST_BLOCKS = 6

_Rates = npt.NDArray[np.float64]


SettlingKind = Literal[
    "too_few_windows", "nothing_completed", "slow_ios", "still_changing", "never_settles", "settles"
]
"""``slow_ios``: slots would have to be too long for them. ``still_changing``: at the end of the pilot's
slots. ``never_settles``: not within the longest time that is allowed."""


@dataclass(frozen=True)
class SettlingReason:
    """The reason for slots of this length, or for none."""

    kind: SettlingKind
    scheduler: str = ""
    """The one that the reason is about; empty if it is about none."""
    duration_ns: int = 0
    """How long it settles, or was watched; for ``slow_ios`` the length that slots would need."""
    latency_ns: int | None = None
    """Of slow I/Os, if they determine the length."""
    fewest_ios: int | None = None
    """The I/Os that a slot has to hold, if they determine the length."""


@dataclass(frozen=True)
class Settling:
    """How long schedulers need to settle, and the slots that follow from it."""

    slot_ns: int | None
    """None if slots would have to be too long, or if the pilot is too short to tell."""
    settling_ns: int
    """Of the slowest scheduler; the switch included."""
    by_scheduler: dict[str, int | None]
    """Settling time of each by itself; None if it did not settle within the pilot's slots."""
    resolution: float
    """The largest deviation from the plateau, as a fraction of it, that noise could have hidden."""
    reason: SettlingReason


def settling_time(
    slots: Mapping[str, Sequence[SlotSample]],
    *,
    tail_latency_ns: float = 0,
    largest_cut: float = LARGEST_CUT,
    shortest_slot_ns: int = SHORTEST_SLOT_NS,
) -> Settling:
    """Finds the settling time and the length of slots.

    Args:
        slots: The pilot's slots by scheduler, several of each, all with windows of one length.
        tail_latency_ns: Latency of slow I/Os, as `tail_latency_ns` finds it.
        largest_cut: Share of a slot that may be cut off.
        shortest_slot_ns: The least length of a slot.
    """
    if not slots or any(_fewest_windows(of_one) < FEWEST_WINDOWS for of_one in slots.values()):
        return _without(SettlingReason("too_few_windows"), dict.fromkeys(slots))
    profiles = {label: _Profile(of_one) for label, of_one in slots.items()}
    window_ns = next(iter(profiles.values())).window_ns
    idle = [label for label, profile in profiles.items() if profile.rate <= 0]
    if idle:
        return _without(SettlingReason("nothing_completed", idle[0]), dict.fromkeys(slots))
    for_ios_ns = max(math.ceil(FEWEST_IOS / profile.rate) for profile in profiles.values()) * window_ns
    for_latency_ns = math.ceil(LATENCIES_PER_SLOT * tail_latency_ns)
    least_ns = max(shortest_slot_ns, for_ios_ns, for_latency_ns)
    by_scheduler = {
        label: _first_settled(profile, window_ns, least_ns, largest_cut)
        for label, profile in profiles.items()
    }
    if least_ns > LONGEST_SLOT_NS:
        reason = SettlingReason("slow_ios", duration_ns=least_ns, latency_ns=int(tail_latency_ns))
        return _without(reason, by_scheduler)
    changes = {label: profile.change_at_the_end() for label, profile in profiles.items()}
    latest = max(changes, key=lambda label: changes[label])
    if changes[latest] > 0:
        length_ns = min(profile.length for profile in profiles.values()) * window_ns
        return _without(SettlingReason("still_changing", latest, length_ns), by_scheduler)
    unsettled: list[str] = []
    for cut, slot in _candidates(profiles.values(), window_ns, least_ns, largest_cut):
        unsettled = [label for label, profile in profiles.items() if not profile.is_settled(cut, slot)]
        if unsettled:
            continue
        settling_ns, slot_ns = cut * window_ns, slot * window_ns
        slowest = max(by_scheduler, key=lambda label: by_scheduler[label] or 0)
        return Settling(
            slot_ns=slot_ns,
            settling_ns=settling_ns,
            by_scheduler=by_scheduler,
            resolution=max(profile.resolution(cut, slot) for profile in profiles.values()),
            reason=_reason(
                slowest, settling_ns, slot_ns - window_ns, for_ios_ns, for_latency_ns, shortest_slot_ns
            ),
        )
    candidates = [*(label for label in unsettled if by_scheduler[label] is None), *unsettled, *profiles]
    return _without(SettlingReason("never_settles", candidates[0], LONGEST_SETTLING_NS), by_scheduler)


def tail_latency_ns(
    samples: Iterable[RunSample], fraction: float = 0.99, jobs: Collection[str] | None = None
) -> float:
    """The latency of slow I/Os in a pilot: the largest of any job and direction under any scheduler.

    Args:
        samples: The pilot's slots.
        jobs: Names of the jobs that count; None: all.
        fraction: Which percentile, 0 to 1.
    """
    histograms: dict[tuple[str, str, str], list[LatencyHistogram]] = {}
    for sample in samples:
        for job in sample.jobs:
            if jobs is not None and job.name not in jobs:
                continue
            for entry in job.data_directions():
                key = (sample.cell.scheduler, job.name, entry.direction)
                histograms.setdefault(key, []).append(entry.latency)
    merged = (LatencyHistogram.merged(of_one).percentile_ns(fraction) for of_one in histograms.values())
    return max((latency_ns for latency_ns in merged if latency_ns is not None), default=0.0)


def _fewest_windows(slots: Sequence[SlotSample]) -> int:
    return min((len(slot.ios) for slot in slots), default=0)


class _Profile:
    """The rates of one scheduler's slots, window by window from the switch."""

    def __init__(self, slots: Sequence[SlotSample]) -> None:
        self.window_ns = slots[0].window_ns
        self.length = _fewest_windows(slots)
        # A busy machine sometimes delays a switch by half a second. Such a slot loses what it took.
        switch_ns = float(np.median([slot.switch_ns for slot in slots]))
        self.first = 1 + math.ceil(switch_ns / self.window_ns)
        """The first window that lies behind a usual switch and the burst of I/Os that it held back."""
        self._half = self.length // 2
        rates = np.array([slot.ios[: self.length] for slot in slots], dtype=float)
        plateau = rates[:, self._half :]
        self.rate = float(plateau.mean())
        """I/Os in a window on the plateau."""
        self._relative: _Rates = (rates - plateau.mean(axis=1, keepdims=True)) / (self.rate or 1.0)
        """Deviation from each slot's own plateau, so that drift from slot to slot does not count."""

    def is_settled(self, cut: int, slot: int) -> bool:
        """Whether a slot of so many windows, cut so far, has the plateau's rate, and its first half too."""
        end = min(slot, self._half)
        if cut >= end:
            return cut <= self._half < slot
        return self._agrees(cut, end) and self._agrees(cut, cut + max(1, (end - cut) // 2))

    def change_at_the_end(self) -> float:
        """By how much the halves of the plateau differ, as a fraction; 0 if it may be noise."""
        middle = (self._half + self.length) // 2
        deviation = abs(self._mean(self._half, middle) - self._mean(middle, self.length))
        return deviation if deviation > max(TOLERANCE, 2 * self._noise(self.length - middle)) else 0.0

    def resolution(self, cut: int, slot: int) -> float:
        """The noise of the comparison with the plateau."""
        return self._noise(max(1, min(slot, self._half) - cut))

    def _agrees(self, begin: int, end: int) -> bool:
        return abs(self._mean(begin, end)) <= max(TOLERANCE, self._noise(end - begin))

    def _mean(self, begin: int, end: int) -> float:
        return float(self._relative[:, begin:end].mean())

    def _noise(self, width: int) -> float:
        """The deviation that a part of so many windows may have by chance, from such parts of the plateau."""
        plateau = self._relative[:, self._half :]
        slots, windows = plateau.shape
        # Parts that are too long to be compared among themselves are judged by shorter ones.
        part = max(1, min(width, windows * slots // _FEWEST_BLOCKS, windows // 2))
        blocks = windows // part
        means = plateau[:, : blocks * part].reshape(slots, blocks, part).mean(axis=2)
        spread = float(means.std(ddof=0)) * math.sqrt(blocks / max(1, blocks - 1))
        spread *= math.sqrt(part / width)
        return _NOISE_QUANTILE * spread * math.sqrt((1 + width / windows) / slots)


def _candidates(
    profiles: Iterable[_Profile], window_ns: int, least_ns: int, largest_cut: float
) -> Iterator[tuple[int, int]]:
    """Cuts and slots in windows, the shortest first."""
    profiles = list(profiles)
    cut = max(profile.first for profile in profiles)
    last = min(LONGEST_SETTLING_NS // window_ns, *(profile.length // 2 for profile in profiles))
    while cut <= last:
        yield cut, math.ceil(max(least_ns / window_ns, cut / largest_cut))
        cut = max(cut + 1, math.ceil(cut * _GROWTH))


def _first_settled(profile: _Profile, window_ns: int, least_ns: int, largest_cut: float) -> int | None:
    for cut, slot in _candidates([profile], window_ns, least_ns, largest_cut):
        if profile.is_settled(cut, slot):
            return cut * window_ns
    return None


def _reason(
    slowest: str, settling_ns: int, shorter_ns: int, for_ios_ns: int, for_latency_ns: int, shortest_ns: int
) -> SettlingReason:
    """The reason for the length of slots, which is one window longer than `shorter_ns`."""
    if shorter_ns >= shortest_ns and for_latency_ns > max(shorter_ns, for_ios_ns):
        latency_ns = for_latency_ns // LATENCIES_PER_SLOT
        return SettlingReason("settles", slowest, settling_ns, latency_ns=latency_ns)
    if shorter_ns >= shortest_ns and for_ios_ns > shorter_ns:
        return SettlingReason("settles", slowest, settling_ns, fewest_ios=FEWEST_IOS)
    return SettlingReason("settles", slowest, settling_ns)


def _without(reason: SettlingReason, by_scheduler: Mapping[str, int | None]) -> Settling:
    return Settling(
        slot_ns=None, settling_ns=0, by_scheduler=dict(by_scheduler), resolution=math.nan, reason=reason
    )
