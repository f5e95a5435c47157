"""The control groups of a session on this machine: those that its conditions, choices and loads ask for."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from blklab.backends.group_choices import change_groups
from blklab.backends.host_changes import settings_of_groups
from blklab.backends.protocol import SessionOptions
from blklab.linux.cgroups.choice_settings import ChoiceSettings
from blklab.linux.cgroups.hierarchy import find_hierarchy
from blklab.linux.cgroups.module_weights import for_variants, of_choice, variants_with_weights
from blklab.linux.cgroups.run_cgroups import RunCgroups
from blklab.linux.cgroups.settings import CgroupSetting, group_names, wanted_settings
from blklab.linux.disks.disk import Disk
from blklab.linux.journal.journal import Journal
from blklab.spec.changes import Change, GroupChange
from blklab.spec.group_settings import group_settings
from blklab.spec.schedulers import SchedulerChoice
from blklab.spec.workloads import Workload


class HostGroups:
    """Made at once, when something first needs one; the journal removes them."""

    def __init__(self, options: SessionOptions, leaves: Sequence[Disk]) -> None:
        """Changes nothing."""
        self._options = options
        self._leaves = leaves
        self._made: RunCgroups | None = None
        self._of_choices: ChoiceSettings | None = None
        self._variants: list[str] = []
        """Modules among the choices that have weights of their own."""
        self.settings: list[CgroupSetting] = []
        """In force during all runs."""

    def wanted_attributes(self, choices: Sequence[SchedulerChoice]) -> set[str]:
        """The attributes that the conditions, their changes or choices bring."""
        return {
            *(attribute for group in self._options.cgroups.values() for attribute in group),
            *(change.attribute for change in self._changes),
            *(place.attribute for choice in choices for place in group_settings(choice.of_groups)),
        }

    def create(
        self, journal: Journal, workloads: Sequence[Workload], choices: Sequence[SchedulerChoice] = ()
    ) -> None:
        """Creates all groups, on the first call with workloads or choices that need any.

        What choices change in the root group is recorded on each call.
        """
        self._variants = list(dict.fromkeys([*self._variants, *variants_with_weights(choices)]))
        names = group_names(self._options.cgroups, workloads)
        needed = bool(names or self._options.cgroups or self._changes or change_groups(choices))
        if self._made is None and needed:
            hierarchy = find_hierarchy()
            wanted = wanted_settings(hierarchy.version, self._options.cgroups, workloads, self._leaves)
            self.settings = for_variants(wanted, self._variants)
            groups = RunCgroups(hierarchy, self._options.run_id)
            groups.create(journal, names, self.settings)
            for later in self._later(hierarchy.version).values():
                groups.protect_root(journal, later)
            self._made = groups
            self._of_choices = ChoiceSettings(groups, self._options.cgroups, self._leaves)
        if self._of_choices is not None:
            self._of_choices.protect(choices, journal)

    def apply(self, choice: SchedulerChoice) -> None:
        """Makes the settings that a choice brings."""
        if self._of_choices is not None:
            self._of_choices.apply(choice)

    def undo_choice(self) -> None:
        """Takes back what the last choice has brought."""
        if self._of_choices is not None:
            self._of_choices.undo()

    def read_back(self) -> dict[str, str]:
        """The settings as read back; empty if there are none."""
        if self._made is None or self._of_choices is None:
            return {}
        return self._made.read_back([*self.settings, *self._of_choices.in_force])

    def for_changes(self) -> tuple[RunCgroups | None, dict[Change, list[CgroupSetting]]]:
        """The groups that planned changes are about, and the writes of each change."""
        if not self._changes:
            return self._made, {}
        hierarchy = find_hierarchy()
        groups = self._made or RunCgroups(hierarchy, self._options.run_id)
        return groups, self._later(hierarchy.version)

    def files(self, workload: Workload) -> dict[str, str]:
        """The file of each of the workload's groups that takes processes."""
        names = {job.cgroup for job in workload.jobs if job.cgroup is not None}
        if not names:
            return {}
        groups = self._made or RunCgroups(find_hierarchy(), self._options.run_id)
        return {name: str(groups.processes_file(name)) for name in sorted(names)}

    def joins(self, workload: Workload) -> dict[str, str]:
        """The same, quoted for the shell by which fio's jobs join them."""
        return {name: shlex.quote(file) for name, file in self.files(workload).items()}

    def commands(self, choice: SchedulerChoice, loads: Sequence[Workload]) -> list[str]:
        """Creation and settings of all groups as shell commands."""
        names = group_names(self._options.cgroups, loads)
        if not (names or self._options.cgroups or choice.of_groups):
            return []
        hierarchy = find_hierarchy()
        settings = choice.groups_over(self._options.cgroups)
        wanted = wanted_settings(hierarchy.version, settings, loads, self._leaves)
        return RunCgroups(hierarchy, self._options.run_id).commands(names, of_choice(wanted, choice))

    def _later(self, version: int) -> dict[Change, list[CgroupSetting]]:
        """The writes of each planned change."""
        later = settings_of_groups(self._changes, version, self._leaves)
        return {change: for_variants(writes, self._variants) for change, writes in later.items()}

    @property
    def _changes(self) -> list[GroupChange]:
        return [change for change in self._options.changes if isinstance(change, GroupChange)]
