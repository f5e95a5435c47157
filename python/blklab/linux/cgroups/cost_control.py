"""io.cost as a switch of each disk, and what it holds still in the disk's queue."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from blklab.errors import RequirementError
from blklab.linux.cgroups.changes import AttributeWrite
from blklab.linux.cgroups.hierarchy import find_hierarchy
from blklab.linux.cgroups.settings import device_numbers
from blklab.linux.disks.disk import Disk
from blklab.linux.machine.kernel_files import text_or_empty
from blklab.spec.group_settings import words_of

COST_CONTROL = "io.cost.qos"
"""The file of the root control group that turns io.cost on for a disk."""
THROTTLING = "wbt_lat_usec"
_THROTTLED_BY_NONE = "0"


class CostControl:
    """io.cost of this machine's disks."""

    def __init__(self, root: Path | None = None) -> None:
        """Looks for nothing yet.

        Args:
            root: The root control group of version 2; None to find it.
        """
        self._given_root = root

    @cached_property
    def _file(self) -> Path | None:
        """The file that turns io.cost on; None if this machine has none."""
        root = self._given_root
        if root is None:
            try:
                root = find_hierarchy().root
            except RequirementError:
                return None
        path = root / COST_CONTROL
        return path if path.exists() else None

    def is_on(self, disk: Disk) -> bool:
        """Whether io.cost controls a disk."""
        if self._file is None:
            return False
        try:
            (number,) = device_numbers([disk])
        except OSError:
            return False
        lines = text_or_empty(self._file).splitlines()
        line = next((line for line in lines if line.startswith(f"{number} ")), "")
        return words_of(line).get("enable") == "1"

    def held(self, disk: Disk) -> Mapping[str, str]:
        """Attributes of the queue that keep a value while io.cost is on, by name.

        Writing them would bring writeback throttling back beside io.cost, and as set by hand.
        """
        return {THROTTLING: _THROTTLED_BY_NONE} if self.is_on(disk) else {}

    def renew(self, disk: Disk) -> bool:
        """Has the kernel turn writeback throttling off again, if io.cost is on.

        Leaving bfq turns it on, whatever io.cost says (`blklab.linux.queue.coupling`). So a run under io.cost
        would depend on the scheduler before it.

        Returns:
            Whether io.cost was told again that it is on.

        Raises:
            OSError: if the kernel refuses.
        """
        if not self.throttles(disk) or (change := self.renewal(disk)) is None:
            return False
        change.make()
        return True

    def throttles(self, disk: Disk) -> bool:
        """Whether writeback throttling is on beside io.cost."""
        value = text_or_empty(disk.sys_path / "queue" / THROTTLING)
        return value not in ("", _THROTTLED_BY_NONE) and self.is_on(disk)

    def renewal(self, disk: Disk) -> AttributeWrite | None:
        """The write of `renew`; None on a machine without io.cost."""
        if self._file is None:
            return None
        return AttributeWrite(self._file, f"{device_numbers([disk])[0]} enable=1")
