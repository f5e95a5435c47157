"""Makes sysfs trees of block devices that this machine does not have, in the shape of real ones."""

from __future__ import annotations

import os
from pathlib import Path

from blklab.linux.disks.disk import Roots

FOUR_SCHEDULERS = "[mq-deadline] kyber bfq none\n"
WITHOUT_SCHEDULER = "none\n"


class SysfsTree:
    """A made-up machine: /sys, /proc and /dev under a folder."""

    def __init__(self, folder: Path) -> None:
        self.roots = Roots(sys=folder / "sys", proc=folder / "proc", dev=folder / "dev")
        for path in ("sys/block", "sys/class/block", "sys/dev/block", "sys/fs/btrfs", "proc/self", "dev"):
            (folder / path).mkdir(parents=True)

    def disk(
        self,
        name: str,
        number: str | None,
        *,
        parent: str = "devices/pci0000:00/0000:00:1f.2",
        scheduler: str | None = FOUR_SCHEDULERS,
        slaves: tuple[str, ...] = (),
        files: dict[str, str] | None = None,
    ) -> Path:
        """Adds a whole block device."""
        folder = self.roots.sys / parent / name
        queue = {} if scheduler is None else {"queue/scheduler": scheduler}
        contents = {"size": "2048000\n", "queue/rotational": "0\n", **queue, **(files or {})}
        if number is not None:
            contents["dev"] = f"{number}\n"
        for path, text in contents.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        (folder / "slaves").mkdir()
        (folder / "holders").mkdir()
        for slave in slaves:
            below = (self.roots.sys / "class" / "block" / slave).resolve()
            self._link(folder / "slaves" / slave, below)
            self._link(below / "holders" / name, folder)
        self._link(self.roots.sys / "block" / name, folder)
        self._register(folder, number)
        return folder

    def partition(self, disk: str, name: str, number: str) -> Path:
        """Adds a partition of a disk."""
        folder = (self.roots.sys / "block" / disk).resolve() / name
        (folder / "holders").mkdir(parents=True)
        (folder / "partition").write_text("1\n")
        (folder / "dev").write_text(f"{number}\n")
        (folder / "size").write_text("2046000\n")
        self._register(folder, number)
        return folder

    def mounts(self, *lines: str) -> None:
        """Writes the table of mounts."""
        (self.roots.proc / "self" / "mountinfo").write_text("".join(f"{line}\n" for line in lines))

    def _register(self, folder: Path, number: str | None) -> None:
        self._link(self.roots.sys / "class" / "block" / folder.name, folder)
        if number is not None:
            self._link(self.roots.sys / "dev" / "block" / number, folder)

    @staticmethod
    def _link(path: Path, target: Path) -> None:
        path.symlink_to(os.path.relpath(target, path.parent))
