"""Mistakes that the torture's disk makes on purpose: requests that it hands back, and requests that time out.

``null_blk`` counts its requests and makes every Nth fail (``drivers/block/null_blk/main.c`` and
``should_fail_ex`` of ``lib/fault-inject.c``, Linux 6.1), so the same seed has the same failures. Without
CONFIG_BLK_DEV_NULL_BLK_FAULT_INJECTION the kernel has neither.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from blklab.labs.torture.seeds import Load, draw_load

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


_LOADS_WITHOUT: frozenset[Load] = frozenset({"equals", "bursts"})
"""Loads without faults: there a task starves by the scheduler's choice alone, and a disk that hands requests
back would wake the scheduler up."""


def draw_faults(seed: int) -> Faults:
    """The faults of a seed."""
    if draw_load(seed) in _LOADS_WITHOUT:
        return NO_FAULTS
    drawn = hashlib.sha256(f"faults {seed}".encode()).digest()
    return Faults(_REQUEUES[drawn[0] % len(_REQUEUES)], _TIMEOUTS[drawn[1] % len(_TIMEOUTS)])
