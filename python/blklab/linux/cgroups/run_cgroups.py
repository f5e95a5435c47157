"""Control groups for jobs: I/O weights, limits and latency targets, under cgroup v1 (blkio) and v2 (io).

All groups of a run are children of one group of its own, so that they compete with each other and do not
affect others. Per-device settings are written once for each leaf disk. Every write is read back.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from blklab.errors import TunableError
from blklab.linux.cgroups.changes import Controller, GroupDirectory, GroupWrite
from blklab.linux.cgroups.hierarchy import Hierarchy
from blklab.linux.cgroups.settings import WEIGHTS, CgroupSetting, missing_attribute, undo_writes
from blklab.linux.machine.host_change import HostChange, KernelWrite, shell_of
from blklab.spec.group_settings import ROOT_GROUP

if TYPE_CHECKING:
    from blklab.linux.journal.journal import Journal


class RunCgroups:
    """The control groups of one run."""

    def __init__(self, hierarchy: Hierarchy, run_id: str) -> None:
        self.hierarchy = hierarchy
        self.parent = hierarchy.root / f"blklab-{run_id}"

    def folder(self, group: str) -> Path:
        """The folder of a group."""
        return self.hierarchy.root if group == ROOT_GROUP else self.parent / group

    def processes_file(self, group: str) -> Path:
        """The file that takes the PIDs of processes joining a group."""
        return self.folder(group) / "cgroup.procs"

    def commands(self, names: Sequence[str], settings: Sequence[CgroupSetting]) -> list[str]:
        """The changes that `create` makes as shell commands."""
        return shell_of([*self._groups(names, None), *self.writes(settings)])

    def writes(self, settings: Sequence[CgroupSetting]) -> list[GroupWrite]:
        """The changes that set attributes of groups."""
        return [
            GroupWrite(self.folder(one.group) / one.attribute, one.value, one, self.hierarchy.version)
            for one in settings
        ]

    def create(self, journal: Journal, names: Sequence[str], settings: Sequence[CgroupSetting]) -> None:
        """Creates the groups and sets their attributes; the journal removes and restores them.

        Raises:
            TunableError: if the kernel lacks an attribute, refuses a value, or keeps another one.
        """
        for change in self._groups(names, journal):
            change.make()
        undo: dict[Path, list[str]] = {}
        for setting in settings:
            path = self.folder(ROOT_GROUP) / setting.attribute
            if setting.group == ROOT_GROUP and path.exists():
                undo.setdefault(path, []).extend(undo_writes(path, setting.value))
        for path, texts in undo.items():
            journal.protect_attribute(path, undo=texts)
        written: dict[str, int] = {}
        for write in self.writes(settings):
            written[write.setting.group] = written.get(write.setting.group, 0) + (not write.is_left_out)
            write.make()
        for group in (group for group, count in written.items() if not count):
            wanted = WEIGHTS[self.hierarchy.version]
            reasons = [missing_attribute(self.hierarchy.version, name).hint for name in wanted]
            raise TunableError(
                f"this kernel has no I/O weight for the control group {group!r}",
                hint=f"it needs {' or '.join(wanted)}; {'; '.join(filter(None, reasons))}",
            )

    def read_back(self, settings: Sequence[CgroupSetting]) -> dict[str, str]:
        """Reads back the attributes set: ``cgroup/GROUP/ATTRIBUTE`` and the file's content on one line."""
        found = {}
        for setting in settings:
            path = self.folder(setting.group) / setting.attribute
            if path.exists():
                name = "" if setting.group == ROOT_GROUP else f"{setting.group}/"
                found[f"cgroup/{name}{setting.attribute}"] = "; ".join(path.read_text().split("\n")).strip(
                    "; "
                )
        return found

    def protect_root(self, journal: Journal, settings: Sequence[CgroupSetting]) -> None:
        """Records attributes of the root group that will be changed while a load runs; the rest is ours."""
        for setting in settings:
            path = self.hierarchy.root / setting.attribute
            if setting.group != ROOT_GROUP:
                continue
            if not path.exists():
                raise missing_attribute(self.hierarchy.version, setting.attribute)
            journal.protect_attribute(path, undo=undo_writes(path, setting.value))

    def _groups(self, names: Sequence[str], journal: Journal | None) -> list[HostChange]:
        """The changes that make the groups; without a journal they can only be printed."""
        folders = [GroupDirectory(folder, journal) for folder in (self.parent, *map(self.folder, names))]
        if self.hierarchy.version == 1:
            return [*folders]
        root, parent = (folder / "cgroup.subtree_control" for folder in (self.hierarchy.root, self.parent))
        return [Controller(root, journal), folders[0], KernelWrite(parent, "+io"), *folders[1:]]
