"""Long slots: whether a scheduler does in the short slots of a switchback what it does when left alone.

The pilot's slots last a second on a disk, and all slots of an experiment are equally short. A change that
takes longer (kyber adapts its depths, bfq ends the raised weight of a process) is in none of them, so no
test among them can see it. Before an answer is accepted two schedulers therefore have a few slots of some
seconds. Their ratio in the second halves of these is compared with that in the short slots. It differs by
chance because the speed of the disk wanders from one long slot to the next; the short slots show how much.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from blklab.analysis.carry_over import kept_windows
from blklab.analysis.statistics.intervals import t_upper_tail
from blklab.quantities.units import NS_PER_SECOND
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import RunSample

LONG_SLOT_NS = 4 * NS_PER_SECOND
LONG_ROUNDS = 2
WARNING_LEVEL = 0.01
FEWEST_ROUNDS = 8
"""Rounds of short slots to compare with."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LongSlots:
    """Two schedulers in long slots and in short ones: the first one's I/Os over the second one's."""

    workload: str
    first: str
    second: str
    in_short: float
    in_long: float
    slot_ns: int
    """Length of the short ones."""
    p: float
    """Two-sided, that both ratios are the same."""

    @property
    def log_change(self) -> float:
        """Logarithm of the ratio in long slots over that in short ones."""
        return math.log(self.in_long / self.in_short)

    def contradicts(self, level: float, log_limit: float) -> bool:
        """Whether the ratios differ by more than a limit, and by more than chance explains."""
        return self.p < level and abs(self.log_change) > log_limit


def compare_long_slots(workload: str, samples: Sequence[RunSample], slot_ns: int) -> LongSlots | None:
    """Compares the long slots of a workload with its short ones.

    Args:
        workload: Its name.
        samples: Those of the experiment; failed ones and those of other workloads are passed over.
        slot_ns: Length of the short slots.

    Returns:
        None without long slots of two schedulers, or with too few short ones.
    """
    own = [
        sample
        for sample in samples
        if sample.cell.workload == workload and sample.status == "ok" and sample.slot is not None
    ]
    long = _speeds([sample for sample in own if sample.is_long_slot])
    if len(long) < 2:
        return None
    first, second = list(long)[:2]
    short_samples = [sample for sample in own if not sample.is_long_slot]
    short = _speeds(short_samples)
    if first not in short or second not in short:
        return None
    ones, others = _in_common_rounds(long[first], long[second])
    short_ones, short_others = _in_common_rounds(short[first], short[second])
    wandering = np.array(list(_changes(short_samples, short, slot_ns)))
    if not len(ones) or len(short_ones) < FEWEST_ROUNDS or not len(wandering):
        return None
    if min(ones.min(), others.min(), short_ones.sum(), short_others.sum()) <= 0:
        return None
    in_short = float(short_ones.sum() / short_others.sum())
    in_long = float(np.exp(np.log(ones / others).mean()))
    differences = (short_ones - in_short * short_others) / short_ones.mean()
    error = math.sqrt(
        float((wandering**2).mean()) / len(ones) + float((differences**2).mean()) / len(short_ones)
    )
    # Changes overlap: as many are independent as long slots would fit into the load.
    freedom = max(1.0, len(short_samples) * slot_ns / LONG_SLOT_NS - 1)
    distance = abs(math.log(in_long / in_short))
    p = 2 * t_upper_tail(distance / error, freedom) if error else float(distance == 0)
    return LongSlots(workload, first, second, in_short, in_long, slot_ns, min(1.0, p))


def contradicting_long_slots(record: ExperimentRecord) -> list[LongSlots]:
    """The switched workloads whose long slots contradict their short ones."""
    contradictions = []
    for name, decision in record.spec.switched.items():
        counted = [sample for sample in record.samples if sample.cell.block >= decision.first_round]
        found = compare_long_slots(name, counted, decision.slot_ns or LONG_SLOT_NS)
        if found is not None and found.contradicts(WARNING_LEVEL, math.log1p(record.spec.margin)):
            contradictions.append(found)
    return contradictions


def _speeds(samples: Sequence[RunSample]) -> dict[str, dict[int, float]]:
    """Scheduler → round → I/Os in a window of the kept part."""
    speeds: dict[str, dict[int, float]] = {}
    for sample in samples:
        windows = kept_windows(sample.slot) if sample.slot is not None else []
        if windows:
            speeds.setdefault(sample.cell.scheduler, {})[sample.cell.block] = float(np.mean(windows))
    return speeds


def _in_common_rounds(first: dict[int, float], second: dict[int, float]) -> tuple[Floats, Floats]:
    rounds = sorted(first.keys() & second.keys())
    return np.array([first[number] for number in rounds]), np.array([second[number] for number in rounds])


def _changes(
    samples: Sequence[RunSample], speeds: dict[str, dict[int, float]], slot_ns: int
) -> Iterator[float]:
    """Logarithms of how the disk's speed changes from half a long slot to that of the next.

    Schedulers are taken together, each relative to its own mean.
    """
    stretches: dict[int, list[float]] = {}
    means = {label: float(np.mean(list(values.values()))) for label, values in speeds.items()}
    for sample in samples:
        speed = speeds.get(sample.cell.scheduler, {}).get(sample.cell.block)
        mean = means.get(sample.cell.scheduler)
        if sample.slot is not None and speed is not None and mean:
            stretches.setdefault(sample.slot.stretch, []).append(speed / mean)
    half, gap = max(1, round(LONG_SLOT_NS / 2 / slot_ns)), max(1, round(LONG_SLOT_NS / slot_ns))
    for series in stretches.values():
        parts = [float(np.mean(series[i : i + half])) for i in range(len(series) - half + 1)]
        for before, after in zip(parts, parts[gap:], strict=False):
            if before > 0 and after > 0:
                yield math.log(after / before)
