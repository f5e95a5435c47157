"""Simulations for programs and notebooks: one, or many on all processors.

    import blklab

    result = blklab.simulate("hdd-7200", "random-read-4k-qd32", scheduler="mq-deadline", timeline=True)
    print(result.job("reader").directions[0].latency.percentile_ns(0.99))
    seeks = result.timeline.columns()["head_dispatch"]

A simulation releases the GIL while it runs, and Ctrl-C ends it. A result depends only on its request.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from blklab import _core
from blklab.errors import BlklabError, UnknownNameError, did_you_mean
from blklab.linux.machine.processors import usable_processors
from blklab.quantities.formatting import count_of
from blklab.quantities.units import format_bytes, format_duration
from blklab.records.samples import JobSample, LatencyHistogram
from blklab.simulator.core import call_core, run_facts
from blklab.simulator.request import CoreRequest, Jobs, SimulationRequest
from blklab.simulator.timeline import Timeline
from blklab.spec.argument_words import in_request_arguments
from blklab.spec.arguments import (
    Costs,
    GroupSettings,
    Settings,
    Text,
    WrittenChanges,
    checked,
    integer_of,
    wrong_value,
)
from blklab.spec.experiment import DEFAULT_ARRANGEMENT, DEFAULT_SEED, Arrangement


@dataclass(frozen=True)
class SimulationResult:
    """The result of a simulation."""

    target: str
    workload: str
    scheduler: str
    tunables: dict[str, str | int]
    """All tunables in effect."""
    queue: dict[str, str | int]
    cgroups: dict[str, dict[str, str]]
    """Settings of control groups, as requested."""
    seed: int
    device: dict[str, Any]
    jobs: list[JobSample]
    """One for each section of the job file."""
    engine: dict[str, Any]
    """The simulator's own counters: events, requests, merges, simulated time …"""
    warnings: list[str]
    timeline: Timeline | None = None
    changes_made_ns: list[int | None] = field(default_factory=list)
    """When each change was in force; None for one that did not come about."""

    def __repr__(self) -> str:
        """The run and a line for each job and direction; the fields have every counter and bin."""
        title = f"<SimulationResult of {self.target}: {self.workload} under {self.scheduler}>"
        return "\n".join([title, *(line for job in self.jobs for line in _lines(job))])

    def job(self, name: str) -> JobSample:
        """The sample of a section of the job file.

        Raises:
            UnknownNameError: if there is no section of that name.
        """
        for job in self.jobs:
            if job.name == name:
                return job
        known = [job.name for job in self.jobs]
        hint = did_you_mean(name, known) or f"there are {', '.join(known)}"
        raise UnknownNameError(f"there is no job {name!r}", hint=hint)


def _lines(job: JobSample) -> list[str]:
    """``reader: 1083 reads in 2.11 s, 4.23 MiB, mean 62 ms, p99 300 ms``."""
    return [
        f"{job.name}: {count_of(one.ios, one.direction)} in {format_duration(one.runtime_ns)},"
        f" {format_bytes(one.bytes)}{_latencies(one.latency)}"
        for one in job.directions
        if one.ios
    ]


def _latencies(latency: LatencyHistogram) -> str:
    """``, mean 62 ms, p99 300 ms``; empty if none was measured."""
    mean_ns, p99_ns = latency.mean_ns, latency.percentile_ns(0.99)
    if mean_ns is None or p99_ns is None:
        return ""
    return f", mean {format_duration(mean_ns)}, p99 {format_duration(p99_ns)}"


@checked
def simulate(
    target: Text,
    workload: Jobs,
    *,
    scheduler: str | None = None,
    tunables: Settings = (),
    queue: Settings = (),
    cgroups: GroupSettings = (),
    parameters: Settings = (),
    costs: Costs | None = None,
    seed: int = DEFAULT_SEED,
    arrangement: Arrangement = DEFAULT_ARRANGEMENT,
    changes: WrittenChanges = (),
    runtime: str | None = None,
    timeline: bool = False,
    max_events: int | None = None,
    max_simulated_ns: int | None = None,
    max_timeline_bytes: int | None = None,
) -> SimulationResult:
    """Simulates a workload on a modelled device; `SimulationRequest` documents the arguments.

    The result is that of `blklab run` with the same words, to the bit.

    Raises:
        BlklabError: for an invalid name, value, profile or job, or a limit that was reached.
    """
    return run_request(
        SimulationRequest(
            target,
            workload,
            scheduler=scheduler,
            tunables=tunables,
            queue=queue,
            cgroups=cgroups,
            parameters=parameters,
            costs=costs,
            seed=seed,
            arrangement=arrangement,
            changes=changes,
            runtime=runtime,
            timeline=timeline,
            max_events=max_events,
            max_simulated_ns=max_simulated_ns,
            max_timeline_bytes=max_timeline_bytes,
        )
    )


def run_request(request: SimulationRequest) -> SimulationResult:
    """Simulates one request.

    Raises:
        BlklabError: as for `simulate`.
    """
    prepared = CoreRequest(request)
    return _result_of(prepared, *_simulated(_core.simulate_recorded, prepared.text))


@checked
def simulate_many(
    requests: Iterable[SimulationRequest], workers: int | None = None
) -> list[SimulationResult]:
    """Simulates many requests on several threads; returns results in the order of the requests.

    Args:
        requests: The requests.
        workers: Number of threads; None for one per processor that this process may use.

    Raises:
        BlklabError: for the first request (in their order) that fails; the others are aborted.
    """
    workers = usable_processors() if workers is None else integer_of("workers", workers, least=1)
    if isinstance(requests, str) or not isinstance(requests, Iterable):
        hint = "write it like [blklab.SimulationRequest('hdd-7200', 'many-readers', seed=1), …]"
        raise wrong_value("requests", requests, "a list of requests", hint)
    prepared = [CoreRequest(request) for request in requests]
    answers = _simulated(lambda texts: _core.simulate_many(texts, workers), [one.text for one in prepared])
    return [_result_of(one, *answer) for one, answer in zip(prepared, answers, strict=True)]


def _simulated(function: Any, request: Any) -> Any:
    """Calls the core; its errors name the arguments of `SimulationRequest`."""
    try:
        return call_core(function, request)
    except BlklabError as error:
        error.reword(in_request_arguments)
        raise


def _result_of(request: CoreRequest, text: str, tables: tuple[bytes, bytes] | None) -> SimulationResult:
    """Reads the core's answer."""
    answer = json.loads(text)
    timeline = None
    if tables is not None:
        facts = run_facts(
            answer, target=request.target, workload=request.workload.name, changes=request.changes
        )
        timeline = Timeline.from_rows(facts, *tables)
    return SimulationResult(
        target=request.target,
        workload=request.workload.name,
        scheduler=answer["scheduler"],
        tunables=answer["tunables"],
        queue=answer["queue"],
        cgroups=answer["cgroups"],
        seed=request.seed,
        device=answer["device"],
        jobs=[JobSample.model_validate(job) for job in answer["jobs"]],
        engine=answer["engine"],
        warnings=[
            f"{request.workload.source}:{note['line']}: {note['option']}: {note['message']}"
            for note in answer["warnings"]
        ],
        timeline=timeline,
        changes_made_ns=answer.get("changes_made_ns", []),
    )
