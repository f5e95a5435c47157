"""Requests for simulations: device, jobs, scheduler and settings, and their form for the core."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from blklab import _core
from blklab.errors import UsageError
from blklab.quantities.units import parse_duration_ns
from blklab.simulator.core import call_core, device_request
from blklab.spec.changes import Change, parse_changes
from blklab.spec.experiment import Arrangement
from blklab.spec.machines import Machine
from blklab.spec.profiles import load_profile
from blklab.spec.schedulers import parse_scheduler_choice
from blklab.spec.targets import ModelTarget, parse_target
from blklab.spec.workloads import Workload, load_workload, parse_workload

FREEZE_NS = 28_000_000
"""Least time for which a switch stops the load: the median of 40 switches of a busy loop device, most of it
RCU grace periods."""
Setting = str | int | float | bool
Jobs = str | Path | Workload | Mapping[str, Mapping[str, Setting]]
"""Name of a shipped workload, path or text of a job file, a loaded workload, or sections of options."""


@dataclass(frozen=True)
class SimulationRequest:
    """The arguments of `simulate`; `simulate_many` takes many such requests."""

    device: str
    """A device as after ``sim:``: ``hdd-7200``, ``fixed,latency=200us``, ``./mine.toml``."""
    jobs: Jobs
    scheduler: str | None = None
    """A name, optionally with tunables as in ``bfq:slice_idle=0``; None for the device's default."""
    tunables: Mapping[str, Setting] = field(default_factory=dict)
    queue: Mapping[str, Setting] = field(default_factory=dict)
    """Queue attributes such as ``nr_requests``, in sysfs units."""
    machine: Mapping[str, Setting] = field(default_factory=dict)
    """Parameters of the machine: ``memory``, ``dirty_ratio`` …"""
    cgroups: Mapping[str, Mapping[str, Setting]] = field(default_factory=dict)
    """Settings of control groups by path (``/`` is the root): ``io.weight``, ``io.max`` …"""
    processors: Machine | None = None
    """Processors and what computing costs; None: nothing. See `blklab.spec.machines.load_machine`."""
    seed: int = 1
    arrangement: Arrangement = "fixed"
    """``drawn``: by the seed, as in experiments; see `blklab.spec.experiment.Conditions`."""
    changes: Sequence[str] = ()
    """Changes while it runs, such as ``10s reader: ionice=rt/4``; see `blklab.spec.changes`."""
    runtime: str | None = None
    """Runtime of time-based jobs, such as ``2s``; None for that of the job file."""
    timeline: bool = False
    """Whether to record a timeline of all requests and I/Os."""
    max_events: int | None = None
    max_simulated_ns: int | None = None
    max_timeline_bytes: int | None = None


def model_target(text: str) -> ModelTarget:
    """Parses a device in the form of `SimulationRequest.device`, with or without ``sim:``.

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
    if workload.command is not None:
        raise UsageError(
            f"{workload.name} is a command, and the simulator has none of this machine's programs",
            hint="`blklab compare` runs it on disks of this machine; the simulator takes job files",
        )
    return workload


def _loaded(jobs: Jobs) -> Workload:
    if isinstance(jobs, Workload):
        return jobs
    if isinstance(jobs, Path):
        return load_workload(str(jobs))
    if isinstance(jobs, Mapping):
        sections = (
            f"[{name}]\n" + "".join(f"{key}={_setting(value)}\n" for key, value in options.items())
            for name, options in jobs.items()
        )
        return parse_workload("\n".join(sections), name="jobs", source="jobs")
    if "\n" in jobs:
        return parse_workload(jobs, name="jobs", source="jobs")
    return load_workload(jobs)


class CoreRequest:
    """A request as the core takes it, with the facts needed to read its answer."""

    def __init__(self, request: SimulationRequest) -> None:
        target = model_target(request.device)
        self.target = target.text
        self.workload = workload_of(request.jobs)
        device = device_request(target, load_profile(target.device))
        name, tunables = request.scheduler, _settings(request.tunables)
        if name is None:
            facts = json.loads(call_core(_core.check_request, json.dumps(device)))
            name = str(facts["device"]["default_scheduler"])
        elif ":" in name:
            choice = parse_scheduler_choice(name)
            if twice := choice.tunables.keys() & tunables.keys():
                raise UsageError(f"the tunable {min(twice)} is given twice")
            name, tunables = choice.name, choice.tunables | tunables
        if request.seed < 0:
            raise UsageError(f"the seed must not be negative, but is {request.seed}")
        self.seed = request.seed
        self.changes = parse_changes(request.changes)
        self.text = json.dumps(
            device
            | {
                "scheduler": name,
                "tunables": tunables,
                "queue": _settings(request.queue),
                "machine": (request.processors.parameters() if request.processors else {})
                | _settings(request.machine),
                "cgroups": {name: _settings(group) for name, group in request.cgroups.items()},
                "jobs": {"text": self.workload.text, "source": self.workload.source},
                "changes": _changes_request(self.changes),
                "runtime_ns": None if request.runtime is None else parse_duration_ns(request.runtime),
                "processors": None if request.processors is None else request.processors.request(),
                "seed": request.seed,
                "arrangement": request.seed if request.arrangement == "drawn" else None,
                "limits": {
                    "events": request.max_events,
                    "simulated_ns": request.max_simulated_ns,
                    "timeline_bytes": request.max_timeline_bytes,
                },
                "timeline": request.timeline,
            }
        )


def _changes_request(changes: Sequence[Change]) -> dict[str, Any] | None:
    planned = [change.request() for change in changes]
    return {"planned": planned, "freeze_ns": FREEZE_NS} if planned else None


def _settings(given: Mapping[str, Setting]) -> dict[str, str]:
    return {name: _setting(value) for name, value in given.items()}


def _setting(value: Setting) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)
