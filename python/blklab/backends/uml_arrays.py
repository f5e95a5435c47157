"""Arrays of modelled disks in a guest: btrfs makes its own; other file systems need the kernel's md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from blklab.errors import KernelLacksError
from blklab.guests.kernels.kernel_build import KernelBuild
from blklab.spec.guest import GuestFilesystem, GuestOptions

_OPTIONS = {
    "0": "CONFIG_MD_RAID0",
    "1": "CONFIG_MD_RAID1",
    "10": "CONFIG_MD_RAID10",
    "5": "CONFIG_MD_RAID456",
}
"""The kernel option for each RAID level."""


@dataclass(frozen=True)
class Array:
    """An array that a target asks for."""

    level: str
    members: int

    def description(self, filesystem: GuestFilesystem | None) -> str:
        """Maker, level and number of disks, for reports."""
        maker = "btrfs" if filesystem == "btrfs" else "md"
        return f"{maker} raid{self.level} of {self.members} disks"


def array_of(facts: Mapping[str, Any]) -> Array | None:
    """The array in the facts of a target (`blklab.backends.modelled_device`); None for a single disk."""
    array = facts["array"]
    return None if array["raid"] == "none" else Array(array["raid"], array["members"])


def require_array(array: Array | None, kernel: KernelBuild, guest: GuestOptions) -> None:
    """Makes sure that a kernel can make an array.

    Raises:
        KernelLacksError: if it cannot take several modelled disks, or lacks the level.
    """
    if array is None:
        return
    if not kernel.has_models:
        raise KernelLacksError(
            f"the kernel {kernel.name} ({kernel.version}) has no ublk, so it cannot have an array of "
            "modelled disks",
            hint="Linux 6.0 and later have it, 4.19 has blklab's own driver; sim: has arrays of any disks",
        )
    option = _OPTIONS[array.level]
    if guest.filesystem != "btrfs" and option not in kernel.config:
        raise KernelLacksError(
            f"the kernel {kernel.name} ({kernel.version}) was built without {option}, "
            f"which is needed for raid={array.level}",
            hint=f"--filesystem btrfs makes such an array itself; `blklab kernel build {kernel.name}` "
            "builds a kernel that has it",
        )
