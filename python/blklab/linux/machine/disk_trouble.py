"""Lines of the kernel's log that tell of trouble with a disk: the table of messages, and a disk's names.

A disk has many names there: its own (``sda``), its partitions', its address (``2:0:0:0``), its controller's
(``nvme0``, ``ata3``, ``0000:00:1f.2``), and those of the devices and file systems on it (``md0``, ``dm-1``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from blklab.linux.machine.kernel_files import text_or_empty
from blklab.linux.machine.kernel_log import LogLine
from blklab.linux.machine.stacked_devices import devices_above
from blklab.records.machine_events import KernelMessage


@dataclass(frozen=True)
class Trouble:
    """One kind of message."""

    kind: str
    """In words, for people."""
    pattern: str
    """A regular expression that its text contains."""
    source: str
    """Where the kernel prints it."""


TROUBLES = (
    Trouble(
        "timeout", r"timeout, (?:aborting|reset controller|disable controller)", "drivers/nvme/host/pci.c"
    ),
    Trouble("timeout", r"timeout, completion polled", "drivers/nvme/host/pci.c"),
    Trouble("abort", r"Abort status: 0x", "drivers/nvme/host/pci.c"),
    Trouble("reset", r"controller is down; will reset", "drivers/nvme/host/pci.c"),
    Trouble("reset", r"resetting controller|Device not ready; aborting", "drivers/nvme/host/core.c"),
    Trouble(
        "device lost",
        r"Removing after probe failure|Disabling device after reset failure",
        "drivers/nvme/host/pci.c",
    ),
    Trouble("I/O error", r"\(0x[0-9a-f]+\) @ LBA \d+", "drivers/nvme/host/core.c: nvme_log_error"),
    Trouble(
        "reset",
        r"starting error recovery|Reconnecting in \d+ seconds",
        "drivers/nvme/host/tcp.c, rdma.c, fc.c",
    ),
    Trouble(
        "medium error",
        r"critical medium error, dev |Medium Error|Unrecovered read error",
        "block/blk-mq.c: blk_print_req_error; drivers/scsi/constants.c",
    ),
    Trouble("I/O error", r"\berror, dev \S+, sector", "block/blk-mq.c: blk_print_req_error"),
    Trouble("I/O error", r"Buffer I/O error on dev", "fs/buffer.c"),
    Trouble(
        "I/O error",
        r"FAILED Result: hostbyte=|Sense Key : (?:Hardware Error|Aborted Command)",
        "drivers/scsi/scsi_logging.c",
    ),
    Trouble(
        "device lost",
        r"rejecting I/O to (?:offline|dead) device|Device offlined",
        "drivers/scsi/scsi_lib.c, scsi_error.c",
    ),
    Trouble("timeout", r"timing out command, waited", "drivers/scsi/scsi_lib.c"),
    Trouble(
        "abort",
        r"attempting task abort|uas_eh_abort_handler",
        "drivers/scsi/mpt3sas, drivers/usb/storage/uas.c",
    ),
    Trouble(
        "reset",
        r"(?:attempting|Attempting) (?:device|target|host|bus) reset|uas_eh_\w+_reset_handler",
        "drivers/scsi/mpt3sas, drivers/usb/storage/uas.c",
    ),
    Trouble("reset", r"reset \S*(?:high|full|Super)\S* ?\S* USB device", "drivers/usb/core/hub.c"),
    Trouble("exception", r"exception Emask", "drivers/ata/libata-eh.c"),
    Trouble("I/O error", r": failed command: ", "drivers/ata/libata-eh.c"),
    Trouble("medium error", r"error: \{ .*UNC", "drivers/ata/libata-eh.c"),
    Trouble(
        "timeout",
        r"qc timeout|link is slow to respond|SRST failed|COMRESET failed",
        "drivers/ata/libata-eh.c",
    ),
    Trouble("reset", r"(?:hard|soft) resetting link", "drivers/ata/libata-eh.c"),
    Trouble(
        "device lost",
        r"limiting (?:SATA link )?speed to|NCQ disabled due to|disable device|detaching \(SCSI",
        "drivers/ata/libata-eh.c, libata-core.c",
    ),
    Trouble("timeout", r"Timeout waiting for hardware|Card stuck", "drivers/mmc/host/sdhci.c"),
    Trouble(
        "I/O error", r"(?:sbc|cmd|data) error -?\d+|mmcblk\d+\S*: recovery failed", "drivers/mmc/core/block.c"
    ),
    Trouble(
        "array",
        r"Disk failure on \S+, disabling device|read error (?:corrected|not correctable)",
        "drivers/md/raid1.c, raid10.c, raid5.c",
    ),
    Trouble("array", r"(?:resync|recovery|data-check|reshape) of RAID array", "drivers/md/md.c"),
    Trouble("array", r"multipath: \S+ Failing path", "drivers/md/dm-mpath.c"),
    Trouble(
        "I/O error",
        r"AEAD ERROR|Checksum failed at sector|metadata block \d+ is corrupted",
        "drivers/md/dm-crypt.c, dm-integrity.c, dm-verity-target.c",
    ),
    Trouble("file system", r"EXT4-fs (?:error|\(\S+\): (?:Remounting|I/O error))", "fs/ext4/super.c"),
    Trouble("file system", r"XFS \(\S+\): .*(?:I/O error|shutting down|Shutting down|Corruption)", "fs/xfs"),
    Trouble(
        "file system", r"BTRFS (?:error|critical).*(?:bdev|errs|I/O|lost page write)", "fs/btrfs/volumes.c"
    ),
)
"""The messages that count, and the files of Linux that print them. The first that fits gives the kind."""

_PATTERNS = tuple((trouble.kind, re.compile(trouble.pattern)) for trouble in TROUBLES)
_ATA_PORT = re.compile(r"ata\d+")
_PCI_DEVICE = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_USB_DEVICE = re.compile(r"\d+-\d+(?:\.\d+)*")
_CONTROLLER = re.compile(r"nvme\d+|mmc\d+|mmc\d+:[0-9a-f]+|\d+:\d+:\d+:\d+|virtio\d+")


def names_of(disks: Iterable[Path]) -> frozenset[str]:
    """All names that the kernel's log may give to disks, and to what is on them.

    Args:
        disks: Their directories in sysfs, symbolic links resolved.
    """
    names: set[str] = set()
    for disk in disks:
        names |= _own_names(disk)
        for above in devices_above(disk):
            names |= {above.name, text_or_empty(above / "dev")}
    return frozenset(names - {""})


def _own_names(disk: Path) -> set[str]:
    device = (disk / "device").resolve()
    names = {disk.name, text_or_empty(disk / "dev")}
    # A multipath head's device is a subsystem, which links to its controllers.
    parts = [*device.parts, *(entry.name for entry in device.glob("nvme*"))]
    for part in parts:
        if _ATA_PORT.fullmatch(part) or _USB_DEVICE.fullmatch(part) or _CONTROLLER.fullmatch(part):
            names.add(part)
    # Only the nearest: those further up are bridges, which other disks share.
    pci = [part for part in device.parts if _PCI_DEVICE.fullmatch(part)]
    if pci and any(re.fullmatch(r"nvme\d+", part) for part in parts):
        names.add(pci[-1])
    return names


def troubles_in(lines: Sequence[LogLine], names: frozenset[str]) -> list[KernelMessage]:
    """The lines that tell of trouble with something of these names, in their order."""
    if not names:
        return []
    wanted = re.compile(
        r"(?<![\w:.-])(?:" + "|".join(re.escape(name) for name in sorted(names)) + r")(?![\w-]|[:.]\w{3}|:\d)"
    )
    attributed = {f"b{name}" for name in names} | {f"+scsi:{name}" for name in names}
    found = []
    for line in lines:
        if line.device not in attributed and wanted.search(line.text) is None:
            continue
        kind = next((kind for kind, pattern in _PATTERNS if pattern.search(line.text)), None)
        if kind is not None:
            found.append(KernelMessage(kind=kind, text=line.text))
    return found
