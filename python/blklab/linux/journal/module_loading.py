"""Loads the modules that schedulers and bfq's weights need, each recorded in the journal first."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from blklab.errors import RefusedError
from blklab.linux.journal.journal import Journal
from blklab.linux.machine.host_change import HostChange, required
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


@dataclass(frozen=True)
class ModuleLoading(HostChange):
    """The module of a scheduler, loaded as the kernel itself would; the journal unloads it."""

    scheduler: str
    module: str
    is_missing: bool
    """It is not loaded, and can be."""
    journal: Journal | None
    """None in a dry run."""

    def make(self) -> None:
        """Records the module, and loads it unless another run of blklab's has.

        Raises:
            SchedulerUnavailableError: if it cannot be loaded.
        """
        self.make_if_needed()

    def make_if_needed(self) -> bool:
        """The same; whether the journal answers for the module."""
        owned = required(self.journal).own_module(self.module) is not None
        if owned and self.is_missing:
            load_module(self.scheduler)
        return owned

    def shell(self) -> list[str]:
        """The ``modprobe``, if the module is not loaded."""
        return [loading_command(self.scheduler)] if self.is_missing else []

    def holds(self) -> bool:
        """Whether the module is loaded."""
        return is_loaded(self.module)


@dataclass(frozen=True)
class ModuleInsertion(HostChange):
    """A module that was built here, loaded from its file; the journal unloads it."""

    path: Path
    """Named after the module."""
    version: str
    """Tells the build from others."""
    journal: Journal | None
    """None in a dry run."""

    def make(self) -> None:
        """Loads it; one of its name that is loaded already is used if it is the same build.

        Raises:
            RefusedError: if another build of that name is loaded.
            SchedulerUnavailableError: if it cannot be loaded.
        """
        module = self.path.stem
        if is_loaded(module) and (there := module_version(module)) != self.version:
            raise RefusedError(
                f"another build of the module {module} is loaded ({there or 'of no version'}, not"
                f" {self.version})",
                hint=f"wait for the run that uses it, or unload it: rmmod {module}",
            )
        if required(self.journal).own_module(module) is not None and not is_loaded(module):
            insert_module(self.path)

    def shell(self) -> list[str]:
        """The ``insmod``."""
        return [shlex.join(["insmod", str(self.path)])]


def module_changes(
    schedulers: Iterable[str], attributes: Iterable[str], journal: Journal | None
) -> list[ModuleLoading]:
    """The modules of schedulers that may have to be loaded, in order.

    Args:
        schedulers: Schedulers that will be chosen.
        attributes: Attributes of control groups that will be set; bfq's weight needs its module.
        journal: The run's; None for a dry run.
    """
    loadable = find_scheduler_modules().loadable
    modules = {name: loadable.get(name) or module_of(name) for name in _needed(schedulers, attributes)}
    return [
        ModuleLoading(name, module, name in loadable, journal)
        for name, module in modules.items()
        if module is not None
    ]


def load_modules(schedulers: Iterable[str], attributes: Iterable[str], journal: Journal) -> list[str]:
    """Loads the modules of schedulers that are not loaded; the journal unloads them at the end.

    Modules that another run of blklab has loaded are recorded too: the run that ends last unloads them.

    Returns:
        The modules that the journal answers for.

    Raises:
        SchedulerUnavailableError: if one cannot be loaded.
    """
    changes = module_changes(schedulers, attributes, journal)
    return [change.module for change in changes if change.make_if_needed()]


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
