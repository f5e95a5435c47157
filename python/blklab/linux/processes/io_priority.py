"""I/O priorities of tasks as the kernel sees them, and which schedulers honor them.

A task without a priority of its own gets one from its scheduling policy and nice value:
``task_nice_ioclass`` and ``task_nice_ioprio`` in include/linux/ioprio.h (Linux 6.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import psutil

_SCHED_FIFO, _SCHED_RR, _SCHED_IDLE = 1, 2, 5


class IoClass(IntEnum):
    """I/O priority classes, numbered as ``IOPRIO_CLASS_*`` (include/uapi/linux/ioprio.h)."""

    NONE = 0
    REALTIME = 1
    BEST_EFFORT = 2
    IDLE = 3


_SHORT = {IoClass.REALTIME: "rt", IoClass.BEST_EFFORT: "be", IoClass.IDLE: "idle"}


@dataclass(frozen=True)
class IoPriority:
    """A class and, except in the idle class, a level: 0 is served first, 7 last."""

    io_class: IoClass
    level: int
    inherited: bool
    """Whether it comes from the nice value, because none was set."""

    @property
    def text(self) -> str:
        """``rt/0``, ``be/4`` or ``idle``."""
        short = _SHORT.get(self.io_class, "?")
        return short if self.io_class is IoClass.IDLE else f"{short}/{self.level}"


def priority_of(task: int, *, nice: int, policy: int) -> IoPriority | None:
    """The priority of a task's direct I/O and reads; None if the task has ended.

    Args:
        task: Thread ID.
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


_SUPPORT = {
    "bfq": "classes and levels",
    "cfq": "classes and levels",
    "mq-deadline": "classes only",
}


def priority_support(scheduler: str) -> str:
    """The priorities that a scheduler honors: ``classes and levels``, ``classes only`` or ``no priorities``.

    Sources: block/bfq-iosched.c (``bfq_ioprio_to_weight``), block/cfq-iosched.c (4.16) and
    block/mq-deadline.c (since 5.14). No other scheduler reads priorities.
    """
    return _SUPPORT.get(scheduler, "no priorities")


def ignores_priorities(scheduler: str) -> bool:
    """Tells whether I/O priorities have no effect under a scheduler."""
    return scheduler not in _SUPPORT
