"""Runs experiments for programs and notebooks, with the words and defaults of `blklab compare`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any

from blklab.api.comparison import Comparison
from blklab.backends import THIS_MACHINE
from blklab.backends.cluster.client import Cluster
from blklab.experiment.blocks import Observer, Progress
from blklab.experiment.outlook import Outlook, Shortage
from blklab.experiment.pipeline import compare as run_comparison
from blklab.linux.processes.signals import signals_as_exceptions
from blklab.progress.experiment import ProgressDisplay
from blklab.progress.gate import GateDisplay
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import RunSample
from blklab.records.store import Store
from blklab.report.text.short_verdict import short_verdict
from blklab.spec.arguments import (
    Costs,
    GroupSettings,
    Setting,
    Settings,
    Text,
    Texts,
    WrittenChanges,
    changes_of,
    checked,
    fraction_of,
    group_settings_of,
    settings_of,
    switch_of,
    text_of,
    texts_of,
    wrong_value,
)
from blklab.spec.experiment import (
    DEFAULT_ARRANGEMENT,
    DEFAULT_CONFIDENCE,
    DEFAULT_MARGIN,
    DEFAULT_SEED,
    Arrangement,
    DesignName,
    ExperimentSpec,
    Order,
)
from blklab.spec.machines import Machine
from blklab.spec.request import build_specs, spec_values

_READ: dict[str, Callable[[Any], Any]] = {
    **{
        name: partial(texts_of, name, example=example)
        for name, example in (
            ("schedulers", "['none', 'bfq:slice_idle=0']"),
            ("workloads", "['many-readers', 'mine.fio']"),
            ("commands", "'make -j2'"),
            ("sweeps", "'bfq:slice_idle=0,2,20'"),
            ("kernels", "['stock', 'mine']"),
            ("guest_files", "'/etc/services'"),
        )
    },
    **{
        name: partial(text_of, name, example=example)
        for name, example in (
            ("budget", "'10m' or '30blocks'"),
            ("runtime", "'3s'"),
            ("costs", "'ordinary', 'zero-cpu-time' or './mine.toml'"),
            ("beside", "'mine.fio'"),
            ("set_up", "'make clean'"),
            ("repeat_set_up", "'make clean'"),
            ("space", "'1g'"),
            ("time_limit", "'5m'"),
        )
    },
    "queue": partial(settings_of, "queue", example="'nr_requests=64'"),
    "guest": partial(settings_of, "guest", example="{'memory': '1g'}"),
    "cgroups": partial(group_settings_of, "cgroups", example="'batch:io.weight=50'"),
    "changes": changes_of,
    "margin": partial(fraction_of, "margin"),
    "confidence": partial(fraction_of, "confidence"),
    "good_enough": partial(fraction_of, "good_enough"),
}
"""How arguments are read that are not left to the description's own checks, with an example of each."""
_KEYS = {"changes": "change", "costs": "machine", "guest_files": "guest_file"}
"""Arguments that a description has under another key."""


@checked
def compare(
    target: Text,
    *,
    schedulers: Texts | None = None,
    workloads: Texts | None = None,
    budget: str | None = None,
    blocks: int | None = None,
    commands: Texts | None = None,
    sweeps: Texts | None = None,
    goal: str | Mapping[str, float] | None = None,
    good_enough: float | str | None = None,
    margin: float | str = DEFAULT_MARGIN,
    confidence: float | str = DEFAULT_CONFIDENCE,
    design: DesignName = "auto",
    order: Order = "randomised",
    seed: int = DEFAULT_SEED,
    runtime: str | None = None,
    queue: Settings = (),
    cgroups: GroupSettings = (),
    changes: WrittenChanges = (),
    precondition: bool = False,
    allow_writes: bool = False,
    gate: bool = True,
    arrangement: Arrangement = DEFAULT_ARRANGEMENT,
    costs: Costs | None = None,
    cold: bool = False,
    beside: str | None = None,
    set_up: str | None = None,
    repeat_set_up: str | None = None,
    space: str | None = None,
    time_limit: str | None = None,
    kernels: Texts | None = None,
    guest: Mapping[str, Setting] | None = None,
    guest_files: Texts | None = None,
    store: str | None = None,
    cluster: str | None = None,
    progress: bool | None = None,
    callback: Callable[[Progress], object] | None = None,
) -> Comparison:
    """Compares schedulers on a target, as `blklab compare` does, and stores every run.

    Words, grammar and defaults are those of the command line; docs/reference/experiments.md explains each.
    Where several values are possible, one may be given without a list.

    Args:
        target: A directory, a block device, ``loop:1g``, ``sim:hdd-7200``, ``uml:nvme-tlc`` …
        schedulers: Such as ``["none", "bfq:slice_idle=0"]`` or ``"none,bfq"``; None for those that the
            target offers.
        workloads: Names of shipped workloads, job files, or ``trace:FILE``.
        budget: Most time or blocks to spend: ``"10m"``, ``"30blocks"``.
        blocks: A fixed number of blocks instead.
        commands: Shell commands as workloads.
        sweeps: Values of tunables, such as ``"bfq:slice_idle=0,2,20"``.
        goal: One answer for one purpose: a goal's name, or weights of metrics.
        good_enough: Stop at a scheduler known to be at most this much worse than the best: ``"10%"``.
        margin: Relative differences up to this fraction do not matter: ``0.02`` or ``"2%"``.
        confidence: Of the intervals and the verdict.
        design: ``auto``, ``runs`` or ``switchback``.
        order: ``randomised`` or ``by-scheduler``.
        seed: Of the order of runs and all random choices.
        runtime: Length of each run, such as ``"3s"``.
        queue: Queue attributes during all runs: ``{"nr_requests": 64}`` or ``"nr_requests=64"``.
        cgroups: Attributes of control groups: ``{"batch": {"io.weight": 50}}`` or ``"batch:io.weight=50"``.
        changes: Changes while the load runs, such as ``"10s nr_requests=32"``.
        precondition: Overwrite scratch space at random before the first run.
        allow_writes: Let workloads write to a raw block device. DESTROYS its data.
        gate: Patched schedulers pass loads and torture in a guest before a disk of this machine. False takes
            them as they are, mistakes included.
        arrangement: Of models: ``drawn`` by chance in each block, or ``fixed``.
        costs: Of models: the cost table, such as ``"ordinary"``, ``"zero-cpu-time"`` or a file.
        cold: Run commands with an empty page cache, on a file system of blklab's own.
        beside: A job file or shipped workload that loads the disk during each run of a command.
        set_up: Shell command before the first run of the commands.
        repeat_set_up: Shell command before each of their runs.
        space: Room that they need, such as ``"1g"``.
        time_limit: Of each command, such as ``"5m"``.
        kernels: Guest kernels of ``uml:`` targets.
        guest: Their options: ``{"memory": "1g", "filesystem": "ext4"}``.
        guest_files: Files of this machine that commands in a guest need.
        store: Database of runs; None for the default one.
        cluster: Address of a Dask scheduler, whose workers run a model's simulations and guests.
        progress: Whether to show progress on standard error; None: on a terminal and in notebooks.
        callback: Called with a `Progress` as each run begins. An exception that it raises ends the
            experiment; the finished runs stay in the store.

    Raises:
        InterruptedRunError: for Ctrl-C; the finished runs are stored.
        RefusedError: if a patched scheduler does not pass the gate.
        BlklabError: for a wrong argument, or if the experiment cannot be made.
    """
    # The values as given, before any other name exists here.
    spec_arguments = {name: value for name, value in locals().items() if name not in _OF_THE_CALL}
    if callback is not None and not callable(callback):
        raise wrong_value("callback", callback, "a function", "write it like callback=print")
    spec = build_specs(spec_values(_written(spec_arguments)))[0]
    if isinstance(costs, Machine):
        spec = spec.model_copy(update={"machine": costs})
    workers = (
        THIS_MACHINE if cluster is None else Cluster(text_of("cluster", cluster, "'tcp://10.0.0.5:8786'"))
    )
    database = None if store is None else text_of("store", store, "'runs.db'")
    if switch_of("gate", gate):
        _pass_gate(spec, progress)
    display = _display(progress)
    with signals_as_exceptions(), Store.opened(database) as opened, display or nullcontext():
        record = run_comparison(spec, opened, _Events(display, callback), workers=workers)
        comparison = Comparison(record)
        opened.note_verdict(record.run_id, short_verdict(comparison.document))
    return comparison


_OF_THE_CALL = frozenset({"store", "cluster", "progress", "callback", "gate"})
"""Arguments that are not the experiment's."""


def _written(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as a description has them; those that are not given are left out."""
    values: dict[str, Any] = {"targets": [text_of("target", arguments["target"], "'sim:hdd-7200'")]}
    for name, value in arguments.items():
        if name == "target" or value is None or value == () or isinstance(value, Machine):
            continue
        values[_KEYS.get(name, name)] = _READ[name](value) if name in _READ else value
    return values


def _in_notebook() -> bool:
    """Whether a kernel of Jupyter runs this; an import of its packages alone does not say so."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def _pass_gate(spec: ExperimentSpec, progress: bool | None) -> None:
    """Puts the experiment's modules through the gate before the host, as the command does."""
    if all(choice.kernel is None for choice in spec.schedulers):
        return
    from blklab.labs.gate.arms import gate_arms  # noqa: PLC0415 - few experiments have modules

    gate_arms([spec], partial(GateDisplay, quiet=not _shows(progress)))


def _shows(progress: bool | None) -> bool:
    if progress is None:
        progress = os.isatty(2) or _in_notebook()
    return switch_of("progress", progress)


def _display(progress: bool | None) -> ProgressDisplay | None:
    return ProgressDisplay(quiet=False) if _shows(progress) else None


class _Events:
    """Passes an experiment's events on to a display and to a function, where there is one."""

    def __init__(self, display: Observer | None, callback: Callable[[Progress], object] | None) -> None:
        self._display = display
        self._callback = callback

    def announce(self, line: str) -> None:
        """Shows a step that is not a run."""
        if self._display is not None:
            self._display.announce(line)

    def begun(self, record: ExperimentRecord) -> None:
        """Shows the experiment's name."""
        if self._display is not None:
            self._display.begun(record)

    def falls_short(self, shortage: Shortage, schedulers: int) -> None:
        """Shows that the budget is too short."""
        if self._display is not None:
            self._display.falls_short(shortage, schedulers)

    def planned(self, outlook: Outlook) -> None:
        """Shows the plan."""
        if self._display is not None:
            self._display.planned(outlook)

    def progressed(self, progress: Progress) -> None:
        """Shows the progress, and calls the function."""
        if self._display is not None:
            self._display.progressed(progress)
        if self._callback is not None:
            self._callback(progress)

    def measured(self, sample: RunSample) -> None:
        """Shows a run that failed."""
        if self._display is not None:
            self._display.measured(sample)
