"""Forms in which the values of options are written: numbers, durations, lists of names, assignments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import BeforeValidator

from blklab.errors import SpecError, UsageError
from blklab.quantities.units import exact_duration, parse_duration_ns, parse_fraction, parse_size_bytes
from blklab.spec.changes import WrittenChange, parse_changes
from blklab.spec.commands import guest_paths
from blklab.spec.goals import Goal, goal_from_weights, parse_goal
from blklab.spec.machines import load_machine
from blklab.spec.options import Form, Use
from blklab.spec.schedulers import check_kernel_name, parse_scheduler_choices
from blklab.spec.sweeps import parse_sweeps
from blklab.spec.workloads import Workload, load_workload, workload_of_command


def parse_assignments(texts: Iterable[str], option: str) -> dict[str, str]:
    """Reads repeated ``KEY=VALUE`` options.

    Args:
        texts: What follows each use of the flag.
        option: The flag, for messages.

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


def parse_group_assignments(texts: Iterable[str], option: str) -> dict[str, dict[str, str]]:
    """Reads repeated ``GROUP:KEY=VALUE`` options, by group.

    Args:
        texts: What follows each use of the flag.
        option: The flag, for messages.

    Raises:
        UsageError: for one that is not of that form, or a setting given twice.
    """
    groups: dict[str, dict[str, str]] = {}
    for text in texts:
        group, separator, setting = text.partition(":")
        if not (separator and group):
            raise UsageError(f"{option} {text!r} is not GROUP:ATTRIBUTE=VALUE")
        for key, value in parse_assignments([setting], option).items():
            if key in groups.setdefault(group, {}):
                raise UsageError(f"{option} sets {group}:{key} twice")
            groups[group][key] = value
    return groups


def _kernel_names(texts: list[str]) -> list[str]:
    """Names of guest kernels, each once; a text may hold several, separated by commas."""
    names = [name.strip() for text in texts for name in text.split(",")]
    for name in names:
        check_kernel_name(name, ",".join(texts))
        if names.count(name) > 1:
            raise SpecError(f"the kernel {name!r} is listed twice")
    return names


def _load_workloads(names: list[str]) -> list[Workload]:
    """Loads workloads, none of them twice under one name."""
    return each_named_once([load_workload(name) for name in names])


def _commands(lines: list[str]) -> list[Workload]:
    """Commands as workloads."""
    for line in lines:
        if not line.strip() or "\0" in line:
            raise SpecError("a command is empty", hint="give a shell command, such as --command 'make -j2'")
    return each_named_once([workload_of_command(line) for line in lines])


def each_named_once(workloads: list[Workload]) -> list[Workload]:
    """The same workloads.

    Raises:
        SpecError: if two of them have the same name.
    """
    loaded = [workload.name for workload in workloads]
    for name in loaded:
        if loaded.count(name) > 1:
            raise SpecError(f"the workload {name!r} is listed twice", hint="rename one of the files")
    return workloads


def _is_inline(workload: Workload) -> bool:
    return workload.command is not None and workload.command.inline


def _numbers_as_text(table: Any) -> Any:
    """Sysfs takes text; a person may write a bare number."""
    if not isinstance(table, dict):
        return table
    return {
        key: str(value) if isinstance(value, int) and not isinstance(value, bool) else value
        for key, value in table.items()
    }


def _nested_numbers_as_text(tables: Any) -> Any:
    if not isinstance(tables, dict):
        return tables
    return {name: _numbers_as_text(table) for name, table in tables.items()}


def _goal(written: Any) -> Any:
    if isinstance(written, str):
        return parse_goal(written)
    if isinstance(written, dict) and all(_is_number(weight) for weight in written.values()):
        return goal_from_weights(written)
    return written


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _pairs(assignments: dict[str, str]) -> list[str]:
    return [f"{key}={value}" for key, value in assignments.items()]


def _listed(given: tuple[str, ...], _flag: str) -> list[str] | None:
    return list(given) or None


SWITCH = Form(Use.SWITCH, lambda _: [])
NUMBER = Form(Use.ONCE, lambda value: [repr(value)])
WORD = Form(Use.ONCE, lambda value: [value])
FRACTION = Form(Use.ONCE, lambda value: [repr(value)], parse_fraction, in_file=float | str)
"""Written as 0.05 or as 5%."""
DURATION = Form(Use.ONCE, lambda value: [exact_duration(value)], parse_duration_ns, in_file=str)
"""Written with a unit (``3s``), held in nanoseconds."""
SIZE = Form(Use.ONCE, lambda value: [str(value)], parse_size_bytes, in_file=str)
"""Written with or without a unit (``512m``), held in bytes."""
GOAL = Form(
    Use.ONCE,
    lambda goal: [goal.canonical],
    gather=lambda given, _: None if given is None else parse_goal(given),
    in_file=Annotated[Goal, BeforeValidator(_goal)],
)
"""In a description a word, or a table of weights."""
TARGETS = Form(
    Use.ONCE,
    lambda text: [text],
    gather=lambda given, _: None if given is None else [given],
    in_file=list[str],
)
"""One on the command line, a list of them in a description."""
WORKLOADS = Form(
    Use.REPEATED,
    lambda workloads: [workload.source for workload in workloads if not _is_inline(workload)],
    _load_workloads,
    _listed,
    list[str],
)
COMMANDS = Form(
    Use.REPEATED,
    lambda workloads: [workload.source for workload in workloads if _is_inline(workload)],
    _commands,
    _listed,
    list[str],
)
"""Commands among the workloads that are written as such."""
PATHS = Form(Use.REPEATED, list, guest_paths, _listed, list[str])
"""Absolute paths."""
SCHEDULERS = Form(
    Use.REPEATED,
    lambda choices: [",".join(choice.canonical for choice in choices)],
    parse_scheduler_choices,
    _listed,
    list[str],
)
SWEEPS = Form(
    Use.REPEATED, lambda sweeps: [sweep.canonical for sweep in sweeps], parse_sweeps, _listed, list[str]
)
KERNELS = Form(Use.REPEATED, lambda names: [",".join(names)], _kernel_names, _listed, list[str])
CHANGES = Form(
    Use.REPEATED,
    lambda changes: [change.canonical for change in changes],
    parse_changes,
    _listed,
    list[WrittenChange],
)
"""On the command line a text, in a description a text or a table."""
MACHINE = Form(Use.ONCE, lambda machine: [machine.source], load_machine, in_file=str)
"""Written as a name or a file."""
ASSIGNMENTS = Form(
    Use.REPEATED,
    _pairs,
    gather=lambda given, flag: parse_assignments(given, flag) or None,
    in_file=Annotated[dict[str, str], BeforeValidator(_numbers_as_text)],
)
"""A table of sysfs attributes."""
GROUP_ASSIGNMENTS = Form(
    Use.REPEATED,
    lambda groups: [f"{group}:{pair}" for group, settings in groups.items() for pair in _pairs(settings)],
    gather=lambda given, flag: parse_group_assignments(given, flag) or None,
    in_file=Annotated[dict[str, dict[str, str]], BeforeValidator(_nested_numbers_as_text)],
)
"""Tables of cgroup attributes by the name of the group."""
