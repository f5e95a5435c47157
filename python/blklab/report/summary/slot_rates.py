"""The speed of a switched load, window by window: slot by slot, and aligned at the switch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from blklab.quantities.units import NS_PER_SECOND
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import SlotSample

Floats = NDArray[np.float64]

MOST_ALIGNED_WINDOWS = 60
"""Windows of a slot in the picture of its settling; shorter ones are merged."""


@dataclass(frozen=True)
class SlotRates:
    """One slot's I/Os per second over its windows. Times count from the stretch's first switch, in ns."""

    stretch: int
    round: int
    scheduler: str
    start_ns: int
    end_ns: int
    kept_from_ns: int
    kept_to_ns: int
    edges_ns: Floats
    """Ends of the windows: one more than there are rates."""
    rates: Floats

    @property
    def middles_ns(self) -> Floats:
        """The middle of each window."""
        middles: Floats = (self.edges_ns[1:] + self.edges_ns[:-1]) / 2
        return middles

    @property
    def is_kept(self) -> NDArray[np.bool_]:
        """A mask of the windows that count."""
        middles = self.middles_ns
        kept: NDArray[np.bool_] = (middles >= self.kept_from_ns) & (middles <= self.kept_to_ns)
        return kept

    @property
    def plateau(self) -> float:
        """Mean of the windows that count; of all, if none does."""
        kept = self.is_kept
        return float((self.rates[kept] if kept.any() else self.rates).mean())


@dataclass(frozen=True)
class AlignedSlots:
    """A scheduler's slots aligned at their switch; rates relative to the plateau of their own slot."""

    scheduler: str
    slots: int
    times_ns: Floats
    """Since the switch, the middle of each window."""
    low: Floats
    """First quartile over the slots, window by window."""
    median: Floats
    high: Floats


def slot_rates(record: ExperimentRecord, workload: str) -> list[SlotRates]:
    """The slots of a workload that have windows, in their order."""
    found = [
        _slot(sample.cell.block, sample.cell.scheduler, sample.slot)
        for sample in record.samples
        if sample.status == "ok"
        and sample.cell.workload == workload
        and sample.slot is not None
        and sample.slot.ios
    ]
    return sorted(found, key=lambda slot: (slot.stretch, slot.start_ns))


def aligned_slots(slots: Sequence[SlotRates], scheduler: str) -> AlignedSlots | None:
    """The slots of a scheduler aligned at their switch; None if none of them did any I/O."""
    own = [slot for slot in slots if slot.scheduler == scheduler and slot.plateau > 0]
    if not own:
        return None
    length = min(len(slot.rates) for slot in own)
    merged = -(-length // MOST_ALIGNED_WINDOWS)
    windows = length // merged
    kept = slice(0, windows * merged)
    relative = np.array(
        [(slot.rates[kept] / slot.plateau).reshape(windows, merged).mean(axis=1) for slot in own]
    )
    low, median, high = np.quantile(relative, [0.25, 0.5, 0.75], axis=0)
    times_ns = (own[0].middles_ns[kept] - own[0].start_ns).reshape(windows, merged).mean(axis=1)
    return AlignedSlots(scheduler, len(own), times_ns, low, median, high)


def _slot(round_number: int, scheduler: str, slot: SlotSample) -> SlotRates:
    edges_ns = slot.start_ns + slot.window_ns * np.arange(len(slot.ios) + 1, dtype=float)
    # The last window ends with the slot.
    edges_ns[-1] = max(min(edges_ns[-1], slot.end_ns), edges_ns[-2] + 1)
    return SlotRates(
        stretch=slot.stretch,
        round=round_number,
        scheduler=scheduler,
        start_ns=slot.start_ns,
        end_ns=slot.end_ns,
        kept_from_ns=slot.kept_from_ns,
        kept_to_ns=slot.kept_to_ns,
        edges_ns=edges_ns,
        rates=np.asarray(slot.ios, dtype=float) * NS_PER_SECOND / np.diff(edges_ns),
    )
