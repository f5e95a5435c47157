"""`blklab iocost --from-atlas`: parameters of a drive that others measured."""

from __future__ import annotations

from dataclasses import dataclass

from blklab.cli.output import require_writable, write_text
from blklab.errors import UsageError
from blklab.labs.iocost.from_atlas import hwdb_of, lines_of
from blklab.linux.disks.resolution import resolve
from blklab.report.terminal import console_out
from blklab.spec.atlas import AtlasDrive, drives, require_drive

ALL = "all"


@dataclass(frozen=True)
class AtlasRequest:
    """The flags that go with a drive of the atlas."""

    target: str | None
    """A path on the disk that gets the lines; None if it is not here."""
    solution: str | None
    hwdb_file: str | None
    names: tuple[str, ...]
    """ID_MODEL of udev; empty for the atlas's name."""


def print_from_atlas(model: str, request: AtlasRequest, *, refused: str | None) -> None:
    """Prints the lines of a drive, or writes the file for udev.

    Args:
        model: The drive's name, or ``all``.
        request: The flags.
        refused: Flags given that belong to a measurement.

    Raises:
        BlklabError: if the atlas has no such drive or solution, or flags do not go together.
    """
    if refused is not None:
        raise UsageError(
            f"--from-atlas measures nothing, so it does not take {refused}",
            hint="`blklab targets --atlas --json -` prints the figures of all its drives",
        )
    if model == ALL:
        _write_all(request)
        return
    drive = require_drive(model)
    require_writable(request.hwdb_file)
    number, note = _disk(drive, request.target)
    found = lines_of(drive, request.solution, number)
    if request.hwdb_file is not None:
        write_text(request.hwdb_file, hwdb_of([drive], request.names))
        if request.hwdb_file == "-":
            return
    results = "1 result" if drive.results == 1 else f"the medians of {drive.results} results"
    others = ", ".join(one.name for one in drive.solutions)
    console_out().print(
        f"# {drive.model}, {found.solution} (of {others}): {results} of",
        f"# {drive.facts['source']}",
        *([] if note is None else [f"# Note: {note}."]),
        f"echo '{found.model}' > /sys/fs/cgroup/io.cost.model",
        f"echo '{found.qos}' > /sys/fs/cgroup/io.cost.qos",
        *([] if request.hwdb_file is None else [f"# hwdb: {request.hwdb_file}"]),
        sep="\n",
        soft_wrap=True,
    )


def _write_all(request: AtlasRequest) -> None:
    if request.hwdb_file is None or request.names or request.target or request.solution:
        raise UsageError(
            "all drives of the atlas make a file for udev, and no lines for one disk",
            hint="give --hwdb FILE alone, or the name of one drive",
        )
    require_writable(request.hwdb_file)
    write_text(request.hwdb_file, hwdb_of(drives(), ()))


def _disk(drive: AtlasDrive, target: str | None) -> tuple[str | None, str | None]:
    """The number of the disk beneath a path, and a remark if it is another drive."""
    if target is None:
        return None, None
    leaf = resolve(target).leaves[0]
    if leaf.model == drive.model:
        return leaf.device_number, None
    return leaf.device_number, f"the disk beneath {target} is {leaf.model or 'of no known model'}"
