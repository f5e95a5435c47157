"""Classes of drives: by model, by the kind of device, and by whether they rotate.

A model is a pattern as shells have them (``Samsung SSD 9*``); upper and lower case differ, as they do for
udev. The kind is the kernel's driver of the device, which shows in its name.
"""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass

from blklab.errors import UsageError

KINDS = {
    "nvme": "nvme*",
    "scsi": "sd*",
    "mmc": "mmcblk*",
    "virtio": "vd*",
    "xen": "xvd*",
    "loop": "loop*",
}
"""Pattern of the kernel's names, by kind; ``scsi`` includes SATA, SAS and USB."""

VIRTUAL = ("virtio", "xen")
"""Kinds of virtual machines' disks."""

_HEADLESS = ("vd", "xvd", "loop", "nbd", "dm-", "md", "zram")
"""Such disks say that they rotate, or not, without any head that moves: whatever their host keeps them on."""


def has_head(name: str, *, rotational: bool | None) -> bool:
    """Whether a head moves over the disk, by the kernel's name and flag.

    Args:
        name: The kernel's name of the disk, e.g. ``sda``.
        rotational: As the kernel says; None if unknown.
    """
    return bool(rotational) and not name.startswith(_HEADLESS)


def known_rotational(name: str, *, rotational: bool | None) -> bool | None:
    """The kernel's flag; None where a disk without a head says that it rotates."""
    return None if rotational and not has_head(name, rotational=True) else rotational


def kind_of(name: str) -> str:
    """The kind of a disk by the kernel's name for it; empty for other kinds, such as models."""
    return next((kind for kind, pattern in KINDS.items() if fnmatch.fnmatchcase(name, pattern)), "")


@dataclass(frozen=True)
class DriveClass:
    """A class of drives; what is None does not matter."""

    model: str | None = None
    """Pattern of the model's name."""
    kind: str | None = None
    """One of `KINDS`."""
    rotational: bool | None = None

    def __post_init__(self) -> None:
        if self.kind is not None and self.kind not in KINDS:
            raise UsageError(f"{self.kind!r} is no kind of drive", hint=f"known are {', '.join(KINDS)}")
        if self.model is not None and not self.model.strip():
            raise UsageError("the model is empty", hint="give a name or a pattern, such as 'Samsung SSD 9*'")

    def includes(self, *, name: str, model: str, rotational: bool | None) -> bool:
        """Tells whether a drive belongs to it; a disk that says it rotates and has no head is neither kind.

        Args:
            name: The kernel's name of the disk.
            model: The drive's name of itself.
            rotational: As the kernel says.
        """
        return (
            (self.model is None or fnmatch.fnmatchcase(model.strip(), self.model.strip()))
            and (self.kind is None or kind_of(name) == self.kind)
            and (self.rotational is None or known_rotational(name, rotational=rotational) == self.rotational)
        )

    @property
    def words(self) -> str:
        """For people: ``rotational scsi drives of model ST4000*``."""
        rotates = {True: "rotational ", False: "non-rotational ", None: ""}[self.rotational]
        kind = f"{'virtual ' if self.kind in VIRTUAL else ''}{self.kind} " if self.kind else ""
        model = f" of model {self.model}" if self.model else ""
        drives = "disks" if self.kind in VIRTUAL else "drives"
        return f"{rotates}{kind}{drives}{model}" if rotates or kind or model else "all drives"

    @property
    def slug(self) -> str:
        """A part of a file name; the same class always gives the same one."""
        rotates = {True: "rotational", False: "non-rotational", None: ""}[self.rotational]
        text = "-".join(part for part in (self.model, self.kind, rotates) if part)
        return "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in text)[:100]
