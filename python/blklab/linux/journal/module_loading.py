"""Loads the modules that schedulers and bfq's weights need, each recorded in the journal first."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from blklab.errors import RefusedError
from blklab.linux.journal.journal import Journal
from blklab.linux.machine.scheduler_modules import (
    GROUP_WEIGHTS,
    find_scheduler_modules,
    insert_module,
    is_loaded,
    load_module,
    loading_command,
    module_of,
    module_version,
)

_CONTROLLERS = {1: "blkio.", 2: "io."}


def load_modules(schedulers: Iterable[str], attributes: Iterable[str], journal: Journal) -> list[str]:
    """Loads the modules of schedulers that are not loaded; the journal unloads them at the end.

    Modules that another run of blklab has loaded are recorded too: the run that ends last unloads them.

    Args:
        schedulers: Schedulers that will be chosen.
        attributes: Attributes of control groups that will be set; bfq's weight needs its module.
        journal: The run's.

    Returns:
        The modules that the journal answers for.

    Raises:
        SchedulerUnavailableError: if one cannot be loaded.
    """
    owned = []
    loadable = find_scheduler_modules().loadable
    for scheduler in _needed(schedulers, attributes):
        module = loadable.get(scheduler) or module_of(scheduler)
        if module is None or journal.own_module(module) is None:
            continue
        if scheduler in loadable:
            load_module(scheduler)
        owned.append(module)
    return owned


def load_module_file(path: Path, version: str, journal: Journal) -> None:
    """Loads a module that was built here from its file; the journal unloads it at the end.

    One of that name that is loaded already is used if it is the same build.

    Args:
        path: The file, named after the module.
        version: The version that tells the build from others.
        journal: The run's.

    Raises:
        RefusedError: if another build of that name is loaded.
        SchedulerUnavailableError: if it cannot be loaded.
    """
    module = path.stem
    if is_loaded(module) and (there := module_version(module)) != version:
        raise RefusedError(
            f"another build of the module {module} is loaded ({there or 'of no version'}, not {version})",
            hint=f"wait for the run that uses it, or unload it: rmmod {module}",
        )
    if journal.own_module(module) is not None and not is_loaded(module):
        insert_module(path)


def module_commands(schedulers: Iterable[str], attributes: Iterable[str]) -> list[str]:
    """The same as shell commands."""
    loadable = find_scheduler_modules().loadable
    return [loading_command(name) for name in _needed(schedulers, attributes) if name in loadable]


def attributes_of_modules(version: int) -> frozenset[str]:
    """Attributes of control groups that a module not yet loaded would bring, under a cgroup version."""
    loadable = find_scheduler_modules().loadable
    return frozenset(
        attribute
        for attribute, scheduler in GROUP_WEIGHTS.items()
        if scheduler in loadable and attribute.startswith(_CONTROLLERS[version])
    )


def _needed(schedulers: Iterable[str], attributes: Iterable[str]) -> list[str]:
    of_attributes = [GROUP_WEIGHTS[name] for name in sorted(attributes) if name in GROUP_WEIGHTS]
    return list(dict.fromkeys([*of_attributes, *schedulers]))
