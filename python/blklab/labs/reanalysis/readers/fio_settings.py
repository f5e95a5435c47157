"""Factors in fio's own output: the options that say how a job was run.

The scheduler that a job set is a level. The other options are settings: values under different ones are not
comparable, but an option that follows from the job's name is not named again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from blklab.labs.reanalysis.readers.protocol import Role, Source
from blklab.quantities.formatting import count_of

_ALIASES = {
    "readwrite": "rw",
    "blocksize": "bs",
    "bsrange": "bs",
    "blocksize_range": "bs",
    "bssplit": "bs",
    "zone_mode": "zonemode",
}
_SETTINGS = (
    "rw",
    "bs",
    "iodepth",
    "numjobs",
    "ioengine",
    "direct",
    "rwmixread",
    "rwmixwrite",
    "random_distribution",
    "rate",
    "rate_iops",
    "thinktime",
    "prio",
    "prioclass",
    "fsync",
    "fdatasync",
    "zonemode",
    "size",
    "runtime",
)
"""Options of a job that tell one load from another, under the first of their names."""

ROLES: dict[str, Role] = {
    "scheduler": "level",
    "ioscheduler": "level",
    "host": "level",
    "client": "level",
    "job": "condition",
    "direction": "condition",
    **dict.fromkeys(_SETTINGS, "setting"),
}
"""Roles of the factors of fio's normal output and of its JSON."""

ALL_CLIENTS = "All clients"
"""The job that fio's client adds for the sum over its servers."""

_SAME_SIZE = re.compile(r"^(?P<low>[\d.]+[KMGT]?i?B?)-(?P=low)$", re.IGNORECASE)


def options_of(*tables: object) -> dict[str, str]:
    """The settings in fio's tables of options; a later table overrides an earlier one."""
    found: dict[str, str] = {}
    for table in tables:
        if not isinstance(table, dict):
            continue
        for name, value in table.items():
            known = _ALIASES.get(str(name), str(name))
            if (known in _SETTINGS or known == "ioscheduler") and isinstance(value, str | int | float):
                found[known] = _option(known, value)
    return found


def _option(name: str, value: Any) -> str:
    text = str(value).strip()
    if name in ("bs", "size"):
        # fio reads 4k, 4K, 4kb and 4KiB as the same size.
        return re.sub(r"(?<=\d)\s*([kmgt])i?b?\b", r"\1", text.lower())
    return text


def normal_settings(header: Mapping[str, str]) -> dict[str, str]:
    """The settings in the line that names a job before it starts."""
    return {
        "rw": header["rw"],
        "bs": _block_size(header["bs"]),
        "ioengine": header["ioengine"],
        "iodepth": header["iodepth"],
    }


def _block_size(printed: str) -> str:
    """One size if all directions have the same one; otherwise as printed."""
    parts = [
        part.removeprefix(f"({letter}) ") for part, letter in zip(printed.split(", "), "RWT", strict=False)
    ]
    if len(parts) == 1:
        parts = printed.split("/")
    sizes = {match["low"] if (match := _SAME_SIZE.match(part)) else part for part in parts}
    return sizes.pop() if len(sizes) == 1 else printed


def clones_note(source: Source, blocks: Mapping[tuple[str, str], int]) -> list[str]:
    """A note if a job has several results in one run: they are its clones and not repetitions."""
    return [
        f"{source.name}: job {job} has {count_of(count, 'result')} in one run of fio: clones that ran at "
        "once (numjobs without group_reporting), not repetitions"
        for (job, _), count in blocks.items()
        if count > 1
    ]
