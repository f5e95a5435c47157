"""Values that shell completion offers for each parameter, looked up when a shell asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click

from blklab.cli.reference.tree import CommandNode, metavar_of

Words = Callable[[], Iterable[str]]


@dataclass(frozen=True)
class Values:
    """Values to offer."""

    words: tuple[Words, ...] = ()
    files: bool = False
    folders: bool = False
    commas: bool = False
    """A value is a list with commas."""

    def offered(self) -> list[str]:
        """All names."""
        return [word for words in self.words for word in words()]


def _called(module: str, name: str) -> Words:
    """Names that a function of blklab gives, or a table has, imported when they are asked for."""

    def words() -> Iterable[str]:
        found: Any = getattr(import_module(f"blklab.{module}"), name)
        listed: Iterable[str] = found() if callable(found) else found
        return listed

    return words


def _fixed(*words: str) -> Words:
    return lambda: words


def _targets() -> list[str]:
    devices = [word for words in _DEVICES for word in words()]
    return [*(f"{scheme}:{device}" for scheme in ("sim", "uml") for device in devices), "loop:1g"]


def _schedulers() -> list[str]:
    return [one["name"] for one in import_module("blklab.simulator.core").known_schedulers()]


def _goal_weights() -> list[str]:
    return [f"{name}=" for name in _METRICS()]


def _patches() -> list[str]:
    folder = import_module("blklab.shipped").shipped_folder("kernel") / "patches"
    return sorted(path.name for path in folder.iterdir() if path.is_dir())


def _kernel_names() -> list[str]:
    names = import_module("blklab.guests.kernels.cache").kernel_cache() / "names"
    return sorted({"stock", *(path.name for path in names.glob("*"))})


_DEVICES = (
    _called("spec.profiles", "shipped_profiles"),
    _called("spec.profiles", "device_kinds"),
    _called("spec.atlas", "drive_stems"),
)
_METRICS = _called("analysis.metrics", "METRICS")
_RUNS = _called("records.run_ids", "recent_run_ids")
_STUDIES = (_called("labs.studies", "replicable_study_names"), _fixed("all"))

FILES = Values(files=True)
FOLDERS = Values(folders=True)
TARGETS = Values((_targets,), files=True)
WORKLOADS = Values(
    (_called("spec.workloads", "shipped_workloads"), _called("spec.workloads", "shipped_commands")),
    files=True,
)
RUNS = Values((_fixed("latest"), _RUNS))
SCHEDULER = Values((_schedulers,))
KERNEL = Values((_kernel_names,))
KERNELS = Values((_kernel_names,), commas=True)
STUDIES = Values(_STUDIES, folders=True)

_OF_OPTIONS = {
    "targets": TARGETS,
    "workloads": WORKLOADS,
    "schedulers": Values((_schedulers,), commas=True),
    "kernels": KERNELS,
    "goals": Values((_called("spec.goals", "NAMED_GOALS"), _goal_weights)),
    "machines": Values((_called("spec.machines", "shipped_machines"), _fixed("this")), files=True),
}
"""By `Option.names`."""

_OF_METAVARS = {
    "FILE": FILES,
    "FILE...": FILES,
    "FILE|FOLDER...": FILES,
    "FILE=NAME": FILES,
    "FRAGMENT": FILES,
    "PATH": FILES,
    "DEVICE|PATH": FILES,
    "debian|DIR|ARCHIVE": Values((_fixed("debian"),), files=True),
    "FOLDER": FOLDERS,
    "RUN": RUNS,
    "[RUN|fleet|SCHEDULER[:TUNABLE=VALUE…]]": Values((_schedulers, _fixed("latest", "fleet"), _RUNS)),
    "TARGET": TARGETS,
    "NAME|FILE.fio": WORKLOADS,
    "NAME|FILE.fio|trace:FILE": WORKLOADS,
    "NAME|DIRECTORY…|all": STUDIES,
    "NAME|DIRECTORY…": STUDIES,
    "NAME|DIRECTORY": STUDIES,
    "DIRECTORY…": FOLDERS,
}
"""By the metavar of any other parameter, without the brackets of an optional one."""

_OF_PARAMETERS = {
    ("run", "--scheduler"): SCHEDULER,
    ("run", "--kernel"): KERNEL,
    ("explain", "--scheduler"): SCHEDULER,
    ("fidelity", "--kernel"): KERNEL,
    ("analyse", "--reader"): Values((_called("labs.reanalysis.readers", "READERS"),)),
    ("kernel build", "name"): KERNEL,
    ("kernel build", "--patch"): Values((_patches,), files=True),
    ("kernel show", "name"): KERNEL,
    ("kernel judge", "--kernel"): KERNELS,
    ("kernel remove", "names"): KERNEL,
}
"""By command, and flag or argument, for metavars that say too little (NAME, FILE)."""


def values_of(node: CommandNode, parameter: click.Parameter) -> Values | None:
    """The values that completion offers for a parameter; None if it knows none."""
    key = (" ".join(node.path), parameter.opts[-1])
    if key in _OF_PARAMETERS:
        return _OF_PARAMETERS[key]
    option = getattr(parameter, "experiment_option", None)
    if option is not None:
        return Values((_fixed(*option.choices),)) if option.choices else _OF_OPTIONS.get(option.names or "")
    if isinstance(parameter.type, click.Choice):
        return Values((_fixed(*map(str, parameter.type.choices)),))
    if isinstance(parameter.type, click.Path):
        return FILES if parameter.type.file_okay else FOLDERS
    metavar = metavar_of(parameter, node.context)
    return _OF_METAVARS.get(metavar) or _OF_METAVARS.get(metavar.removesuffix("…")[1:-1])
