"""I/O priorities of tasks as the kernel sees them, and which schedulers heed them.

A task without a priority of its own counts by its scheduling policy and nice value, as
include/linux/ioprio.h (Linux 6.1) has it in ``task_nice_ioclass`` and ``task_nice_ioprio``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import psutil

_SCHED_FIFO, _SCHED_RR, _SCHED_IDLE = 1, 2, 5


class IoClass(IntEnum):
    """Classes, by the numbers of ``IOPRIO_CLASS_*`` (include/uapi/linux/ioprio.h)."""

    NONE = 0
    REALTIME = 1
    BEST_EFFORT = 2
    IDLE = 3


_SHORT = {IoClass.REALTIME: "rt", IoClass.BEST_EFFORT: "be", IoClass.IDLE: "idle"}


@dataclass(frozen=True)
class IoPriority:
    """A class and, in all but the idle class, a level: 0 is served first, 7 last."""

    io_class: IoClass
    level: int
    inherited: bool
    """Whether it follows from the nice value, since nobody set one."""

    @property
    def text(self) -> str:
        """``rt/0``, ``be/4`` or ``idle``."""
        short = _SHORT.get(self.io_class, "?")
        return short if self.io_class is IoClass.IDLE else f"{short}/{self.level}"


def priority_of(task: int, *, nice: int, policy: int) -> IoPriority | None:
    """The priority under which a task's direct I/O and reads are served; nothing if the task is gone.

    Args:
        task: Number of a thread.
        nice: Its nice value, -20 to 19.
        policy: Its scheduling policy (``SCHED_*``).
    """
    try:
        given = psutil.Process(task).ionice()
    except (psutil.Error, OSError):
        return None
    if given.ioclass != IoClass.NONE:
        return IoPriority(IoClass(int(given.ioclass)), int(given.value), inherited=False)
    level = (nice + 20) // 5
    if policy == _SCHED_IDLE:
        return IoPriority(IoClass.IDLE, 7, inherited=True)
    if policy in (_SCHED_FIFO, _SCHED_RR):
        return IoPriority(IoClass.REALTIME, level, inherited=True)
    return IoPriority(IoClass.BEST_EFFORT, level, inherited=True)


_HEEDS = {
    "bfq": "classes and levels",
    "cfq": "classes and levels",
    "mq-deadline": "classes only",
}


def priority_support(scheduler: str) -> str:
    """What a scheduler makes of priorities: ``classes and levels``, ``classes only`` or ``nothing``.

    block/bfq-iosched.c (``bfq_ioprio_to_weight``), block/cfq-iosched.c (4.16) and block/mq-deadline.c (since
    5.14); no other scheduler reads them.
    """
    return _HEEDS.get(scheduler, "nothing")
