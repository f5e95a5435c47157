"""Values that shell completion offers for each parameter.

Names that ship with blklab (workloads, devices, schedulers, goals, studies …) are fixed when the scripts are
made. Run ids and guest kernels are looked up on each completion (`blklab.cli.reference.current_names`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import click

from blklab.analysis.metrics import METRICS
from blklab.cli.options import ExperimentFlag
from blklab.cli.reference.tree import CommandNode, metavar_of
from blklab.labs.reanalysis.readers import READERS
from blklab.labs.studies import replicable_study_names
from blklab.shipped import shipped_folder
from blklab.simulator.core import known_schedulers
from blklab.spec.atlas import drive_stems
from blklab.spec.goals import NAMED_GOALS
from blklab.spec.machines import THIS, shipped_machines
from blklab.spec.options import Option
from blklab.spec.profiles import device_kinds, shipped_profiles
from blklab.spec.workloads import shipped_commands, shipped_workloads


@dataclass(frozen=True)
class Values:
    """Values to offer."""

    name: str = ""
    """Of the shell function that offers it; a shell knows values of one name once."""
    words: tuple[str, ...] = ()
    current: str = ""
    """Names to look up on each completion: a key of `current_names.LOOKUPS`."""
    files: bool = False
    folders: bool = False
    commas: bool = False
    """A value is a list with commas."""


FILES = Values("files", files=True)
FOLDERS = Values("folders", folders=True)
RUNS = Values("runs", ("latest",), current="runs")


def _workloads() -> Values:
    return Values("workloads", (*shipped_workloads(), *shipped_commands()), files=True)


def _devices() -> tuple[str, ...]:
    return (*shipped_profiles(), *device_kinds(), *drive_stems())


def _targets() -> Values:
    words = tuple(f"{scheme}:{device}" for scheme in ("sim", "uml") for device in _devices())
    return Values("targets", (*words, "loop:1g"), files=True)


def _schedulers() -> Values:
    return Values("schedulers", tuple(one["name"] for one in known_schedulers()), commas=True)


def _one_scheduler() -> Values:
    return Values("scheduler", _schedulers().words)


def _schedulers_or_runs() -> Values:
    return Values("choice", (*_schedulers().words, "latest", "fleet"), current="runs")


def _goals() -> Values:
    return Values("goals", (*NAMED_GOALS, *(f"{name}=" for name in _metrics().words)))


def _metrics() -> Values:
    return Values("metrics", tuple(METRICS))


def _studies() -> Values:
    return Values("studies", (*replicable_study_names(), "all"), files=True)


def _readers() -> Values:
    return Values("readers", tuple(READERS))


def _kernels() -> Values:
    return Values("kernels", current="kernels", commas=True)


def _one_kernel() -> Values:
    return Values("kernel", current="kernels")


def _patches() -> Values:
    patches = sorted(path.name for path in (shipped_folder("kernel") / "patches").iterdir() if path.is_dir())
    return Values("patches", tuple(patches), files=True)


_OF_OPTIONS: dict[str, Callable[[], Values]] = {
    "targets": _targets,
    "workloads": _workloads,
    "schedulers": _schedulers,
    "kernels": _kernels,
    "goals": _goals,
    "machines": lambda: Values("machines", (*shipped_machines(), THIS), files=True),
}
"""By `Option.names`."""

_OF_METAVARS: dict[str, Callable[[], Values]] = {
    "FILE": lambda: FILES,
    "FILE...": lambda: FILES,
    "FILE|FOLDER...": lambda: FILES,
    "FILE=NAME": lambda: FILES,
    "FRAGMENT": lambda: FILES,
    "PATH": lambda: FILES,
    "DEVICE|PATH": lambda: FILES,
    "debian|DIR|ARCHIVE": lambda: Values("sources", ("debian",), files=True),
    "FOLDER": lambda: FOLDERS,
    "RUN": lambda: RUNS,
    "[RUN]": lambda: RUNS,
    "[RUN|fleet|SCHEDULER[:TUNABLE=VALUE…]]": _schedulers_or_runs,
    "TARGET": _targets,
    "[TARGET]": _targets,
    "NAME|FILE.fio": _workloads,
    "[NAME|FILE.fio]": _workloads,
    "NAME|FILE.fio|trace:FILE": _workloads,
    "[NAME|FILE.fio|trace:FILE]": _workloads,
    "[NAME|FILE.fio|trace:FILE]…": _workloads,
    "NAME|DIRECTORY…|all": _studies,
    "NAME|DIRECTORY…": _studies,
    "NAME|DIRECTORY": _studies,
    "[DIRECTORY…]": lambda: FOLDERS,
}
"""By the metavar of any other parameter."""

_OF_PARAMETERS: dict[tuple[str, str], Callable[[], Values]] = {
    ("run", "--scheduler"): _one_scheduler,
    ("run", "--kernel"): _one_kernel,
    ("explain", "--scheduler"): _one_scheduler,
    ("fidelity", "--kernel"): _one_kernel,
    ("analyse", "--reader"): _readers,
    ("kernel build", "name"): _one_kernel,
    ("kernel build", "--patch"): _patches,
    ("kernel show", "name"): _one_kernel,
    ("kernel judge", "--kernel"): _kernels,
    ("kernel remove", "names"): _one_kernel,
    ("completion", "shell"): lambda: Values("shells", ("bash", "zsh", "fish")),
}
"""By command, and flag or argument, for metavars that say too little (NAME, FILE)."""


def values_of(node: CommandNode, parameter: click.Parameter) -> Values | None:
    """The values that completion offers for a parameter; None if it knows none."""
    key = (" ".join(node.path), parameter.opts[-1])
    if key in _OF_PARAMETERS:
        return _OF_PARAMETERS[key]()
    if isinstance(parameter, ExperimentFlag):
        return _of_option(parameter.experiment_option)
    if isinstance(parameter.type, click.Choice):
        name = "_".join((*node.path, parameter.name or "")).replace("-", "_")
        return Values(name, tuple(str(choice) for choice in parameter.type.choices))
    if isinstance(parameter.type, click.Path):
        return FILES if parameter.type.file_okay else FOLDERS
    find = _OF_METAVARS.get(metavar_of(parameter, node.context))
    return None if find is None else find()


def _of_option(option: Option) -> Values | None:
    if option.choices:
        return Values(option.key.replace(".", "_"), option.choices)
    return _OF_OPTIONS[option.names]() if option.names else None
