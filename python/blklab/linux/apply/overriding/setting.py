"""A setting of a disk that somebody else would change, and files that name such settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from blklab.linux.disks.disk import Disk
from blklab.linux.queue.sysfs import TUNABLE_PREFIX
from blklab.spec.schedulers import SchedulerChoice


@dataclass(frozen=True)
class Setting:
    """The scheduler and tunables that a disk is to keep."""

    disk: Disk
    choice: SchedulerChoice
    rule_name: str | None
    """File name of the udev rule that sets it; None if it is set until the next boot only."""
    events: frozenset[str]
    """The events at which that rule sets it."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """The disk's properties in udev, as far as they are known."""

    @property
    def wanted(self) -> dict[str, str]:
        """Values by attribute, below the disk's ``queue``."""
        tunables = {TUNABLE_PREFIX + name: value for name, value in self.choice.iosched.items()}
        return {"scheduler": self.choice.name, **self.choice.queue, **tunables}

    @property
    def sets_cost(self) -> bool:
        """Whether io.cost's parameters of the disk are to be kept too."""
        return bool(self.choice.for_disk.of_groups)

    @property
    def paths(self) -> dict[str, list[str]]:
        """The attributes' paths in sysfs, as people write them."""
        folders = (f"/sys/block/{self.disk.name}", f"/sys/class/block/{self.disk.name}")
        return {name: [f"{folder}/queue/{name}" for folder in folders] for name in self.wanted}


@dataclass(frozen=True)
class Overrider:
    """A place that would give a disk another setting."""

    place: str
    """File and line."""
    text: str
    """A clause about it, without a full stop."""
    remedy: str

    def __str__(self) -> str:
        return f"{self.place} {self.text}; {self.remedy}"


def configuration_files(root: Path, folders: Sequence[str], suffix: str) -> Iterator[Path]:
    """Files in the order of their names, as systemd reads them: the first folder that has a name wins.

    Args:
        root: The root of the file system.
        folders: Relative to it, in order of precedence.
        suffix: Of the files' names.
    """
    found: dict[str, Path] = {}
    for folder in folders:
        for path in (root / folder).glob(f"*{suffix}"):
            found.setdefault(path.name, path)
    for name in sorted(found):
        yield found[name]


def lines_of(path: Path) -> list[str]:
    """The lines of a file; none if it cannot be read, as a mask (a link to /dev/null) has none."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def shown(path: Path, root: Path) -> str:
    """The path as the running system has it."""
    return f"/{path.relative_to(root)}"


def how_to_edit(path: Path, root: Path, own_folder: str) -> str:
    """Advice on taking a line out of a file, which a package may own."""
    if path.parent == root / own_folder:
        return "take that line out"
    return f"copy the file to /{own_folder} under the same name and take that line out there"
