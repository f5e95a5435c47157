"""A block device as sysfs describes it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from blklab.linux.machine.kernel_files import text_or_empty

SECTOR_BYTES = 512
"""Unit of ``size`` in sysfs, whatever the device's own sector size is."""
_DRIVERS = {"virtio_blk": "virtio disk", "vbd": "Xen disk", "xen_blkfront": "Xen disk"}
"""Disks of virtual machines that have no model, by their driver."""


@dataclass(frozen=True)
class Roots:
    """Where the kernel's trees are; others than the real ones serve tests."""

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
    """Its folder in sysfs, symbolic links resolved."""
    dev_path: Path
    """Its node; for a hidden path the node of the device it belongs to."""
    model: str
    serial: str
    wwid: str
    size_bytes: int
    rotational: bool | None
    diskseq: str = ""
    """Counts up with every disk (or medium, or loop attachment) since boot; empty before Linux 5.15."""

    @property
    def key(self) -> str:
        """Tells the disk apart from all others of the running machine."""
        return self.device_number or self.name


def read_disk(folder: Path, roots: Roots | None = None, *, node: Path | None = None) -> Disk:
    """Describes the block device of a sysfs folder; what the kernel does not tell is left empty."""
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
    """Whether the device of a sysfs folder orders its requests itself (one that takes bios does not)."""
    return "[" in text_or_empty(folder / "queue" / "scheduler")


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
