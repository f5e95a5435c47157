"""A block device as sysfs describes it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from blklab.linux.machine.kernel_files import text_or_empty

SECTOR_BYTES = 512
"""Unit of ``size`` in sysfs, regardless of the device's own sector size."""
_DRIVERS = {"virtio_blk": "virtio disk", "vbd": "Xen disk", "xen_blkfront": "Xen disk"}
"""Names for virtual machines' disks, which have no model, by driver."""
STAND_INS = frozenset({"loop device", *_DRIVERS.values()})
"""Models that are ours: the device itself has none."""


@dataclass(frozen=True)
class Roots:
    """The mount points of the kernel's file systems; tests use other ones."""

    sys: Path = Path("/sys")
    proc: Path = Path("/proc")
    dev: Path = Path("/dev")


@dataclass(frozen=True)
class Disk:
    """A whole disk, or another block device with a scheduler of its own."""

    name: str
    device_number: str
    """``254:0``; empty for a hidden path of an NVMe multipath device, which has no number."""
    sys_path: Path
    """Its directory in sysfs, symbolic links resolved."""
    dev_path: Path
    """Its device node; for a hidden path, the node of the multipath head."""
    model: str
    serial: str
    wwid: str
    size_bytes: int
    rotational: bool | None
    diskseq: str = ""
    """The kernel's count of disks (media, loop attachments) since boot; empty before Linux 5.15."""

    @property
    def key(self) -> str:
        """Identifies the disk among all disks of the running machine."""
        return self.device_number or self.name

    @property
    def digest(self) -> str:
        """Tells drives apart in stored runs without naming them; empty if the drive has no name of its own.

        A loop device has none: it is as new as the file beneath it.
        """
        named = self.wwid or self.serial
        if not named or self.name.startswith("loop"):
            return ""
        text = "/".join((self.model, str(self.size_bytes), named))
        return hashlib.sha256(f"blklab drive {text}".encode()).hexdigest()[:16]


def read_disk(folder: Path, roots: Roots | None = None, *, node: Path | None = None) -> Disk:
    """Describes the block device of a sysfs directory; what the kernel does not say stays empty."""
    roots = roots or Roots()
    loop = (folder / "loop").is_dir() or folder.name.startswith("loop")
    size = text_or_empty(folder / "size")
    rotational = text_or_empty(folder / "queue" / "rotational")
    return Disk(
        name=folder.name,
        device_number=text_or_empty(folder / "dev"),
        sys_path=folder,
        dev_path=node or roots.dev / folder.name.replace("!", "/"),
        model="loop device" if loop else _model(folder),
        serial=_serial(folder),
        wwid=text_or_empty(folder / "wwid")
        or text_or_empty(folder / "device" / "wwid")
        or text_or_empty(folder / "dm" / "uuid"),
        size_bytes=int(size) * SECTOR_BYTES if size.isdigit() else 0,
        rotational={"0": False, "1": True}.get(rotational),
        diskseq=text_or_empty(folder / "diskseq"),
    )


def has_scheduler(folder: Path) -> bool:
    """Tells whether the block device of a sysfs directory has a scheduler; bio-based devices have none."""
    return "[" in text_or_empty(folder / "queue" / "scheduler")


def firmware_of(folder: Path) -> str:
    """The firmware's version of a sysfs directory's block device; empty if it reports none."""
    return text_or_empty(folder / "device" / "firmware_rev") or text_or_empty(folder / "device" / "rev")


def _model(folder: Path) -> str:
    named = text_or_empty(folder / "device" / "model") or text_or_empty(folder / "device" / "name")
    driver = folder / "device" / "driver"
    return named or (_DRIVERS.get(driver.resolve().name, "") if driver.exists() else "")


def _serial(folder: Path) -> str:
    plain = text_or_empty(folder / "serial") or text_or_empty(folder / "device" / "serial")
    if plain:
        return plain
    try:
        page = (
            folder / "device" / "vpd_pg80"
        ).read_bytes()  # SCSI: unit serial number page, 4 bytes of header
    except OSError:
        return ""
    return page[4:].decode("ascii", errors="replace").strip("\0 ")
