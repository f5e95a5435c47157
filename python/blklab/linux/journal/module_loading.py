"""Loads the modules that schedulers and bfq's weights need, each recorded in the journal first."""

from __future__ import annotations

from collections.abc import Iterable

from blklab.linux.journal.journal import Journal
from blklab.linux.queue.scheduler_modules import (
    GROUP_WEIGHTS,
    find_scheduler_modules,
    load_module,
    loading_command,
    module_of,
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
