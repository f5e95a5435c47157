"""Settings of control groups that a scheduler's choice brings, on this machine.

They are in force while their choice is, and are taken back before another one's. The journal has what the
root group loses; the run's own groups end with the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from blklab.linux.cgroups.module_weights import of_choice
from blklab.linux.cgroups.run_cgroups import RunCgroups
from blklab.linux.cgroups.settings import CgroupSetting, wanted_settings
from blklab.linux.disks.disk import Disk
from blklab.linux.machine.host_change import MadeChanges
from blklab.spec.group_settings import only_group_settings
from blklab.spec.schedulers import SchedulerChoice

if TYPE_CHECKING:
    from blklab.linux.journal.journal import Journal


class ChoiceSettings:
    """The control groups of one run, as its choices change them."""

    def __init__(
        self, groups: RunCgroups, conditions: Mapping[str, Mapping[str, str]], leaves: Sequence[Disk]
    ) -> None:
        """Takes the groups as the conditions of the experiment have set them."""
        self._groups = groups
        self._conditions = conditions
        self._leaves = leaves
        self._protected: set[tuple[str, str]] = set()
        self._made = MadeChanges()
        self.in_force: list[CgroupSetting] = []
        """The writes of the choice in force."""

    def protect(self, choices: Sequence[SchedulerChoice], journal: Journal) -> None:
        """Records what choices will change in the root group.

        Raises:
            TunableError: if the kernel lacks an attribute.
            UsageError: for an attribute that the cgroup version does not have there.
        """
        for setting in (setting for choice in choices for setting in self._writes(choice)):
            place = setting.attribute, setting.value.split()[0]
            if place not in self._protected:
                self._groups.protect_root(journal, [setting])
                self._protected.add(place)

    def apply(self, choice: SchedulerChoice) -> None:
        """Takes the last choice's settings back and makes this one's, if they differ.

        Raises:
            TunableError: if the kernel lacks an attribute, refuses a value, or keeps another one.
        """
        writes = self._writes(choice)
        if writes == self.in_force:
            return
        self.undo()
        self._made.make(self._groups.writes(writes))
        self.in_force = writes

    def undo(self) -> None:
        """Brings the groups back to what the conditions say."""
        self._made.take_back()
        self.in_force = []

    def _writes(self, choice: SchedulerChoice) -> list[CgroupSetting]:
        """Whole attributes: with the words that the conditions have in them."""
        whole = choice.groups_over(self._conditions)
        brought = {
            group: {name: whole[group][name] for name in attributes}
            for group, attributes in only_group_settings(choice.of_groups).items()
        }
        wanted = wanted_settings(self._groups.hierarchy.version, brought, (), self._leaves)
        return of_choice(wanted, choice)
