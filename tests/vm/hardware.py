"""The machine's disks, and QEMU's arguments for all its hardware.

Disks are found by their serial numbers, because the kernel numbers them anew at each boot.
"""

from __future__ import annotations

from pathlib import Path

DISK_BYTES = 1 << 30
MEMORY = "2560"

_SCSI = ("scsi0", "scsi1", "scsi2", "scsi3")
_VIRTIO = ("blk0", "blk1")
_ON_ALL = (*_VIRTIO, "sata0", "sata1", *_SCSI)
NVME = "nvme0"
ZONED_NVME = "zoned0"
DISKS = (*_ON_ALL, NVME, ZONED_NVME)
"""Two of virtio, SATA (rotating and flash), four on virtio-scsi, NVMe with two queues, zoned NVMe."""

PLUGGED_LATER = f"nvme,id={NVME},serial={NVME},drive={NVME}-file,max_ioqpairs=2,bus=port0"
"""NVMe cannot be frozen with the machine, so it is plugged in when the machine has been thawed."""


def hardware_arguments(folder: Path) -> list[str]:
    """All hardware but the processor and the root's disk; files of disks are in ``folder``."""
    arguments = [
        "-machine",
        "q35,smbus=off",
        "-smp",
        "2",
        "-m",
        MEMORY,
        "-vga",
        "none",
        "-display",
        "none",
        "-nodefaults",
    ]
    for name in DISKS:
        path = folder / f"{name}.img"
        arguments += ["-drive", f"file={path},format=raw,if=none,id={name}-file,cache=unsafe,discard=unmap"]
    arguments += ["-device", "pcie-root-port,id=port0,chassis=1,slot=1,addr=0x8"]
    for slot, name in zip(("0x4", "0x9"), _VIRTIO, strict=True):
        arguments += ["-device", f"virtio-blk-pci,id={name},drive={name}-file,serial={name},addr={slot}"]
    arguments += ["-device", "virtio-scsi-pci,id=scsi,addr=0x5"]
    for number, name in enumerate(_SCSI):
        options = f"bus=scsi.0,scsi-id={number},drive={name}-file,serial={name},rotation_rate=1"
        arguments += ["-device", f"scsi-hd,id={name},{options}"]
    for number, (name, rotation) in enumerate((("sata0", 7200), ("sata1", 1))):
        options = f"bus=ide.{number},drive={name}-file,serial={name},rotation_rate={rotation}"
        arguments += ["-device", f"ide-hd,id={name},{options}"]
    return [*arguments, "-device", "virtio-rng-pci,addr=0x7"]


def zoned_nvme_arguments() -> list[str]:
    """Only for a machine that boots: QEMU neither freezes it nor plugs it in later."""
    zones = "zoned=true,zoned.zone_size=16M,zoned.max_active=14,zoned.max_open=14"
    blocks = "logical_block_size=4096,physical_block_size=4096"
    return [
        *("-device", f"nvme,id={ZONED_NVME},serial={ZONED_NVME},max_ioqpairs=2,addr=0xa"),
        *("-device", f"nvme-ns,drive={ZONED_NVME}-file,bus={ZONED_NVME},{zones},{blocks}"),
    ]


def root_arguments(image: Path, *, snapshot: bool) -> list[str]:
    """The root's disk; with ``snapshot``, what is written to it vanishes with the process."""
    form = "raw" if image.suffix == ".img" else "qcow2"
    kept = "on" if snapshot else "off"
    return [
        *("-drive", f"file={image},format={form},if=none,id=root-file,cache=unsafe,snapshot={kept}"),
        *("-device", "virtio-blk-pci,id=root,drive=root-file,serial=root,addr=0x3"),
    ]


def network_arguments() -> list[str]:
    """No way out, and ssh on a port of this machine that QEMU finds free."""
    return [
        *("-netdev", "user,id=wire,restrict=on,hostfwd=tcp:127.0.0.1:0-:22"),
        *("-device", "virtio-net-pci,netdev=wire,romfile=,addr=0x6"),
    ]
