"""Changes of control groups: a group, an attribute, the controller for a group's children."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from blklab.errors import TunableError, reason_of
from blklab.linux.cgroups.settings import (
    CgroupSetting,
    is_in_force,
    missing_attribute,
    shell_text,
    undo_writes,
    value_hint,
)
from blklab.linux.machine.host_change import HostChange, KernelWrite
from blklab.linux.machine.kernel_files import text_or_empty
from blklab.spec.group_settings import ROOT_GROUP

if TYPE_CHECKING:
    from blklab.linux.journal.journal import Journal


@dataclass(frozen=True)
class GroupDirectory(HostChange):
    """A control group of a run; the journal removes it with its processes."""

    path: Path
    journal: Journal | None
    """None in a dry run."""

    def make(self) -> None:
        """Makes the group."""
        _required(self.journal).own_cgroup(self.path)

    def shell(self) -> list[str]:
        """A ``mkdir``."""
        return [f"mkdir {shlex.quote(str(self.path))}"]

    def holds(self) -> bool:
        """Whether the group is there."""
        return self.path.is_dir()


@dataclass(frozen=True)
class Controller(HostChange):
    """The I/O controller for the children of the root group, unless they have it; the journal restores it."""

    path: Path
    journal: Journal | None
    """None in a dry run."""

    def make(self) -> None:
        """Enables the controller."""
        if not self.holds():
            _required(self.journal).protect_attribute(self.path, undo=["-io"])
            self._write.make()

    def shell(self) -> list[str]:
        """The write, whatever the state."""
        return self._write.shell()

    def holds(self) -> bool:
        """Whether the children have the controller."""
        return "io" in text_or_empty(self.path).split()

    @property
    def _write(self) -> KernelWrite:
        return KernelWrite(self.path, "+io")


@dataclass(frozen=True)
class AttributeWrite(KernelWrite):
    """A write to an attribute that may have one line for each device."""

    def shell(self) -> list[str]:
        """An ``echo``, also with the number of a device that is not there yet."""
        return [f"echo {shell_text(self.value)} > {shlex.quote(str(self.path))}"]

    def undoing(self) -> list[HostChange]:
        """The writes that restore the present content of what the value is about."""
        return [AttributeWrite(self.path, text) for text in undo_writes(self.path, self.value)]

    def holds(self) -> bool:
        """Whether the attribute agrees with the value."""
        return is_in_force(self.path.read_text(), self.value)


@dataclass(frozen=True)
class GroupWrite(AttributeWrite):
    """A setting of a control group, read back."""

    setting: CgroupSetting
    version: int
    """Of the cgroup hierarchy."""

    @property
    def is_left_out(self) -> bool:
        """Whether the kernel lacks the attribute, and the setting says that it may."""
        return self.setting.optional and not self.path.exists()

    def make(self) -> None:
        """Writes the setting, unless it is left out.

        Raises:
            TunableError: if the kernel lacks the attribute, refuses the value, or keeps another one.
        """
        if self.is_left_out:
            return
        attribute, group = self.setting.attribute, self.setting.group
        if not self.path.exists():
            raise missing_attribute(self.version, attribute)
        owner = "the root control group" if group == ROOT_GROUP else f"the control group {group!r}"
        try:
            super().make()
        except OSError as error:
            raise TunableError(
                f"{owner}: the kernel refused {attribute} = {self.value} ({reason_of(error)})",
                hint=value_hint(attribute),
            ) from error
        content = self.path.read_text()
        if not is_in_force(content, self.value):
            kept = " ".join(content.split()) or "nothing"
            raise TunableError(f"{owner}: asked for {attribute} = {self.value}, the kernel kept {kept}")

    def shell(self) -> list[str]:
        """The same, left out where the attribute is not there if it may be."""
        condition = f"[ ! -e {shlex.quote(str(self.path))} ] || " if self.setting.optional else ""
        return [condition + line for line in super().shell()]


def _required(journal: Journal | None) -> Journal:
    if journal is None:
        raise RuntimeError("a dry run changes nothing")
    return journal
