"""A made-up disk whose kernel couples its settings as Linux 6.12 does: io.cost, bfq, writeback throttling."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sysfs_tree import SysfsTree

from blklab.linux.apply import cost_parameters
from blklab.linux.cgroups import cost_control
from blklab.linux.cgroups.hierarchy import Hierarchy
from blklab.linux.disks.disk import Disk, read_disk
from blklab.linux.journal import undo
from blklab.linux.machine import host_change
from blklab.linux.queue import attributes, schedulers, snapshot

_DEFAULT_US = 2000
TUNABLES = {"none": {}, "mq-deadline": {"fifo_batch": "16"}, "bfq": {"slice_idle": "8"}}
"""Of each scheduler that the kernel offers."""
_WRITERS = (attributes, host_change, schedulers, snapshot, undo)


class CoupledKernel:
    """One disk, ``sda`` with the number 8:0, and the root control group."""

    def __init__(self, folder: Path) -> None:
        tree = SysfsTree(folder)
        path = tree.disk("sda", "8:0", scheduler="[none] mq-deadline bfq\n")
        self.disk: Disk = dataclasses.replace(read_disk(path, tree.roots), dev_path=Path("/dev/null"))
        self.queue = path / "queue"
        self.qos = folder / "cgroup" / "io.cost.qos"
        self.qos.parent.mkdir()
        self.throttling = "on by default"
        """`enable_state` of 6.12: on or off, by default or by hand."""
        self.latency_us = _DEFAULT_US
        self.cost = False
        self.writes: list[str] = []
        (self.queue / "iosched").mkdir()
        self.scheduler = "none"
        self._switch("none")
        self.qos.write_text("8:0 enable=0 ctrl=auto\n")

    def write(self, path: Path, value: str) -> None:
        """Imitates write(2)."""
        self.writes.append(f"{path.name}={value}")
        value = value.strip()
        match path.name:
            case "scheduler":
                if value != self.scheduler:
                    self._switch(value)
            case "wbt_lat_usec":
                wanted = _DEFAULT_US if value == "-1" else int(value)
                if wanted != self.latency_us:
                    self.latency_us = wanted
                    self.throttling = "on by hand" if wanted else "off by hand"
            case "io.cost.qos":
                self.cost = "enable=1" in value or ("enable=0" not in value and self.cost)
                self._disable_by_default() if self.cost else self._enable_by_default()
                self.qos.write_text(f"8:0 enable={int(self.cost)} ctrl=auto\n")
            case _:
                path.write_text(f"{value}\n")
        self._show()

    def _switch(self, name: str) -> None:
        left, self.scheduler = self.scheduler, name
        if left == "bfq":
            self._enable_by_default()
        if name == "bfq":
            self._disable_by_default()
        for path in (self.queue / "iosched").iterdir():
            path.unlink()
        for tunable, value in TUNABLES[name].items():
            (self.queue / "iosched" / tunable).write_text(f"{value}\n")
        (self.queue / "nr_requests").write_text("64\n" if name != "none" else "32\n")
        self._show()

    def _enable_by_default(self) -> None:
        if self.scheduler != "bfq" and self.throttling == "off by default":
            self.throttling = "on by default"

    def _disable_by_default(self) -> None:
        if self.throttling == "on by default":
            self.throttling = "off by default"

    def _show(self) -> None:
        listed = " ".join(f"[{one}]" if one == self.scheduler else one for one in TUNABLES)
        (self.queue / "scheduler").write_text(f"{listed}\n")
        shown = self.latency_us if self.throttling.startswith("on") else 0
        (self.queue / "wbt_lat_usec").write_text(f"{shown}\n")


@contextmanager
def coupled_kernel(folder: Path, kind: type[CoupledKernel] = CoupledKernel) -> Iterator[CoupledKernel]:
    """Puts such a kernel in place of this machine's."""
    kernel = kind(folder)
    hierarchy = Hierarchy(2, kernel.qos.parent)
    with pytest.MonkeyPatch.context() as patch:
        for module in _WRITERS:
            patch.setattr(module, "write_once", kernel.write)
        patch.setattr(cost_control, "find_hierarchy", lambda: hierarchy)
        patch.setattr(cost_parameters, "find_hierarchy", lambda: hierarchy)
        for module in (cost_control, cost_parameters):
            patch.setattr(module, "device_numbers", lambda _: ["8:0"])
        yield kernel
