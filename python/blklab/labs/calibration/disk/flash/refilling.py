"""Long writes with a pause: fast cells that an idle drive has emptied take writes again."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from blklab.labs.calibration.disk.flash.figures import FlashDrive
from blklab.labs.calibration.disk.flash.filling import Stages
from blklab.labs.calibration.disk.flash.loads import KIB, LoadNumber, refilling
from blklab.labs.calibration.disk.limits import buffer_load
from blklab.labs.calibration.disk.runs import Runs

_ROUNDS = 2
_MOST_DEPTH = 4
"""Enough for the speed of the link. Few are under way when the pause begins, so its length is well known."""
_TRIES = 4
_USUAL_RATE = 5e8
_FIRST_PART = 0.5
"""Of the fast cells, which the first pause would empty at the usual rate."""
_LEAST_PART, _MOST_PART = 0.1, 0.8
"""Of the fast cells: with less or more emptied, the pause is changed."""
_LONGER = 4.0
_FULL = 1.1
"""Times the time until fast cells and buffer are full."""
_AGAIN = 0.9
"""Of the time before the pause, for writes after it."""
_MOST_S = 16.0
_LEAST_IDLE = 0.02
"""Of the time: less may be an error."""


@dataclass(frozen=True)
class Refill:
    """The load to fit to, and its closed form."""

    row: LoadNumber
    fold_rate: float
    """Bytes a second that an idle drive moves out of its fast cells."""


def with_refill(start: FlashDrive, stages: Stages, refill: Refill) -> FlashDrive:
    """Closed forms of emptying fast cells, and of the time of their programs if these keep up with the link.

    Args:
        start: With closed forms of all other figures.
        stages: Of long writes.
        refill: Writes with a pause, as large as those of the stages: fast cells may be emptied between them.
    """
    fold_rate, block_bytes = refill.fold_rate, refill.row.load.block_kib * KIB
    start = replace(start, fold_rate=fold_rate)
    slow, first = stages.slow_rate, stages.first_rate
    if stages.fast_rate is not None:
        return start
    seeming = (stages.height_bytes - start.buffer_bytes) / (1 - slow / first)
    idle = first * (1 - start.slc_bytes / seeming) / fold_rate if seeming > start.slc_bytes else 0.0
    if not _LEAST_IDLE < idle < 1:
        return start
    turns = math.ceil(block_bytes / start.stripe_bytes)
    program = 1e9 * block_bytes / first * (1 - idle) / turns
    # A flush waits for a program, and the sum is known.
    flush = max(0.0, start.flush + start.slc_program - program) if start.flush else 0.0
    return replace(start, slc_program=program, flush=flush)


def refilled(runs: Runs, start: FlashDrive, stages: Stages) -> Refill | None:
    """Measures writes with a pause in which a part of the fast cells is emptied.

    Args:
        runs: Measures the load.
        start: With closed forms of buffer and fast cells.
        stages: Of long writes.

    Returns:
        None if no pause empties a part of the fast cells, within reason.
    """
    facts = runs.ground.facts
    usual = buffer_load(
        queue_depth=facts.queues.depth,
        max_sectors_kb=facts.queues.max_sectors_kb,
        space_bytes=facts.space_bytes,
    )
    depth, block_bytes = min(usual.depth, _MOST_DEPTH), usual.block_kib * KIB
    slow = stages.slow_rate
    # Fast cells may be emptied a little between writes too: then they seem larger in both parts alike.
    full = stages.height_bytes - start.buffer_bytes
    before_s = _FULL * stages.last_s
    blocks = math.ceil((stages.height_bytes + slow * before_s) / block_bytes)
    # The pause begins when the last of the blocks is done. What was asked for beyond them follows in it.
    drain_s = (start.buffer_bytes + (depth - 1) * block_bytes) / slow
    idle_s = _FIRST_PART * start.slc_bytes / _USUAL_RATE
    for _ in range(_TRIES):
        pause_s = drain_s + idle_s
        runtime_s = (1 + _AGAIN) * before_s + pause_s
        if runtime_s > _MOST_S:
            return None
        runtime_us = round(1e6 * runtime_s)
        load = refilling(usual.block_kib, depth, blocks, round(1e6 * pause_s), runtime_us, facts.space_bytes)
        found = runs.rested(load, runtime_us)
        again = (found.ios - blocks) * block_bytes - _AGAIN * before_s * slow
        part = (again - start.buffer_bytes) / full
        if part > _MOST_PART:
            idle_s /= _LONGER
        elif part < _LEAST_PART:
            idle_s *= _LONGER
        else:
            for _ in range(_ROUNDS - 1):
                runs.rested(load, runtime_us)
            return Refill(LoadNumber(load, "iops", runtime_us), part * start.slc_bytes / idle_s)
    return None
