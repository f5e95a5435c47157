"""A simulated device of the same class as the disk beneath a path: what is answered for without root."""

from __future__ import annotations

from pathlib import Path

from blklab.errors import BlklabError
from blklab.linux.disks.resolution import resolve

_DEFAULT = "sim:ssd-sata"


def simulated_twin(path: Path) -> str:
    """A target of the simulator: rotating disk, NVMe or SATA flash, as far as the machine tells.

    A virtual disk tells little, and elsewhere than on Linux nothing is known: then SATA flash.
    """
    try:
        leaves = resolve(str(path)).leaves
    except (BlklabError, OSError):
        return _DEFAULT
    disk = leaves[0]
    if disk.name.startswith("nvme"):
        return "sim:nvme-tlc"
    # Virtual disks report themselves as rotational by default, whatever lies behind them.
    is_virtual = disk.name.startswith(("vd", "xvd"))
    return "sim:hdd-7200" if disk.rotational and not is_virtual else _DEFAULT
