"""Mistakes that the torture's disk makes on purpose: requests that it hands back, and requests that time out.

``null_blk`` counts its requests and makes every Nth fail (``drivers/block/null_blk/main.c`` and
``should_fail_ex`` of ``lib/fault-inject.c``, Linux 6.1), so the same seed has the same failures. Without
CONFIG_BLK_DEV_NULL_BLK_FAULT_INJECTION the kernel has neither.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

FAULT_OPTION = "CONFIG_BLK_DEV_NULL_BLK_FAULT_INJECTION"

_REQUEUES = (None, 7, 23, 101)
_TIMEOUTS = (None, None, None, 211)


@dataclass(frozen=True)
class Faults:
    """The requests that fail."""

    requeue_every: int | None
    """Every so many requests one is handed back to the block layer; None for never."""
    timeout_every: int | None
    """Every so many requests one is never answered; None for never."""

    def parameters(self) -> tuple[str, ...]:
        """Boot parameters: ``interval,probability,space,times``."""
        named = {"requeue": self.requeue_every, "timeout": self.timeout_every}
        return tuple(f"null_blk.{name}={every},100,0,-1" for name, every in named.items() if every)


NO_FAULTS = Faults(None, None)


_LONG_WITHOUT = (16, 7)
"""Of the long runs (every eighth seed, ``torture/plan.rs``) every second one has no faults: there a task that
starves does so by the scheduler's choice alone."""
_BURSTS = (8, 3)
"""Of the seeds of bursts none has faults: a disk that hands requests back wakes the scheduler up."""


def draw_faults(seed: int) -> Faults:
    """The faults of a seed."""
    if any(seed % every == remainder for every, remainder in (_LONG_WITHOUT, _BURSTS)):
        return NO_FAULTS
    drawn = hashlib.sha256(f"faults {seed}".encode()).digest()
    return Faults(_REQUEUES[drawn[0] % len(_REQUEUES)], _TIMEOUTS[drawn[1] % len(_TIMEOUTS)])
