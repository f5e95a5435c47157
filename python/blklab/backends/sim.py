"""The simulator as a backend: modelled devices under modelled schedulers, on any machine, without root.

A run depends on the cell alone: job text, scheduler, tunables, queue attributes, device and seed.
"""

from __future__ import annotations

import datetime
import json
import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from blklab import _core
from blklab.backends.protocol import Announce, Session, SessionOptions
from blklab.errors import JobFileError, SimulationError
from blklab.plan import Cell
from blklab.profiles import load_profile
from blklab.samples import DiskDescription, JobSample, RunSample, TargetDescription
from blklab.scheduler_choice import SchedulerChoice
from blklab.simulation import call_core, device_request, run_facts
from blklab.targets import ModelTarget, Target
from blklab.timeline import Timeline
from blklab.workloads import Workload


class SimBackend:
    """Serves ``sim:`` targets."""

    NAME = "sim"
    TIMELINES = True

    def describe(self, target: Target) -> TargetDescription:
        """Describes the modelled device and the schedulers that the simulator has."""
        model = _model_target(target)
        profile = load_profile(model.device)
        # An idle device is asked rather than described from the profile's text: parameters count in.
        facts = _checked(device_request(model, profile))
        schedulers = [entry["name"] for entry in json.loads(_core.schedulers())]
        device = facts["device"]
        return TargetDescription(
            target=model.text,
            backend=self.NAME,
            summary=f"simulated {profile.name}: {profile.summary}",
            disks=[
                DiskDescription(
                    name=profile.name,
                    model=profile.summary,
                    size_bytes=device["capacity_bytes"],
                    rotational=device["rotational"],
                    scheduler=device["default_scheduler"],
                    schedulers=schedulers,
                    queue={key: str(value) for key, value in facts["queue"].items()},
                )
            ],
            default_scheduler=device["default_scheduler"],
            schedulers=schedulers,
            details={"kind": profile.kind, **dict(model.parameters)},
        )

    @contextmanager
    def open(self, target: Target, options: SessionOptions) -> Iterator[Session]:
        """Opens a modelled device; there is nothing to restore."""
        description = self.describe(target)
        yield SimSession(_model_target(target), description, options)


class SimSession:
    """A modelled device under test."""

    def __init__(self, target: ModelTarget, description: TargetDescription, options: SessionOptions) -> None:
        self.target = description
        self._device = device_request(target, load_profile(target.device))
        self._options = options

    def check(self, choices: Sequence[SchedulerChoice], workloads: Sequence[Workload]) -> list[str]:
        """Checks every scheduler, tunable, queue attribute and job without simulating anything."""
        for workload in workloads:
            for note in workload.host_only:
                raise JobFileError(
                    f"the simulator does not know the option {note.option}",
                    source=workload.source,
                    line=note.line,
                    option=note.option,
                    hint="leave it out, or test on this machine's disk",
                )
            for choice in choices:
                _checked(self._request(choice, workload, seed=0), source=workload.source)
        return [
            f"{workload.source}:{note.line}: {note.option}: {note.message}"
            for workload in workloads
            for note in workload.warnings
        ]

    def prepare(self, workloads: Sequence[Workload], announce: Announce) -> None:
        """Nothing to prepare: a modelled device holds no files."""

    def run(self, cell: Cell) -> RunSample:
        """Simulates one cell."""
        started_at = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
        start_ns = time.monotonic_ns()
        request = self._request(cell.scheduler, cell.workload, seed=cell.key.seed)
        try:
            text, tables = call_core(_core.simulate_recorded, json.dumps(request))
        except SimulationError as error:
            return RunSample(
                cell=cell.key,
                status="failed",
                error=error.message,
                started_at=started_at,
                elapsed_ns=time.monotonic_ns() - start_ns,
                jobs=[],
            )
        answer = json.loads(text)
        if tables is not None and self._options.timeline_file is not None:
            facts = run_facts(answer, target=self.target.target, workload=cell.workload.name)
            Timeline.from_rows(facts, *tables).save(self._options.timeline_file)
        name = self.target.disks[0].name
        settings = {f"{name}/scheduler": answer["scheduler"]}
        settings |= {f"{name}/iosched/{key}": str(value) for key, value in answer["tunables"].items()}
        settings |= {f"{name}/{key}": str(value) for key, value in answer["queue"].items()}
        return RunSample(
            cell=cell.key,
            status="ok",
            started_at=started_at,
            elapsed_ns=time.monotonic_ns() - start_ns,
            jobs=[JobSample.model_validate(job) for job in answer["jobs"]],
            settings=settings,
            engine=answer["engine"],
        )

    def commands(self, cell: Cell) -> list[str]:
        """The simulation as a command; it changes nothing anyway."""
        tunables = "".join(f" --tunable {key}={value}" for key, value in cell.scheduler.tunables.items())
        queue = "".join(f" --queue {key}={value}" for key, value in self._options.queue.items())
        groups = "".join(
            f" --cgroup {shlex.quote(f'{group}:{key}={value}')}"
            for group, settings in self._options.cgroups.items()
            for key, value in settings.items()
        )
        command = f"blklab run {self.target.target} {cell.workload.source} --scheduler {cell.scheduler.name}"
        return [f"{command}{tunables}{queue}{groups} --seed {cell.key.seed}"]

    def _request(self, choice: SchedulerChoice, workload: Workload, *, seed: int) -> dict[str, Any]:
        return self._device | {
            "scheduler": choice.name,
            "tunables": choice.tunables,
            "queue": self._options.queue,
            "cgroups": self._options.cgroups,
            "jobs": {"text": workload.text, "source": workload.source},
            "runtime_ns": self._options.runtime_ns,
            "seed": seed,
            "limits": {"events": None, "simulated_ns": None},
            "timeline": self._options.timeline_file is not None,
        }


def _model_target(target: Target) -> ModelTarget:
    if not isinstance(target, ModelTarget):
        raise TypeError(f"the simulator cannot open {target!r}")
    return target


def _checked(request: dict[str, Any], *, source: str = "") -> dict[str, Any]:
    """Asks the core whether a request could be simulated, and for the facts of its device and queue."""
    facts: dict[str, Any] = json.loads(call_core(_core.check_request, json.dumps(request), source=source))
    return facts


BACKEND = SimBackend()
