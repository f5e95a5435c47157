"""The simulated device nearest to the disk beneath a path: tested instead of the disk without root."""

from __future__ import annotations

from pathlib import Path

from blklab.errors import BlklabError
from blklab.linux.disks.resolution import resolve

_DEFAULT = "sim:ssd-sata"


def simulated_twin(path: Path) -> str:
    """A target of the simulator: a rotating disk, NVMe flash or SATA flash.

    SATA flash is the default, for virtual disks, which reveal little, and for systems other than Linux.
    """
    try:
        leaves = resolve(str(path)).leaves
    except (BlklabError, OSError):
        return _DEFAULT
    disk = leaves[0]
    if disk.name.startswith("nvme"):
        return "sim:nvme-tlc"
    # Virtual disks report themselves as rotational by default, whatever their backing store is.
    is_virtual = disk.name.startswith(("vd", "xvd"))
    return "sim:hdd-7200" if disk.rotational and not is_virtual else _DEFAULT
