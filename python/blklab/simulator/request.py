"""Requests for simulations: device, jobs, scheduler and settings, and their form for the core."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from blklab import _core
from blklab.errors import UsageError
from blklab.quantities.units import parse_duration_ns
from blklab.simulator.core import call_core, device_request
from blklab.spec.arguments import (
    Costs,
    GroupSettings,
    Setting,
    Settings,
    Text,
    WrittenChanges,
    changes_of,
    checked,
    group_settings_of,
    integer_of,
    settings_of,
    switch_of,
    text_of,
    word_of,
    wrong_value,
)
from blklab.spec.changes import Change, parse_changes
from blklab.spec.experiment import DEFAULT_ARRANGEMENT, DEFAULT_SEED, Arrangement
from blklab.spec.machines import DEFAULT_MACHINE, Machine, load_machine
from blklab.spec.permits import require
from blklab.spec.profiles import load_profile
from blklab.spec.schedulers import parse_scheduler_choice
from blklab.spec.targets import ModelTarget, parse_target
from blklab.spec.workloads import Workload, load_workload, parse_workload

FREEZE_NS = 28_000_000
"""Least time for which a switch stops the load: the median of 40 switches of a busy loop device, most of it
RCU grace periods."""
Jobs = str | os.PathLike[str] | Workload | Mapping[str, Mapping[str, Setting]]
"""Name of a shipped workload, path or text of a job file, a loaded workload, or sections of options."""
_SECTIONS = "'many-readers', 'mine.fio' or {'reader': {'rw': 'randread', 'bs': '4k'}}"


@dataclass(frozen=True)
class SimulationRequest:
    """The arguments of `simulate`; `simulate_many` takes many such requests.

    Words and defaults are those of `compare` and of `blklab run`.
    """

    target: Text
    """A simulated device, with or without ``sim:``: ``hdd-7200``, ``fixed,latency=2ms``, ``./mine.toml``."""
    workload: Jobs
    scheduler: str | None = None
    """A name, optionally with tunables as in ``bfq:slice_idle=0``; None for the device's default."""
    tunables: Settings = ()
    """``{"slice_idle": 0}``, ``"slice_idle=0"``, or a list of such texts; so are the settings below."""
    queue: Settings = ()
    """Queue attributes such as ``nr_requests``, in sysfs units."""
    cgroups: GroupSettings = ()
    """Settings of control groups by path (``/`` is the root): ``{"batch": {"io.weight": 50}}`` or
    ``"batch:io.weight=50"``."""
    parameters: Settings = ()
    """Parameters of the simulated kernel and its memory: ``memory``, ``dirty_ratio``, ``hz`` …"""
    costs: Costs | None = None
    """The cost table: processors, and what computing costs on them. None is ``ordinary``; with
    ``zero-cpu-time`` computing costs nothing."""
    seed: int = DEFAULT_SEED
    arrangement: Arrangement = DEFAULT_ARRANGEMENT
    """``drawn``: where files lie, when the load starts and the first tag depend on the seed; ``fixed``:
    they are always the same."""
    changes: WrittenChanges = ()
    """Changes while it runs, such as ``10s reader: ionice=rt/4``; see `blklab.spec.changes`."""
    runtime: str | None = None
    """Runtime of time-based jobs, such as ``2s``; None for that of the job file."""
    timeline: bool = False
    """Whether to record a timeline of all requests and I/Os."""
    max_events: int | None = None
    max_simulated_ns: int | None = None
    max_timeline_bytes: int | None = None


SimulationRequest.__init__ = checked(SimulationRequest.__init__)  # type: ignore[method-assign]


def model_target(text: str) -> ModelTarget:
    """Parses a device in the form of `SimulationRequest.target`, with or without ``sim:``.

    Raises:
        UsageError: if it is not a simulated device.
    """
    target = parse_target(text if text.startswith("sim:") else f"sim:{text}")
    if not isinstance(target, ModelTarget) or target.scheme != "sim":
        raise UsageError(f"{text!r} is not a simulated device", hint="`blklab targets` lists some")
    return target


def workload_of(jobs: Jobs) -> Workload:
    """Loads or parses the workload that the jobs describe.

    Raises:
        UnknownNameError: if there is no workload of that name.
        JobFileError: if the job file has a mistake.
        UsageError: if it is a command, which only a real machine can run.
    """
    workload = _loaded(jobs)
    require(workload, "sim", target="the simulator")
    return workload


def _loaded(jobs: Jobs) -> Workload:
    if isinstance(jobs, Workload):
        return jobs
    if isinstance(jobs, os.PathLike):
        return load_workload(os.fspath(jobs))
    if isinstance(jobs, Mapping):
        sections = (
            f"[{name}]\n" + "".join(f"{key}={value}\n" for key, value in options.items())
            for name, options in group_settings_of("workload", jobs, _SECTIONS).items()
        )
        return parse_workload("\n".join(sections), name="jobs", source="jobs")
    if not isinstance(jobs, str):
        raise wrong_value("workload", jobs, "a name, a job file or sections", f"write it like {_SECTIONS}")
    if "\n" in jobs:
        return parse_workload(jobs, name="jobs", source="jobs")
    return load_workload(jobs)


class CoreRequest:
    """A request as the core takes it, with the facts needed to read its answer."""

    def __init__(self, request: SimulationRequest) -> None:
        if not isinstance(request, SimulationRequest):
            hint = "write it like blklab.SimulationRequest('hdd-7200', 'many-readers')"
            raise wrong_value("a request", request, "a SimulationRequest", hint)
        target = model_target(text_of("target", request.target, "'hdd-7200'"))
        self.target = target.text
        self.workload = workload_of(request.workload)
        device = device_request(target, load_profile(target.device))
        scheduler, tunables = _chosen(request, device)
        self.seed = integer_of("seed", request.seed)
        self.changes = parse_changes(changes_of(request.changes))
        arrangement = word_of("arrangement", request.arrangement, Arrangement)
        costs = cost_table(request.costs)
        parameters = settings_of("parameters", request.parameters, "{'memory': '4g'}")
        self.text = json.dumps(
            device
            | {
                "scheduler": scheduler,
                "tunables": tunables,
                "queue": settings_of("queue", request.queue, "'nr_requests=64'"),
                "machine": costs.parameters() | parameters,
                "cgroups": group_settings_of("cgroups", request.cgroups, "'batch:io.weight=50'"),
                "jobs": {"text": self.workload.text, "source": self.workload.source},
                "changes": _changes_request(self.changes),
                "runtime_ns": _runtime_ns(request.runtime),
                "processors": costs.request(),
                "seed": self.seed,
                "arrangement": self.seed if arrangement == "drawn" else None,
                "limits": {
                    "events": _limit("max_events", request.max_events),
                    "simulated_ns": _limit("max_simulated_ns", request.max_simulated_ns),
                    "timeline_bytes": _limit("max_timeline_bytes", request.max_timeline_bytes),
                },
                "timeline": switch_of("timeline", request.timeline),
            }
        )


def cost_table(costs: Costs | None) -> Machine:
    """The cost table of that name, in that file, or as given; the usual one for None.

    Raises:
        UsageError: for anything else.
        UnknownNameError: if there is none of that name.
        ProfileError: if the file has a mistake.
    """
    if isinstance(costs, Machine):
        return costs
    if costs is None:
        return load_machine(DEFAULT_MACHINE)
    return load_machine(text_of("costs", costs, "'ordinary', 'zero-cpu-time' or './mine.toml'"))


def _chosen(request: SimulationRequest, device: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """Name and tunables of the scheduler."""
    tunables = settings_of("tunables", request.tunables, "'slice_idle=0'")
    if request.scheduler is None:
        facts = json.loads(call_core(_core.check_request, json.dumps(device)))
        return str(facts["device"]["default_scheduler"]), tunables
    if not isinstance(request.scheduler, str):
        raise wrong_value("scheduler", request.scheduler, "one scheduler", "write it like 'bfq:slice_idle=0'")
    if ":" not in request.scheduler:
        return request.scheduler, tunables
    choice = parse_scheduler_choice(request.scheduler)
    if twice := choice.tunables.keys() & tunables.keys():
        raise UsageError(f"the tunable {min(twice)} is given twice", hint="give it once")
    return choice.name, choice.tunables | tunables


def _runtime_ns(runtime: str | None) -> int | None:
    return None if runtime is None else parse_duration_ns(text_of("runtime", runtime, "'2s'"))


def _limit(name: str, value: int | None) -> int | None:
    return None if value is None else integer_of(name, value, least=1)


def _changes_request(changes: Sequence[Change]) -> dict[str, Any] | None:
    planned = [change.request() for change in changes]
    return {"planned": planned, "freeze_ns": FREEZE_NS} if planned else None
