"""Schedulers that are one file of C: added to a source's block layer, and found in what was built.

A file NAME.c becomes block/NAME.c, with an option MQ_IOSCHED_NAME in block/Kconfig.iosched, which the build
switches on, and a line in block/Makefile.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from blklab.errors import PatchError, UnknownNameError, reason_of
from blklab.guests.kernels.configuration import Fragment, KernelOption
from blklab.guests.kernels.kernel_build import SCHEDULER_OPTIONS
from blklab.guests.kernels.patches import Patch
from blklab.named_files import read_bytes

MAKEFILE, KCONFIG = "block/Makefile", "block/Kconfig.iosched"

_ELEVATOR_NAME = re.compile(r'\.elevator_name\s*=\s*"([^"]+)"')
_FILE_NAME = re.compile(r"[a-z][a-z0-9_-]*\.c")
_LONGEST_NAME = 15
"""The kernel's ELV_NAME_MAX, without the final zero."""


@dataclass(frozen=True)
class SchedulerFile(Patch):
    """A scheduler that is one file."""

    @property
    def option(self) -> str:
        """Its option, without ``CONFIG_``."""
        return "MQ_IOSCHED_" + re.sub(r"\W", "_", self.path.stem).upper()

    def fragment(self) -> Fragment:
        """The configuration that builds it in."""
        return Fragment(self.path.name, (KernelOption(f"CONFIG_{self.option}", "y", str(self.path)),))

    def complaint_about(self, folder: Path) -> str | None:
        """The reason why it cannot be added to a directory; None if it can."""
        if absent := [path for path in (MAKEFILE, KCONFIG) if not (folder / path).is_file()]:
            return f"{' and '.join(absent)}: not in this source"
        if (folder / self.files[0]).exists():
            return f"{self.files[0]}: this source has a file of that name"
        return None

    def apply_to(self, folder: Path) -> None:
        """Adds it to a directory."""
        (folder / self.files[0]).write_bytes(self.content)
        with (folder / MAKEFILE).open("a", encoding="utf-8") as makefile:
            makefile.write(f"\nobj-$(CONFIG_{self.option}) += {self.path.stem}.o\n")
        with (folder / KCONFIG).open("a", encoding="utf-8") as options:
            options.write(f'\nconfig {self.option}\n\tbool "{self.path.stem}"\n')


def read_scheduler_files(files: Sequence[str]) -> tuple[SchedulerFile, ...]:
    """Reads schedulers that are one file each.

    Raises:
        UnknownNameError: if a file cannot be read.
        PatchError: if one is not a scheduler, or has the name of another.
    """
    found: dict[str, SchedulerFile] = {}
    for text in files:
        path = Path(text).expanduser()
        try:
            content = read_bytes(path)
        except OSError as error:
            raise UnknownNameError(f"the scheduler {text} cannot be read: {reason_of(error)}") from error
        if not _FILE_NAME.fullmatch(path.name):
            raise PatchError(
                f"{text} cannot become a file of block/",
                hint="name it NAME.c, with small letters, digits, - and _",
            )
        name = _name_of(content, text)
        if name in ("none", *SCHEDULER_OPTIONS) or name in found:
            raise PatchError(f"{text}: there is a scheduler {name} already", hint="change its elevator_name")
        files_changed = (f"block/{path.name}", MAKEFILE, KCONFIG)
        found[name] = SchedulerFile(path.name, path.absolute(), content, files_changed, files_changed[:1])
    return tuple(found.values())


def added_schedulers(tree: Path) -> list[str]:
    """The schedulers that were built in a tree, beside those that every kernel may have."""
    names = set()
    for path in (tree / "block").glob("*.c"):
        if path.with_suffix(".o").exists():
            names |= set(_ELEVATOR_NAME.findall(path.read_text(encoding="utf-8", errors="replace")))
    return sorted(names - SCHEDULER_OPTIONS.keys())


def _name_of(content: bytes, text: str) -> str:
    names = _ELEVATOR_NAME.findall(content.decode(errors="replace"))
    if len(names) != 1:
        raise PatchError(
            f"{text} is not a scheduler: it sets .elevator_name {len(names) or 'no'} times instead of once",
        )
    if len(names[0]) > _LONGEST_NAME:
        raise PatchError(f"{text}: the kernel cuts names of more than {_LONGEST_NAME} letters: {names[0]}")
    return str(names[0])
