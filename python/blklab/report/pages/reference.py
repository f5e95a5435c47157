"""Fills the tables of the simulator's page: ``python -m blklab.report.pages.reference PAGE``.

The argument is the page's file.

A table is between ``<!-- table: NAME -->`` and ``<!-- end -->``. The text around it is written by hand.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from blklab import _core
from blklab.quantities.units import format_bytes
from blklab.report.pages.markdown import filled_parts, markdown_table
from blklab.simulator.core import known_schedulers
from blklab.simulator.timeline import table_formats
from blklab.spec.profiles import shipped_profiles


def filled(page: str) -> str:
    """Returns the page with up-to-date tables.

    Raises:
        KeyError: if the page names an unknown table.
    """
    return filled_parts(page, "table", lambda name: TABLES[name]())


def _parameters(entries: Sequence[dict[str, Any]]) -> str:
    if not entries:
        return "None."
    return markdown_table(
        ("Name", "Unit", "Default", "Range", "Meaning"),
        [
            (
                f"`{one['name']}`",
                one["unit"].replace("choice", "one of"),
                str(one["default"]),
                ", ".join(one["choices"]) if "choices" in one else f"{one['min']} … {one['max']}",
                one["help"],
            )
            for one in entries
        ],
    )


def _schedulers() -> str:
    parts = []
    for one in known_schedulers():
        head = f"### {one['name']}\n\n{one['summary']}. Kernels: {one['kernel_versions']}."
        parts.append(f"{head}\n\nTunables:\n\n{_parameters(one['tunables'])}")
    return "\n\n".join(parts).replace("Tunables:\n\nNone.", "No tunables.")


def _devices() -> str:
    kinds = json.loads(_core.devices())
    parts = [f"### {one['kind']}\n\n{one['summary']}.\n\n{_parameters(one['parameters'])}" for one in kinds]
    arrays = "arrays of devices of any kind, each with a scheduler of its own; the page cache lies above them"
    parts.append(f"### RAID\n\n{arrays}.\n\n{_parameters(kinds[0]['array_parameters'])}")
    return "\n\n".join(parts)


def _profiles() -> str:
    rows = []
    for name, profile in shipped_profiles().items():
        facts = json.loads(_core.check_device(profile.text or "", profile.source))
        depths = (str(facts["queue_depth"]), str(facts["nr_hw_queues"]), facts["default_scheduler"])
        rows.append(
            (f"`sim:{name}`", profile.kind, profile.summary, format_bytes(facts["capacity_bytes"]), *depths)
        )
    headings = ("Target", "Kind", "What", "Size", "Queue depth", "Hardware queues", "Default scheduler")
    return markdown_table(headings, rows)


def _timeline() -> str:
    version, formats = table_formats()
    parts = [f"Version {version}."]
    for table in formats.values():
        place, rows = 0, []
        for name, width, unit, meaning in table.columns:
            rows.append((f"`{name}`", str(place), str(width), unit, meaning))
            place += width
        columns = markdown_table(("Column", "At byte", "Bytes", "Unit", "Meaning"), rows)
        parts.append(f"Table `{table.name}`, {place} bytes a row:\n\n{columns}")
    return "\n\n".join(parts)


_SUPPORT = {
    "modelled": "on hosts and in models",
    "neutral": "on hosts; models need nothing of it",
    "noted": "on hosts; models leave it out and say so",
    "host_only": "on hosts only",
    "refused": "refused",
}


def _job_options() -> str:
    """Every option of fio's manual, with what it does or why it does not."""
    rows = []
    for one in sorted(json.loads(_core.job_options()), key=lambda option: option["name"]):
        names = ", ".join(f"`{name}`" for name in (one["name"], *one["aliases"]))
        rows.append((names, _SUPPORT[one["support"]], one["help"].replace("|", "\\|")))
    return markdown_table(("Option", "Honoured", "Meaning, or reason"), rows)


def _job_options_in_short() -> str:
    """How many options have which support."""
    counts = Counter(one["support"] for one in json.loads(_core.job_options()))
    return markdown_table(
        ("Honoured", "Options"), [(_SUPPORT[support], str(counts[support])) for support in _SUPPORT]
    )


TABLES: dict[str, Callable[[], str]] = {
    "schedulers": _schedulers,
    "devices": _devices,
    "profiles": _profiles,
    "timeline": _timeline,
    "job-options": _job_options,
    "job-options-in-short": _job_options_in_short,
}
"""By the name in pages."""


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m blklab.report.pages.reference FILE")
    file = Path(sys.argv[1])
    file.write_text(filled(file.read_text(encoding="utf-8")), encoding="utf-8")
