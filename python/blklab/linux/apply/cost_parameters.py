"""io.cost's parameters for a disk, in the root control group's files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from blklab.errors import RestoreError, reason_of
from blklab.linux.cgroups.hierarchy import Hierarchy, find_hierarchy
from blklab.linux.cgroups.run_cgroups import RunCgroups
from blklab.linux.cgroups.settings import (
    CgroupSetting,
    device_numbers,
    missing_attribute,
    undo_writes,
    wanted_settings,
)
from blklab.linux.disks.disk import Disk
from blklab.linux.journal.journal import Journal
from blklab.linux.machine.host_change import KernelWrite, MadeChanges, shell_of
from blklab.spec.group_settings import ROOT_GROUP, only_group_settings
from blklab.spec.schedulers import SchedulerChoice


@dataclass(frozen=True)
class CostParameters:
    """The writes that give a disk its parameters."""

    hierarchy: Hierarchy
    writes: list[CgroupSetting]

    @property
    def commands(self) -> list[str]:
        """The writes as shell commands."""
        return shell_of(self._groups.writes(self.writes))

    def write(self, journal: Journal) -> list[tuple[Path, str]]:
        """Makes the writes; the journal has what they replace.

        Returns:
            The writes that undo them, the last one first.

        Raises:
            TunableError: if the kernel refuses a value or keeps another one.
        """
        self._groups.protect_root(journal, self.writes)
        undoing = MadeChanges().make(self._groups.writes(self.writes))
        return [(one.path, one.value) for one in undoing if isinstance(one, KernelWrite)]

    @property
    def _groups(self) -> RunCgroups:
        return RunCgroups(self.hierarchy, "apply")


def cost_parameters(disk: Disk, choice: SchedulerChoice) -> CostParameters | None:
    """The parameters that a choice brings for a disk; None if it brings none.

    Raises:
        TunableError: if this kernel or this cgroup version has no io.cost.
        RequirementError: if no hierarchy with the I/O controller is mounted.
    """
    brought = only_group_settings(choice.for_disk.of_groups)
    if not brought:
        return None
    hierarchy = find_hierarchy()
    for attribute in brought[ROOT_GROUP]:
        if hierarchy.version == 1 or not (hierarchy.root / attribute).exists():
            raise missing_attribute(hierarchy.version, attribute)
    return CostParameters(hierarchy, wanted_settings(hierarchy.version, brought, (), [disk]))


def for_number_now(former: Sequence[tuple[Path, str]], disk: Disk) -> tuple[tuple[Path, str], ...]:
    """Writes of an earlier `apply` with the disk's number of today: it may differ after a restart."""
    (number,) = device_numbers([disk]) if former else ("",)
    return tuple((path, " ".join([number, *text.split()[1:]])) for path, text in former)


def put_back(former: Sequence[tuple[Path, str]], journal: Journal) -> list[str]:
    """Undoes what an earlier `apply` wrote; the journal has what this replaces.

    It comes before the disk's queue: io.cost holds settings of the queue while it is on.

    Args:
        former: The writes that undo it.
        journal: Of the change that begins.

    Returns:
        The changes made, for people.

    Raises:
        RestoreError: if the kernel refuses one.
    """
    for path, text in former:
        journal.protect_attribute(path, undo=undo_writes(path, text))
    done = []
    for path, text in former:
        try:
            KernelWrite(path, text).make()
        except OSError as error:
            raise RestoreError(f"{path} cannot be restored to {text}: {reason_of(error)}") from error
        done.append(f"{path}: {text}")
    return done
