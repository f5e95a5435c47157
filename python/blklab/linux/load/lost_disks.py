"""A load ends as soon as one of its disks is gone.

Reads of an NVMe disk that was unplugged return nothing and no error (the size of a dead disk is zero,
``blk_mark_disk_dead`` in block/genhd.c), so a load that is limited by time would go on until it is over.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from blklab.linux.load.load_process import kill_loads

_LOOK_EVERY_S = 0.25


@contextmanager
def loads_end_with_their_disks(disks: Sequence[Path]) -> Iterator[None]:
    """Kills the loads that are under way when a disk's folder in sysfs is gone.

    Args:
        disks: The folders in sysfs. It is for the caller to find out afterwards that one is missing.
    """
    over = threading.Event()

    def look_on() -> None:
        while not over.wait(_LOOK_EVERY_S):
            if not all(disk.exists() for disk in disks):
                # Again and again: a load of several processes may start the next one.
                kill_loads()

    thread = threading.Thread(target=look_on, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
