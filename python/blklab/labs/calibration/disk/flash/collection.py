"""Random overwriting until a drive collects garbage.

A drive whose data were written once in order takes random writes at the rate of its cells until its spare
space is used. From then on it must move what is still valid in a block before it can erase it. The less spare
space, the sooner that begins and the more it moves, so the bytes that random writes get through in a given
time tell the spare space.

Writes in order leave blocks of which nothing is valid. What they lose once all blocks were used is erasure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from blklab.labs.calibration.disk.document import Figure
from blklab.labs.calibration.disk.flash.figures import FlashDrive
from blklab.labs.calibration.disk.flash.fit import FlashFit, fitted
from blklab.labs.calibration.disk.flash.loads import KIB, LoadNumber, filling, overwriting
from blklab.labs.calibration.disk.flash.search import Observed, observed
from blklab.labs.calibration.disk.flash.spare import (
    DEPTH,
    OVERWRITE_RATE,
    USABLE_SPARE,
    Spare,
    likely_drive,
    spare_of,
)
from blklab.labs.calibration.disk.limits import buffer_load
from blklab.labs.calibration.disk.model import Model
from blklab.labs.calibration.disk.runs import Runs
from blklab.quantities.units import format_bytes

SPARE = "spare_permille"
ERASE = "erase"
ERASE_BLOCK = "erase_block"
_PARTS = (0.25, 0.5, 1.0)
"""Lengths of random overwriting: times that in which all cells are programmed once. Each begins in order."""
_FEWEST = 2
"""Lengths."""
_MOST_FILLS = 6.0
"""Times the space that is programmed in all: flash wears out."""
_PART_OF_BUDGET = 0.3
_LEAST_PART = 0.2
"""Of the drive: for a smaller part, the usual spare space is so much that it hardly collects."""
_IN_ORDER = 1.02
"""Times the space, so that all of it is in order."""
_NOTABLE = 0.1
"""By so much collection must slow down a run to be seen."""
_ENOUGH_PERMILLE = 2000
"""Spare space with which no run collects."""
_SEED = 11


@dataclass(frozen=True)
class Collection:
    """Findings of random overwriting."""

    fit: FlashFit
    """Fitted once more, with erasure, if collection was seen."""
    drive: FlashDrive
    """With its spare space."""
    rows: Sequence[Observed]
    """The loads that have shown collection."""
    figures: Sequence[Figure]
    """In place of what was assumed. Spare space says why if no collection was seen."""
    derived: Sequence[Figure]

    @property
    def seen(self) -> bool:
        """Whether the drive has collected garbage."""
        return bool(self.derived)


def collected(
    runs: Runs, fit: FlashFit, found: Sequence[Observed], model: Model, *, slows_down: bool
) -> Collection:
    """Overwrites a drive at random, if that can make it collect within reason, and finds its spare space.

    Data then lie anywhere, so no load that depends on their places may follow.

    Args:
        runs: Measures.
        fit: All other figures, fitted with a spare space that was assumed.
        found: The loads that they were fitted to.
        model: Simulates.
        slows_down: Whether long writes have shown how fast slow cells are.

    Raises:
        BlklabError: if a load cannot run.
    """
    most_fills = _most_fills(runs, fit.drive)
    reason = _reason_not_to(runs, fit.drive, most_fills, slows_down=slows_down)
    if reason:
        return _unseen(fit, reason)
    runs.announce("overwriting at random, to see garbage collected")
    ordered, rows, seen = _overwritten(runs, fit.drive, model, most_fills)
    if not seen:
        last = rows[-1].load
        written = format_bytes(max(one.ios for one in runs.of(last)) * last.block_kib * KIB)
        return _unseen(fit, f"no collection within {written} of random writes")
    runs.announce("fitting spare space and erasure")
    overwrites = [observed(row, runs.of(row.load)) for row in rows]
    order = observed(ordered, runs.of(ordered.load))
    start = likely_drive(fit.drive, overwrites, model)
    # The spare space is fitted apart: simulations of collection take long, and few figures matter to it.
    again = fitted([*found, order], [*fit.layout.names, ERASE], start, model, {})
    spare = spare_of(again.drive, overwrites, model)
    if spare is None:
        return _unseen(fit, "not identified by the loads")
    figures = [_spare_figure(spare), _block_figure(spare)]
    return Collection(again, spare.drive, [order, *overwrites], figures, _derived(spare))


def _unseen(fit: FlashFit, reason: str) -> Collection:
    spare = Figure(key=SPARE, value=fit.drive.spare_permille, low=None, high=None, how=reason)
    return Collection(fit, fit.drive, [], [spare], [])


def _fill_s(runs: Runs, drive: FlashDrive) -> float:
    """Seconds in which slow cells are programmed for all of the space."""
    return runs.ground.facts.space_bytes * drive.program / (1e9 * drive.stripe_bytes)


def _most_fills(runs: Runs, drive: FlashDrive) -> float:
    """Times the space that may be programmed."""
    left_s = min(_PART_OF_BUDGET * runs.budget_s, runs.budget_s - runs.spent_s)
    return min(_MOST_FILLS, left_s / _fill_s(runs, drive))


def _fills_before(parts: int) -> float:
    """Times the space that is programmed to measure so many lengths."""
    return _IN_ORDER + 1 + sum(_PARTS[:parts]) + _IN_ORDER * max(0, parts - 1)


def _reason_not_to(runs: Runs, drive: FlashDrive, most_fills: float, *, slows_down: bool) -> str | None:
    facts = runs.ground.facts
    if not slows_down:
        return "not looked for: long writes never slowed down"
    if facts.space_bytes < _LEAST_PART * facts.capacity_bytes:
        return "not looked for: the space to write to is a small part of the drive"
    if most_fills < _fills_before(_FEWEST):
        needed_s = _fills_before(_FEWEST) * _fill_s(runs, drive)
        return f"not looked for: it would take {needed_s:.0f} s of writes"
    return None


def _overwritten(
    runs: Runs, drive: FlashDrive, model: Model, most_fills: float
) -> tuple[LoadNumber, list[LoadNumber], bool]:
    """Writes in order, random ones for growing lengths, and whether these have met collection."""
    facts = runs.ground.facts
    space, fill_s = facts.space_bytes, _fill_s(runs, drive)
    usual = buffer_load(
        queue_depth=facts.queues.depth, max_sectors_kb=facts.queues.max_sectors_kb, space_bytes=space
    )
    fill_us, order_us = round(1e6 * fill_s), round(1e6 * _IN_ORDER * fill_s)
    to_order = filling(usual.block_kib, usual.depth, order_us, space)
    ordered = LoadNumber(filling(usual.block_kib, usual.depth, fill_us, space), "iops", fill_us)

    def put_in_order() -> None:
        # A model begins each run in order.
        if not facts.rested:
            runs.one(to_order, order_us)

    runs.planned = len(runs.made) + 2 * len(_PARTS)
    put_in_order()
    runs.rested(ordered.load, fill_us)
    depth = min(DEPTH, facts.queues.depth)
    rows: list[LoadNumber] = []
    seen = False
    for number, part in enumerate(_PARTS):
        if _fills_before(number + 1) > most_fills:
            break
        if number:
            put_in_order()
        runtime_us = round(part * fill_us)
        row = LoadNumber(overwriting(depth, runtime_us, space), "iops", runtime_us, drawn=True)
        rows.append(row)
        found = runs.rested(row.load, runtime_us)
        seen = seen or math.log(found.iops / _without_collection(drive, row, model)) < -_NOTABLE
    return ordered, rows, seen


def _without_collection(drive: FlashDrive, row: LoadNumber, model: Model) -> float:
    """I/Os a second with spare space enough."""
    model.runtimes_us[row.load.name] = row.runtime_us
    enough = row.device(replace(drive, spare_permille=_ENOUGH_PERMILLE))
    return model.measured(enough, [row.load], [_SEED])[0][0].iops


def _spare_figure(spare: Spare) -> Figure:
    value, low, high = spare.permille
    how = "fitted to random overwriting, for erase blocks of this size"
    return Figure(key=SPARE, value=round(value), low=math.floor(low), high=math.ceil(high), how=how)


def _block_figure(spare: Spare) -> Figure:
    block = spare.drive.parameters()[ERASE_BLOCK]
    how = "suits random overwriting best, among powers of two of blocks"
    return Figure(key=ERASE_BLOCK, value=block, low=None, high=None, how=how)


def _derived(spare: Spare) -> list[Figure]:
    how = "follows from the spare space"
    return [
        Figure(key=key, value=round(value), low=math.floor(low), high=math.ceil(high), how=how)
        for key, (value, low, high) in ((USABLE_SPARE, spare.usable_permille), (OVERWRITE_RATE, spare.rate))
    ]
