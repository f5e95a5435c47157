"""Carry-over: slots that still show which scheduler had the disk before them, or that are still settling.

Two tests, on the I/Os that each slot's windows record:

* **within**: the first half of the kept part against the second, for two schedulers in the same rounds. If
  both have settled, the two halves relate alike under both, and the random order makes their difference
  symmetric (`blklab.analysis.statistics.switchback`). A difference means that one of them settles longer.
* **before**: a scheduler's slots by the scheduler of the slot before, which the random order drew. The ranks
  of slots with different predecessors are compared (Kruskal and Wallis, *Use of Ranks in One-Criterion
  Variance Analysis*, 1952), each slot relative to its neighbours, so that a wandering speed does not matter.

All p values of a workload are corrected together.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from blklab.analysis.statistics.multiplicity import holm
from blklab.analysis.statistics.series import Values
from blklab.analysis.statistics.switchback import switchback_difference
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import RunSample, SlotSample

WARNING_LEVEL = 0.01
FEWEST_SLOTS = 5
"""Slots of a scheduler after each predecessor that are compared at all."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CarryOver:
    """One contrast."""

    kind: Literal["within", "before"]
    scheduler: str
    """The one whose slots are examined."""
    other: str
    """``within``: the one that it is compared with; ``before``: the predecessor that stands out."""
    ratio: float
    """``within``: first half over second half, under the one over the other; ``before``: slots after `other`
    over slots after all others."""
    p_adjusted: float


@dataclass(frozen=True)
class CarryOverFindings:
    """The influence that slots of a workload have on one another."""

    workload: str
    contrasts: list[CarryOver]
    level: float

    @property
    def seen(self) -> list[CarryOver]:
        """The contrasts that chance does not explain."""
        return [one for one in self.contrasts if one.p_adjusted < self.level]

    def tests_all(self, schedulers: Iterable[str]) -> bool:
        """Whether each of the schedulers has followed at least two others often enough to be tested."""
        tested = {one.scheduler for one in self.contrasts if one.kind == "before"}
        return tested.issuperset(schedulers)


def carry_over(workload: str, samples: Sequence[RunSample], level: float) -> CarryOverFindings:
    """Tests the slots of one workload.

    Args:
        workload: Its name.
        samples: Those of the experiment; runs, failed slots and other workloads are passed over.
        level: At which carry-over counts as seen, over all contrasts together.
    """
    slots = [
        (sample.cell.scheduler, sample.cell.block, sample.slot)
        for sample in samples
        if sample.cell.workload == workload and sample.status == "ok" and sample.slot is not None
    ]
    found = [*_within(slots), *_before(slots)]
    adjusted = holm([one.p_adjusted for one in found])
    return CarryOverFindings(
        workload,
        [
            CarryOver(one.kind, one.scheduler, one.other, one.ratio, p)
            for one, p in zip(found, adjusted, strict=True)
        ],
        level,
    )


def large_carry_over(record: ExperimentRecord) -> list[CarryOverFindings]:
    """The switched workloads whose slots clearly influence one another, each with the contrasts that matter.

    Carry-over within the margin of practical equality does not.
    """
    found = [carry_over(name, record.samples, WARNING_LEVEL) for name in record.spec.switched]
    large = [
        replace(one, contrasts=[each for each in one.seen if abs(each.ratio - 1) > record.spec.margin])
        for one in found
    ]
    return [one for one in large if one.contrasts]


def kept_windows(slot: SlotSample) -> list[float]:
    """The I/Os of the windows that lie in the kept part."""
    first = math.ceil((slot.kept_from_ns - slot.start_ns) / slot.window_ns)
    last = (slot.kept_to_ns - slot.start_ns) // slot.window_ns
    return slot.ios[max(0, first) : max(0, last)]


Slots = Sequence[tuple[str, int, SlotSample]]
"""Scheduler, round and slot."""


def _within(slots: Slots) -> list[CarryOver]:
    shares: dict[str, dict[int, float]] = {}
    for scheduler, number, slot in slots:
        share = _share_of_first_half(kept_windows(slot))
        if share is not None:
            shares.setdefault(scheduler, {})[number] = share
    return [
        contrast
        for one, other in itertools.combinations(shares, 2)
        if (contrast := _compare_halves(one, other, shares[one], shares[other])) is not None
    ]


def _share_of_first_half(windows: Sequence[float]) -> float | None:
    half = len(windows) // 2
    first, second = sum(windows[:half]), sum(windows[len(windows) - half :])
    return None if first + second == 0 else 2 * first / (first + second)


def _compare_halves(one: str, other: str, first: Values, second: Values) -> CarryOver | None:
    rounds = sorted(first.keys() & second.keys())
    if len(rounds) < FEWEST_SLOTS:
        return None
    found = switchback_difference([first[r] for r in rounds], [second[r] for r in rounds], margin=0.0)
    if found is None:
        return None
    # The shares of both halves add up to 2: their ratio changes about twice as fast as one of them.
    return CarryOver("within", one, other, math.exp(2 * found.log_ratio), found.p_difference)


def _before(slots: Slots) -> list[CarryOver]:
    relative = _relative_to_neighbours(slots)
    groups: dict[str, dict[str, list[float]]] = {}
    for (before, _, earlier), (scheduler, _, slot), value in zip(
        slots, slots[1:], relative[1:], strict=False
    ):
        follows = earlier.stretch == slot.stretch and earlier.end_ns == slot.start_ns
        if follows and math.isfinite(value):
            groups.setdefault(scheduler, {}).setdefault(before, []).append(value)
    found = []
    for scheduler, by_predecessor in groups.items():
        large = {name: values for name, values in by_predecessor.items() if len(values) >= FEWEST_SLOTS}
        if len(large) < 2:
            continue
        p, distances = kruskal_wallis([np.asarray(values) for values in large.values()])
        _, strangest = max(zip(distances, large, strict=True))
        rest = list(itertools.chain(*(values for name, values in large.items() if name != strangest)))
        ratio = (1 + float(np.median(large[strangest]))) / max(1e-9, 1 + float(np.median(rest)))
        found.append(CarryOver("before", scheduler, strangest, ratio, p))
    return found


def _relative_to_neighbours(slots: Slots) -> list[float]:
    """Each slot's I/Os relative to its scheduler's mean, minus the same of the slots around it."""
    means = [float(np.mean(windows)) if (windows := kept_windows(slot)) else math.nan for _, _, slot in slots]
    names = [scheduler for scheduler, _, _ in slots]
    own: dict[str, float] = {}
    for name in dict.fromkeys(names):
        values = [mean for mean, label in zip(means, names, strict=True) if label == name]
        own[name] = float(np.nanmean(values)) if np.isfinite(values).any() else math.nan
    scaled = np.array(
        [mean / own[name] if own[name] else math.nan for mean, name in zip(means, names, strict=True)]
    )
    reach = max(2, len(own))
    relative = []
    for place, value in enumerate(scaled):
        around = np.concatenate(
            [scaled[max(0, place - reach) : place], scaled[place + 1 : place + 1 + reach]]
        )
        around = around[np.isfinite(around)]
        relative.append(float(value - around.mean()) if len(around) else math.nan)
    return relative


def kruskal_wallis(groups: Sequence[Floats]) -> tuple[float, list[float]]:
    """The rank test that all groups have the same distribution.

    Returns:
        Its p value, and the distance of each group's mean rank from that of all others.
    """
    values = np.concatenate(groups)
    n = len(values)
    ordered, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    if len(ordered) < 2:
        return 1.0, [0.0] * len(groups)
    last = np.cumsum(counts)
    ranks = (last - (counts - 1) / 2)[places]
    total, begin = 0.0, 0
    distances = []
    for group in groups:
        own = ranks[begin : begin + len(group)]
        from_center = float(own.mean()) - (n + 1) / 2
        total += len(group) * from_center**2
        distances.append(abs(from_center) * n / (n - len(group)))
        begin += len(group)
    ties = 1 - float((counts**3 - counts).sum()) / (n**3 - n)
    return float(special.chdtrc(len(groups) - 1, 12 / (n * (n + 1)) * total / ties)), distances
