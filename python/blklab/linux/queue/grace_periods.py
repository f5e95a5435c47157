"""Shorter RCU grace periods while schedulers take turns.

A switch of the scheduler freezes the queue, which waits for grace periods (``elevator_change``,
block/elevator.c, and ``blk_mq_freeze_queue``, block/blk-mq.c, of Linux 6.18). With
``/sys/kernel/rcu_expedited`` the kernel interrupts the processors to end some of these waits early, so that
less of each slot is lost to the switch. The setting is the whole machine's; it holds only while a stretch
runs, and for all schedulers alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from blklab.linux.machine.host_change import KernelWrite
from blklab.linux.machine.kernel_files import text_or_empty

if TYPE_CHECKING:
    from blklab.linux.journal.journal import Journal

RCU_EXPEDITED = Path("/sys/kernel/rcu_expedited")
_OFF, _ON = "0", "1"


class GracePeriods:
    """Shortens grace periods for a time, and restores what was before."""

    def __init__(self) -> None:
        """Changes nothing yet."""
        self._protected = False

    @contextmanager
    def shortened(self, journal: Journal) -> Iterator[None]:
        """Leaves the setting alone if it is on already, by another comparison or an administrator.

        Args:
            journal: Records the setting before the first change.
        """
        if text_or_empty(RCU_EXPEDITED).strip() != _OFF:
            yield
            return
        if not self._protected:
            journal.protect_attribute(RCU_EXPEDITED)
            self._protected = True
        # Slots are merely longer where the kernel refuses.
        with suppress(OSError):
            _setting(_ON).make()
        try:
            yield
        finally:
            with suppress(OSError):
                _setting(_OFF).make()


def commands(inner: list[str]) -> list[str]:
    """The same as shell commands, around those of a stretch."""
    return [*_setting(_ON).shell(), *inner, *_setting(_OFF).shell()]


def _setting(value: str) -> KernelWrite:
    return KernelWrite(RCU_EXPEDITED, value)
