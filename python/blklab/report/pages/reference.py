"""Fills the tables of the simulator's page: ``python -m blklab.report.pages.reference PAGE``.

The argument is the page's file. Tables that are too long to read in it are written as CSV files beside it.

A table is between ``<!-- table: NAME -->`` and ``<!-- end -->``. The text around it is written by hand.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from blklab import _core
from blklab.quantities.units import format_bytes
from blklab.report.pages.markdown import filled_parts, markdown_table
from blklab.report.pages.page_files import FOLDER, csv_text, write_csv_files
from blklab.simulator.core import known_schedulers
from blklab.simulator.timeline import table_formats
from blklab.spec.profiles import shipped_profiles

_TUNABLES, _PARAMETERS = "scheduler-tunables.csv", "device-parameters.csv"
_TIMELINE, _OPTIONS = "timeline-columns.csv", "job-options.csv"


def filled(page: str) -> str:
    """Returns the page with up-to-date tables.

    Raises:
        KeyError: if the page names an unknown table.
    """
    return filled_parts(page, "table", lambda name: TABLES[name]())


def _named(entries: Sequence[dict[str, Any]], what: str) -> str:
    if not entries:
        return f"No {what}."
    names = (f"`{one['name']}`" for one in entries)
    return f"{what.capitalize()}: {', '.join(names)}."


def _parameters_file(entries: Iterable[tuple[str, Sequence[dict[str, Any]]]], owner: str) -> str:
    return csv_text(
        (owner, "name", "unit", "default", "range", "meaning"),
        [
            (
                name,
                one["name"],
                one["unit"].replace("choice", "one of"),
                str(one["default"]),
                ", ".join(one["choices"]) if "choices" in one else f"{one['min']} … {one['max']}",
                one["help"],
            )
            for name, parameters in entries
            for one in parameters
        ],
    )


def _schedulers() -> str:
    parts = [f"[Units, defaults, ranges and meanings]({FOLDER}/{_TUNABLES}) of all tunables."]
    for one in known_schedulers():
        head = f"### {one['name']}\n\n{one['summary']}. Kernels: {one['kernel_versions']}."
        parts.append(f"{head} {_named(one['tunables'], 'tunables')}")
    return "\n\n".join(parts)


def _tunables_file() -> str:
    return _parameters_file(((one["name"], one["tunables"]) for one in known_schedulers()), "scheduler")


def _devices() -> str:
    kinds = json.loads(_core.devices())
    parts = [f"[Units, defaults, ranges and meanings]({FOLDER}/{_PARAMETERS}) of all parameters."]
    parts += [
        f"### {one['kind']}\n\n{one['summary']}. {_named(one['parameters'], 'parameters')}" for one in kinds
    ]
    arrays = "arrays of devices of any kind, each with a scheduler of its own; the page cache lies above them"
    parts.append(f"### RAID\n\n{arrays}. {_named(kinds[0]['array_parameters'], 'parameters')}")
    return "\n\n".join(parts)


def _parameters_of_devices_file() -> str:
    kinds = json.loads(_core.devices())
    entries = [(one["kind"], one["parameters"]) for one in kinds]
    return _parameters_file([*entries, ("RAID", kinds[0]["array_parameters"])], "kind")


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
    parts = [f"Version {version}. [Place, width, unit and meaning]({FOLDER}/{_TIMELINE}) of each column."]
    for table in formats.values():
        names = ", ".join(f"`{name}`" for name, *_ in table.columns)
        width = sum(width for _, width, *_ in table.columns)
        parts.append(f"Table `{table.name}`, {width} bytes a row: {names}.")
    return "\n\n".join(parts)


def _timeline_file() -> str:
    rows = []
    for table in table_formats()[1].values():
        place = 0
        for name, width, unit, meaning in table.columns:
            rows.append((table.name, name, str(place), str(width), unit, meaning))
            place += width
    return csv_text(("table", "column", "at byte", "bytes", "unit", "meaning"), rows)


_SUPPORT = {
    "modelled": "on hosts and in models",
    "neutral": "on hosts; models need nothing of it",
    "noted": "on hosts; models leave it out and say so",
    "host_only": "on hosts only",
    "refused": "refused",
}


def _job_options() -> str:
    """The options that models have, too; the file has every option of fio's manual."""
    options = sorted(json.loads(_core.job_options()), key=lambda option: option["name"])
    names = (f"`{one['name']}`" for one in options if one["support"] == "modelled")
    return (
        f"[All {len(options)} options]({FOLDER}/{_OPTIONS}), each with its meaning or the reason against it."
        f" On hosts and in models: {', '.join(names)}."
    )


def _job_options_file() -> str:
    options = sorted(json.loads(_core.job_options()), key=lambda option: option["name"])
    return csv_text(
        ("option", "honoured", "meaning, or reason"),
        [
            (", ".join((one["name"], *one["aliases"])), _SUPPORT[one["support"]], one["help"])
            for one in options
        ],
    )


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

FILES: dict[str, dict[str, Callable[[], str]]] = {
    "simulator": {
        _TUNABLES: _tunables_file,
        _PARAMETERS: _parameters_of_devices_file,
        _TIMELINE: _timeline_file,
    },
    "job-options": {_OPTIONS: _job_options_file},
}
"""CSV files beside a page, by its name."""


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m blklab.report.pages.reference FILE")
    file = Path(sys.argv[1])
    file.write_text(filled(file.read_text(encoding="utf-8")), encoding="utf-8")
    for name, text_of in FILES.get(file.stem, {}).items():
        write_csv_files(file, Path(name).stem, {name: text_of()})
