"""Control groups for jobs: I/O weights, limits and latency targets, under cgroup v1 (blkio) and v2 (io).

All groups of a run are children of one group of its own, so that they compete with each other and do not
affect others. Per-device settings are written once for each leaf disk. Every write is read back.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from blklab.errors import TunableError, reason_of
from blklab.linux.cgroups.hierarchy import Hierarchy
from blklab.linux.cgroups.settings import (
    WEIGHTS,
    CgroupSetting,
    is_in_force,
    missing_attribute,
    shell_text,
    undo_writes,
    value_hint,
)
from blklab.linux.machine.kernel_files import text_or_empty, write_once
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
        """The steps of `create` as shell commands."""
        lines = []
        if self.hierarchy.version == 2:
            lines.append(f"echo +io > {_quoted(self.hierarchy.root / 'cgroup.subtree_control')}")
        lines.append(f"mkdir {_quoted(self.parent)}")
        if self.hierarchy.version == 2:
            lines.append(f"echo +io > {_quoted(self.parent / 'cgroup.subtree_control')}")
        lines += [f"mkdir {_quoted(self.folder(name))}" for name in names]
        for setting in settings:
            path = _quoted(self.folder(setting.group) / setting.attribute)
            condition = f"[ ! -e {path} ] || " if setting.optional else ""
            lines.append(f"{condition}echo {shell_text(setting.value)} > {path}")
        return lines

    def create(self, journal: Journal, names: Sequence[str], settings: Sequence[CgroupSetting]) -> None:
        """Creates the groups and sets their attributes; the journal removes and restores them.

        Raises:
            TunableError: if the kernel lacks an attribute, refuses a value, or keeps another one.
        """
        if self.hierarchy.version == 2:
            self._enable_controller(journal)
        journal.own_cgroup(self.parent)
        if self.hierarchy.version == 2:
            write_once(self.parent / "cgroup.subtree_control", "+io")
        for name in names:
            journal.own_cgroup(self.folder(name))
        undo: dict[Path, list[str]] = {}
        for setting in settings:
            path = self.folder(ROOT_GROUP) / setting.attribute
            if setting.group == ROOT_GROUP and path.exists():
                undo.setdefault(path, []).extend(undo_writes(path, setting.value))
        for path, texts in undo.items():
            journal.protect_attribute(path, undo=texts)
        written: dict[str, int] = {}
        for setting in settings:
            path = self.folder(setting.group) / setting.attribute
            if setting.optional and not path.exists():
                written.setdefault(setting.group, 0)
                continue
            self._set(path, setting)
            written[setting.group] = written.get(setting.group, 0) + 1
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

    def change(self, settings: Sequence[CgroupSetting]) -> list[tuple[Path, str]]:
        """Writes settings of groups that exist.

        Returns:
            The writes that undo it, the last one first.

        Raises:
            TunableError: if the kernel lacks an attribute, refuses a value, or keeps another one; the
                writes before it are then undone.
        """
        undo: list[tuple[Path, str]] = []
        try:
            for setting in settings:
                path = self.folder(setting.group) / setting.attribute
                if path.exists():
                    undo = [*((path, text) for text in undo_writes(path, setting.value)), *undo]
                self._set(path, setting)
        except TunableError:
            for path, text in undo:
                write_once(path, text)
            raise
        return undo

    def change_commands(self, settings: Sequence[CgroupSetting]) -> list[str]:
        """The writes of `change` as shell commands."""
        return [
            f"echo {shell_text(setting.value)} > {_quoted(self.folder(setting.group) / setting.attribute)}"
            for setting in settings
        ]

    def _enable_controller(self, journal: Journal) -> None:
        """Enables the I/O controller for the root's children, if it is not enabled already."""
        control = self.hierarchy.root / "cgroup.subtree_control"
        if "io" not in text_or_empty(control).split():
            journal.protect_attribute(control, undo=["-io"])
            write_once(control, "+io")

    def _set(self, path: Path, setting: CgroupSetting) -> None:
        if not path.exists():
            raise missing_attribute(self.hierarchy.version, setting.attribute)
        owner = (
            "the root control group"
            if setting.group == ROOT_GROUP
            else f"the control group {setting.group!r}"
        )
        try:
            write_once(path, setting.value)
        except OSError as error:
            raise TunableError(
                f"{owner}: the kernel refused {setting.attribute} = {setting.value} ({reason_of(error)})",
                hint=value_hint(setting.attribute),
            ) from error
        content = path.read_text()
        if not is_in_force(content, setting.value):
            kept = " ".join(content.split()) or "nothing"
            raise TunableError(
                f"{owner}: asked for {setting.attribute} = {setting.value}, the kernel kept {kept}"
            )


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
