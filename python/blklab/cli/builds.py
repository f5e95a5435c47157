"""The common parts of lists, plans and documents of guest kernels and of modules."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from blklab.cli.output import write_text
from blklab.cli.tables import plain_table
from blklab.guests.kernels.build_record import BuildRecord
from blklab.guests.kernels.patches import Patch
from blklab.modules.record import ModuleRecord
from blklab.quantities.units import format_duration
from blklab.report.terminal import console_out


def print_builds(
    headings: Sequence[str], builds: Iterable[tuple[Sequence[str], BuildRecord | ModuleRecord]]
) -> None:
    """Prints a table of what was built, with its patches and its date behind its own cells."""
    table = plain_table((*headings, "patches", "built"))
    for cells, record in builds:
        patches = ", ".join(patch.name.removesuffix(".patch") for patch in record.patches) or "-"
        table.add_row(*cells, patches, record.built_at[:16].replace("T", " "))
    console_out().print(table)


def patches_as_json(patches: Iterable[Patch]) -> list[dict[str, Any]]:
    """The patches of a plan for its document."""
    return [{"name": one.name, "sha256": one.sha256, "files": list(one.files)} for one in patches]


def write_json(destination: str, schema: str, content: dict[str, Any]) -> None:
    """Writes a document."""
    write_text(destination, json.dumps({"schema": schema, **content}, indent=2, ensure_ascii=False))


def how_built(build_seconds: float, *, is_new: bool) -> str:
    """Whether a build was made now, and how long that took."""
    return f"built in {seconds_text(build_seconds)}" if is_new else "already built"


def seconds_text(seconds: float) -> str:
    """A duration in words."""
    return format_duration(seconds * 1e9)


def say(text: str) -> None:
    """Prints a line, which the terminal wraps."""
    console_out().print(text, soft_wrap=True)
