"""Simulations for programs and notebooks: one at a time, or many on all processors.

    import blklab

    result = blklab.simulate("hdd-7200", "random-read-4k-qd32", scheduler="mq-deadline", timeline=True)
    print(result.job("reader").directions[0].latency.percentile_ns(0.99))
    seeks = result.timeline.columns()["head_dispatch"]

The interpreter's lock is free while a simulation runs, and Ctrl-C ends it. A result depends on its request
alone, whatever else runs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from blklab import _core
from blklab.errors import (
    BlklabError,
    JobFileError,
    ProfileError,
    RequirementError,
    SchedulerUnavailableError,
    SimulationError,
    TunableError,
    UnknownNameError,
    UsageError,
)
from blklab.quantities.units import parse_duration_ns
from blklab.records.samples import JobSample
from blklab.simulator.timeline import RunFacts, Timeline
from blklab.spec.profiles import Profile, load_profile
from blklab.spec.schedulers import parse_scheduler_choice
from blklab.spec.targets import ModelTarget, parse_target
from blklab.spec.workloads import Workload, load_workload, parse_workload

Setting = str | int | float | bool
Jobs = str | Path | Workload | Mapping[str, Mapping[str, Setting]]
"""A shipped workload's name, a job file's path or text, a loaded workload, or sections with their options."""

_ERRORS_BY_KIND: dict[str, type[BlklabError]] = {
    "unknown_scheduler": SchedulerUnavailableError,
    "unknown_tunable": TunableError,
    "unknown_queue_attribute": TunableError,
    "unknown_device": UnknownNameError,
    "out_of_range": TunableError,
    "host_only": UsageError,
    "layout": UsageError,
    "endless": UsageError,
    "unsupported": RequirementError,
    "profile": ProfileError,
    "job_file": UsageError,
}
"""Kinds of errors of the core and of the guest program; every other kind is a run that failed."""


@dataclass(frozen=True)
class SimulationRequest:
    """What `simulate` takes; `simulate_many` takes many."""

    device: str
    """As behind ``sim:``: ``hdd-7200``, ``fixed,latency=200us``, ``./mine.toml``."""
    jobs: Jobs
    scheduler: str | None = None
    """A name, or with tunables as in ``bfq:slice_idle=0``; the device's default if none is given."""
    tunables: Mapping[str, Setting] = field(default_factory=dict)
    queue: Mapping[str, Setting] = field(default_factory=dict)
    """Queue attributes such as ``nr_requests``, in sysfs units."""
    machine: Mapping[str, Setting] = field(default_factory=dict)
    """Of the machine around the queue: ``memory``, ``dirty_ratio`` …"""
    cgroups: Mapping[str, Mapping[str, Setting]] = field(default_factory=dict)
    """Settings of control groups by path (``/`` is the root): ``io.weight``, ``io.max`` …"""
    seed: int = 1
    runtime: str | None = None
    """Of time-based jobs, such as ``2s``, in place of what the job file says."""
    timeline: bool = False
    """Whether to record what happens inside."""
    max_events: int | None = None
    max_simulated_ns: int | None = None
    max_timeline_bytes: int | None = None


@dataclass(frozen=True)
class SimulationResult:
    """What a simulation found."""

    target: str
    workload: str
    scheduler: str
    tunables: dict[str, str | int]
    """All of them, as in force."""
    queue: dict[str, str | int]
    cgroups: dict[str, dict[str, str]]
    """Settings of control groups, as they were given."""
    seed: int
    device: dict[str, Any]
    jobs: list[JobSample]
    """One for each section of the job file."""
    engine: dict[str, Any]
    """What the simulator says of itself: events, requests, merges, simulated time …"""
    warnings: list[str]
    timeline: Timeline | None = None

    def job(self, name: str) -> JobSample:
        """The sample of the section of that name.

        Raises:
            UnknownNameError: if there is none.
        """
        for job in self.jobs:
            if job.name == name:
                return job
        known = ", ".join(job.name for job in self.jobs)
        raise UnknownNameError(f"there is no job {name!r}", hint=f"there are {known}")


def simulate(
    device: str,
    jobs: Jobs,
    *,
    scheduler: str | None = None,
    tunables: Mapping[str, Setting] | None = None,
    queue: Mapping[str, Setting] | None = None,
    machine: Mapping[str, Setting] | None = None,
    cgroups: Mapping[str, Mapping[str, Setting]] | None = None,
    seed: int = 1,
    runtime: str | None = None,
    timeline: bool = False,
    max_events: int | None = None,
    max_simulated_ns: int | None = None,
    max_timeline_bytes: int | None = None,
) -> SimulationResult:
    """Simulates jobs on a device; `SimulationRequest` says what the arguments mean.

    Raises:
        BlklabError: for a name, value, profile or job that cannot be, or a limit that was reached.
    """
    request = SimulationRequest(
        device,
        jobs,
        scheduler=scheduler,
        tunables=tunables or {},
        queue=queue or {},
        machine=machine or {},
        cgroups=cgroups or {},
        seed=seed,
        runtime=runtime,
        timeline=timeline,
        max_events=max_events,
        max_simulated_ns=max_simulated_ns,
        max_timeline_bytes=max_timeline_bytes,
    )
    return run_request(request)


def run_request(request: SimulationRequest) -> SimulationResult:
    """Simulates one request.

    Raises:
        BlklabError: as `simulate`.
    """
    prepared = _Prepared(request)
    return prepared.result(*call_core(_core.simulate_recorded, prepared.text))


def simulate_many(
    requests: Iterable[SimulationRequest], workers: int | None = None
) -> list[SimulationResult]:
    """Simulates many requests on several threads; results come in the order of the requests.

    Args:
        requests: What to simulate.
        workers: Threads; as many as this process may use processors if nothing is given.

    Raises:
        BlklabError: for the first request (in their order) that fails; the others are broken off.
    """
    if workers is None:
        workers = _processors()
    if workers < 1:
        raise UsageError(f"workers must be at least 1, not {workers}")
    prepared = [_Prepared(request) for request in requests]
    answers = call_core(lambda texts: _core.simulate_many(texts, workers), [one.text for one in prepared])
    return [one.result(*answer) for one, answer in zip(prepared, answers, strict=True)]


def model_target(text: str) -> ModelTarget:
    """Reads a device as `SimulationRequest.device` names it, with or without ``sim:``.

    Raises:
        UsageError: if it is not a simulated device.
    """
    target = parse_target(text if text.startswith("sim:") else f"sim:{text}")
    if not isinstance(target, ModelTarget) or target.scheme != "sim":
        raise UsageError(f"{text!r} is not a simulated device", hint="`blklab targets` lists some")
    return target


def device_request(target: ModelTarget, profile: Profile) -> dict[str, Any]:
    """The part of a request to the core that describes the device."""
    return {
        "device": {
            "profile": profile.text,
            "source": profile.source,
            "kind": None if profile.text is not None else profile.kind,
            "parameters": dict(target.parameters),
        }
    }


def call_core(function: Any, argument: Any, *, source: str = "") -> Any:
    """Calls the compiled core and turns its errors into the package's own.

    Args:
        function: A function of `_core` that takes one argument.
        argument: The request.
        source: Name of the job file for messages, where the core cannot know it.

    Raises:
        BlklabError: for whatever the core refused.
    """
    try:
        return function(argument)
    except _core.SimulationError as error:
        raise core_error({"kind": error.kind, "message": error.message}) from error
    except _core.ProfileError as error:
        raise ProfileError(str(error)) from error
    except _core.JobFileError as error:
        raise JobFileError(error.message, source=source or error.source, line=error.line) from error


def core_error(error: Mapping[str, Any]) -> BlklabError:
    """An error of the core or of the guest program (``kind``, ``message``) as one of the package's own."""
    return _ERRORS_BY_KIND.get(str(error.get("kind")), SimulationError)(str(error.get("message")))


def read_back_settings(answer: Mapping[str, Any], disk: str) -> dict[str, str]:
    """Settings in force, from an answer of the core or of the guest program, as samples have them."""
    settings = {f"{disk}/scheduler": str(answer["scheduler"])}
    settings |= {f"{disk}/iosched/{key}": str(value) for key, value in answer["tunables"].items()}
    return settings | {f"{disk}/{key}": str(value) for key, value in answer["queue"].items()}


def workload_of(jobs: Jobs) -> Workload:
    """The workload that is meant.

    Raises:
        UnknownNameError: if there is no workload of that name.
        JobFileError: if the job file has a mistake.
    """
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


class _Prepared:
    """A request as the core takes it, and what is needed to read its answer."""

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
            raise UsageError(f"the seed must not be negative, as {request.seed} is")
        self.seed = request.seed
        self.text = json.dumps(
            device
            | {
                "scheduler": name,
                "tunables": tunables,
                "queue": _settings(request.queue),
                "machine": _settings(request.machine),
                "cgroups": {name: _settings(group) for name, group in request.cgroups.items()},
                "jobs": {"text": self.workload.text, "source": self.workload.source},
                "runtime_ns": None if request.runtime is None else parse_duration_ns(request.runtime),
                "seed": request.seed,
                "limits": {
                    "events": request.max_events,
                    "simulated_ns": request.max_simulated_ns,
                    "timeline_bytes": request.max_timeline_bytes,
                },
                "timeline": request.timeline,
            }
        )

    def result(self, text: str, tables: tuple[bytes, bytes] | None) -> SimulationResult:
        """The core's answer as a result."""
        answer = json.loads(text)
        timeline = None
        if tables is not None:
            facts = run_facts(answer, target=self.target, workload=self.workload.name)
            timeline = Timeline.from_rows(facts, *tables)
        return SimulationResult(
            target=self.target,
            workload=self.workload.name,
            scheduler=answer["scheduler"],
            tunables=answer["tunables"],
            queue=answer["queue"],
            cgroups=answer["cgroups"],
            seed=self.seed,
            device=answer["device"],
            jobs=[JobSample.model_validate(job) for job in answer["jobs"]],
            engine=answer["engine"],
            warnings=[
                f"{self.workload.source}:{note['line']}: {note['option']}: {note['message']}"
                for note in answer["warnings"]
            ],
            timeline=timeline,
        )


def run_facts(answer: Mapping[str, Any], *, target: str, workload: str) -> RunFacts:
    """What a timeline says of the run that the core's answer is about."""
    return RunFacts(
        target=target,
        workload=workload,
        scheduler=answer["scheduler"],
        tunables=answer["tunables"],
        queue=answer["queue"],
        seed=answer["engine"]["seed"],
        simulated_ns=answer["engine"]["simulated_ns"],
        device=answer["device"],
        jobs=answer["jobs"],
        engine=answer["engine"],
    )


def _settings(given: Mapping[str, Setting]) -> dict[str, str]:
    return {name: _setting(value) for name, value in given.items()}


def _setting(value: Setting) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _processors() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1
