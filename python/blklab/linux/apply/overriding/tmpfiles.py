"""Lines of systemd-tmpfiles that write a disk's scheduler at boot, before or after udev (tmpfiles.d(5))."""

from __future__ import annotations

import fnmatch
import shlex
from collections.abc import Iterator
from pathlib import Path

from blklab.linux.apply.overriding.setting import (
    Overrider,
    Setting,
    configuration_files,
    how_to_edit,
    lines_of,
    shown,
)

OWN_FOLDER = "etc/tmpfiles.d"
FOLDERS = (OWN_FOLDER, "run/tmpfiles.d", "usr/local/lib/tmpfiles.d", "usr/lib/tmpfiles.d")
_WRITING = ("w", "f+", "F")
"""Types of lines that write to a file that exists."""
_ARGUMENT = 6
"""Position of what is written."""


def overriding_tmpfiles(setting: Setting, root: Path) -> Iterator[Overrider]:
    """Lines that would change a setting."""
    for path in configuration_files(root, FOLDERS, ".conf"):
        for number, line in enumerate(lines_of(path), 1):
            try:
                fields = shlex.split(line, comments=True)
            except ValueError:
                continue
            if len(fields) <= _ARGUMENT or not fields[0].startswith(_WRITING):
                continue
            value = " ".join(fields[_ARGUMENT:])
            for name, wanted in setting.wanted.items():
                if value != wanted and any(
                    fnmatch.fnmatchcase(one, fields[1]) for one in setting.paths[name]
                ):
                    yield Overrider(
                        f"{shown(path, root)}:{number}",
                        f"makes systemd-tmpfiles set {name} of {setting.disk.name} to {value} at boot",
                        how_to_edit(path, root, OWN_FOLDER),
                    )
