"""Settings that the kernel couples: writing one changes or resets another.

Restoring writes causes before effects, and reads the effects again afterwards: the kernel may
have put them right, and writing them is not the same. `wbt_lat_usec` is an example. The kernel keeps for each
disk whether writeback throttling was switched by default or by hand (``enable_state``, block/blk-wbt.c), and
any write that changes the value makes it "by hand", ``-1`` included; bfq and io.cost leave it alone from then
on, until the disk is removed. Sysfs does not show that state.

The functions are those of Linux 6.1, 6.12 and 7.2, if no release is named.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from blklab.linux.cgroups.cost_control import COST_CONTROL, THROTTLING
from blklab.linux.queue.sysfs import SCHEDULER, TUNABLE_PREFIX
from blklab.spec.queue_attributes import ASYNC_DEPTH


@dataclass(frozen=True)
class Coupling:
    """One setting that moves another."""

    cause: str
    """An attribute of the queue, or a file of the root control group."""
    effect: str
    """The attribute of the queue that the kernel changes; `TUNABLE_PREFIX` for all tunables."""
    rule: str
    """The change, with its exceptions."""
    source: str
    """The functions that do it."""


COUPLINGS = (
    Coupling(
        COST_CONTROL,
        THROTTLING,
        "enable=1 turns writeback throttling off, so that it reads 0; enable=0 turns it on again unless bfq "
        "is active; neither if it was set by hand",
        "ioc_qos_write (block/blk-iocost.c), Linux 6.12 and 7.2; in 6.1 it does not",
    ),
    Coupling(
        SCHEDULER,
        THROTTLING,
        "bfq turns writeback throttling off; leaving bfq turns it on again, even while io.cost is on; "
        "neither if it was set by hand",
        "bfq_init_queue, bfq_exit_queue (block/bfq-iosched.c); 6.1 shows the value as if it were on",
    ),
    Coupling(
        SCHEDULER,
        "nr_requests",
        "each switch gives it the default of the new scheduler",
        "blk_mq_init_sched (block/blk-mq-sched.c), elevator_disable (block/elevator.c) in 6.12",
    ),
    Coupling(
        SCHEDULER,
        TUNABLE_PREFIX,
        "the tunables of the scheduler that is left are lost; those of the new one have their defaults",
        "elevator_switch (block/elevator.c)",
    ),
    Coupling(
        "nr_requests",
        ASYNC_DEPTH,
        "the kernel changes it in proportion",
        "blk_mq_update_nr_requests (block/blk-mq.c), Linux 7.2",
    ),
    Coupling(
        "nr_requests",
        TUNABLE_PREFIX,
        "mq-deadline sets its async_depth to it",
        "dd_depth_updated (block/mq-deadline.c), Linux 6.12",
    ),
    *(
        Coupling(
            limit,
            "read_ahead_kb",
            "the kernel computes it again whenever the queue's limits are set",
            "blk_apply_bdi_limits (block/blk-settings.c), Linux 6.12",
        )
        for limit in ("max_sectors_kb", "rotational", "stable_writes")
    ),
)


@cache
def restoring_rank(name: str) -> int:
    """The place of a setting in the order in which settings are restored: causes before effects.

    Args:
        name: An attribute of the queue, a tunable, or a file of the root control group.
    """
    causes = [coupling.cause for coupling in COUPLINGS if _covers(coupling.effect, name)]
    return max((1 + restoring_rank(cause) for cause in causes), default=0)


def moved_by(causes: Iterable[str]) -> frozenset[str]:
    """The attributes of the queue that the kernel may change when settings are written, directly or not."""
    known = frozenset(causes)
    moved: frozenset[str] = frozenset()
    while True:
        more = frozenset(one.effect for one in COUPLINGS if one.cause in known | moved)
        if more <= moved:
            return moved
        moved |= more


def _covers(effect: str, name: str) -> bool:
    return name.startswith(effect) if effect == TUNABLE_PREFIX else name == effect
