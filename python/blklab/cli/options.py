"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from blklab.errors import UsageError

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

STORE_HELP = (
    "Database of runs: a file or a URL (postgresql://…); default: $BLKLAB_STORE or the XDG data folder."
)


def store_option(function: Decorated) -> Decorated:
    """Adds ``--store``."""
    return click.option("--store", "store_url", metavar="URL", help=STORE_HELP)(function)


def json_option(function: Decorated) -> Decorated:
    """Adds ``--json [FILE]``."""
    return click.option(
        "--json",
        "json_file",
        metavar="FILE",
        is_flag=False,
        flag_value="-",
        help="Write the result as JSON to FILE, or to standard output for -.",
    )(function)


def guest_options(function: Decorated) -> Decorated:
    """Adds what targets that run in a guest kernel take; `guest_values` puts it together."""
    for name, metavar, help_text in reversed(_GUEST_OPTIONS):
        function = click.option(f"--{name}", metavar=metavar, help=help_text)(function)
    return function


_GUEST_OPTIONS = (
    ("generator", "blkguest|fio", "What makes the load in a guest; default blkguest."),
    ("time", "virtual|host", "Whose clock a guest has; default virtual."),
    ("filesystem", "ext4|xfs|btrfs", "In a guest: files lie on one, made for each run."),
    ("memory", "SIZE", "Of a guest; default 512m."),
    ("clocks", "same|any", "Of guest kernels compared; default same: others are refused."),
)


def guest_values(**given: str | None) -> dict[str, str] | None:
    """The options of `guest_options` that were given, as a specification has them."""
    return {name: value for name, value in given.items() if value is not None} or None


def parse_assignments(texts: Iterable[str], option: str) -> dict[str, str]:
    """Reads repeated ``KEY=VALUE`` options.

    Raises:
        UsageError: for one that is not of that form, or a key given twice.
    """
    assignments: dict[str, str] = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not (separator and key.strip() and value.strip()):
            raise UsageError(f"{option} {text!r} is not KEY=VALUE")
        if key.strip() in assignments:
            raise UsageError(f"{option} sets {key.strip()} twice")
        assignments[key.strip()] = value.strip()
    return assignments


def parse_cgroup_settings(texts: Iterable[str]) -> dict[str, dict[str, str]]:
    """Reads repeated ``GROUP:ATTRIBUTE=VALUE`` options.

    Raises:
        UsageError: for one that is not of that form, or a setting given twice.
    """
    groups: dict[str, dict[str, str]] = {}
    for text in texts:
        group, separator, setting = text.partition(":")
        if not (separator and group):
            raise UsageError(f"--cgroup {text!r} is not GROUP:ATTRIBUTE=VALUE")
        for key, value in parse_assignments([setting], "--cgroup").items():
            if key in groups.setdefault(group, {}):
                raise UsageError(f"--cgroup sets {group}:{key} twice")
            groups[group][key] = value
    return groups
