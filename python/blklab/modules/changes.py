"""The changes that make a module another scheduler than the kernel's own, kept beside it for guests."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from blklab.guests.kernels.patches import Patch
from blklab.modules.record import ChangesRecord
from blklab.modules.renaming import renamed
from blklab.modules.scheduler_source import SchedulerSource

_FOLDER = "changes"
_DEFINES_TRACES = "#define CREATE_TRACE_POINTS"


@dataclass(frozen=True)
class Changes:
    """Patches, or a scheduler that is one file, with their contents."""

    record: ChangesRecord
    contents: Mapping[str, bytes]
    """By path in the module's folder."""

    def write_to(self, folder: Path) -> None:
        """Writes the files into a module's folder."""
        for name, content in self.contents.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(content)


def changes_of(
    scheduler: SchedulerSource, patches: Sequence[Patch], name: str, *, is_file: bool
) -> Changes | None:
    """The changes of a module; None if it is an unchanged copy.

    Args:
        scheduler: The scheduler.
        patches: The patches that were applied.
        name: The module's own name.
        is_file: Whether the scheduler is one file of the user's.
    """
    if is_file:
        return _of_file(scheduler, name)
    if not patches:
        return None
    contents = {f"{_FOLDER}/{number:04}.patch": patch.content for number, patch in enumerate(patches, 1)}
    return Changes(_record("patches", scheduler.scheduler, contents), contents)


def _of_file(scheduler: SchedulerSource, name: str) -> Changes:
    (compiled,) = scheduler.compiled
    text = scheduler.files[compiled]
    guest_name = scheduler.scheduler
    if not scheduler.is_new:
        # The guest has the original beside it, and with that its trace points.
        guest_name = name
        text = renamed({compiled: text.replace(_DEFINES_TRACES, "")}, name, "1", {})[compiled]
    contents = {f"{_FOLDER}/{guest_name}.c": text.encode()}
    return Changes(_record("file", guest_name, contents), contents)


def _record(kind: str, scheduler: str, contents: Mapping[str, bytes]) -> ChangesRecord:
    total = hashlib.sha256(f"{kind}\0{scheduler}\0".encode())
    for content in contents.values():
        total.update(hashlib.sha256(content).digest())
    return ChangesRecord.model_validate(
        {"kind": kind, "files": list(contents), "scheduler": scheduler, "sha256": total.hexdigest()}
    )
