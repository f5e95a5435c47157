"""The simulator as a backend: modelled schedulers on modelled devices, on any machine, without root.

A run depends only on its cell: job text, scheduler, tunables, queue attributes, device and seed.
"""

from __future__ import annotations

import datetime
import json
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from blklab.backends.changeable import check_changes
from blklab.backends.failed_slots import failed_stretch
from blklab.backends.group_choices import OF_VERSION_2, check_group_choices
from blklab.backends.model_changes import changes_request, with_changes
from blklab.backends.model_stretch import stretch_request, stretch_samples
from blklab.backends.modelled_device import (
    check_with_core,
    default_writeback,
    describe_disk,
    device_facts,
    require_model,
    with_machine,
)
from blklab.backends.protocol import Session, SessionOptions
from blklab.backends.workers import Simulations
from blklab.errors import SchedulerUnavailableError, SimulationError
from blklab.linux.load.fio import expected_runtime_ns
from blklab.linux.scratch.amounts import refuse_endless
from blklab.linux.scratch.space import Announce
from blklab.records.ramps import ended_in_ramp
from blklab.records.samples import JobSample, RunSample, TargetDescription
from blklab.records.starvation import starvation_in
from blklab.simulator.core import device_request, known_schedulers, read_back_settings, run_facts
from blklab.simulator.timeline import Timeline
from blklab.simulator.timeline_summary import background_requests, with_rates
from blklab.spec.experiment import Conditions
from blklab.spec.loads import Load
from blklab.spec.machines import DEFAULT_MACHINE
from blklab.spec.permits import require_runs, rule_for, why_not_switched
from blklab.spec.plan import Cell
from blklab.spec.profiles import Profile, load_profile
from blklab.spec.schedulers import SchedulerChoice
from blklab.spec.stretches import Stretch
from blklab.spec.targets import ModelTarget, Target
from blklab.spec.workloads import Workload, remarks_on
from blklab.spec.writeback_settings import is_writeback_setting


class SimBackend:
    """Serves ``sim:`` targets."""

    NAME = "sim"
    TIMELINES = True
    COMMANDS = rule_for(Load.COMMAND, NAME) is None
    GUESTS = False
    HISTORY = True
    SWITCHBACK = False
    MODULES = False

    def default_machine(self, options: Conditions, kernels: Sequence[str | None]) -> str:  # noqa: ARG002 - of guests
        """The usual table."""
        return DEFAULT_MACHINE

    def describe(self, target: Target) -> TargetDescription:
        """Describes the modelled device and the simulator's schedulers."""
        model = require_model(target)
        profile = load_profile(model.device)
        known = [str(entry["name"]) for entry in known_schedulers()]
        schedulers = [name for name in known if _takes(model, profile, name)]
        disk = describe_disk(profile, device_facts(model, profile), schedulers)
        return TargetDescription(
            target=model.text,
            backend=self.NAME,
            summary=f"simulated {profile.name}: {profile.summary}",
            disks=[disk],
            default_scheduler=disk.scheduler,
            schedulers=schedulers,
            details={"kind": profile.kind, **dict(model.parameters)},
        )

    @contextmanager
    def open(self, target: Target, options: SessionOptions) -> Iterator[Session]:
        """Opens a modelled device, which needs no restoring."""
        model = require_model(target, precondition=options.precondition)
        description = self.describe(model)
        if options.machine is not None:
            description = with_machine(description, options.machine)
        session = SimSession(model, description, options)
        if options.dry_run:
            yield session
            return
        with options.workers.simulations() as session.simulations:
            session.parallel = session.simulations.parallel
            yield session


class SimSession:
    """A modelled device under test."""

    simulations: Simulations
    """Set before the first run; a dry run has none."""

    def __init__(self, target: ModelTarget, description: TargetDescription, options: SessionOptions) -> None:
        self.target = description
        self.parallel = 1
        self._device = device_request(target, load_profile(target.device))
        self._options = options
        self._choices: Sequence[SchedulerChoice] = ()
        """The schedulers that were checked."""

    def tunable_defaults(self, choice: SchedulerChoice) -> Mapping[str, str] | None:
        """The modelled scheduler's tunables, and the queue's attributes, on this device."""
        request = self._device | {"scheduler": choice.name, "queue": self._options.queue}
        facts = check_with_core(request)
        found = {name: str(value) for name, value in (facts["queue"] | facts["tunables"]).items()}
        return found | default_writeback(facts)

    def group_attributes(self) -> frozenset[str]:
        """Those of cgroup v2, and bfq's weight under v1."""
        return OF_VERSION_2 | {"blkio.bfq.weight"}

    def check(self, choices: Sequence[SchedulerChoice], workloads: Sequence[Workload]) -> list[str]:
        """Checks every scheduler, tunable, queue attribute and job without simulating anything."""
        require_runs(self.target.backend, self._options, workloads, self.target.target)
        self._choices = choices
        check_group_choices(self._options, choices, workloads)
        check_changes(self._options, choices, workloads, self._length_ns)
        for workload in workloads:
            workload.refuse_host_only("the simulator", "leave it out, or test on this machine's disk")
            refuse_endless(workload, self.target.disks[0].size_bytes)
            for choice in choices:
                check_with_core(self._request(choice, workload, seed=0), source=workload.source)
        return remarks_on(workloads)

    def prepare(self, workloads: Sequence[Workload], announce: Announce) -> None:
        """Does nothing: a modelled device holds no files."""

    def run(self, cell: Cell) -> RunSample:
        """Simulates one cell."""
        started_at = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
        start_ns = time.monotonic_ns()
        request = self._request(cell.scheduler, cell.workload, seed=cell.key.seed)
        try:
            text, tables = self.simulations.run(json.dumps(request))
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
        jobs = [JobSample.model_validate(job) for job in answer["jobs"]]
        if tables is not None:
            facts = run_facts(
                answer,
                target=self.target.target,
                workload=cell.workload.name,
                changes=self._options.changes,
            )
            timeline = Timeline.from_rows(facts, *tables)
            if self._options.timeline_file is not None:
                timeline.save(self._options.timeline_file)
            if self._options.rate_window_ns is not None:
                jobs = with_rates(jobs, timeline.ios, self._options.rate_window_ns)
                answer["engine"] |= background_requests(timeline.requests)
        sample = RunSample(
            cell=cell.key,
            status="ok",
            started_at=started_at,
            elapsed_ns=time.monotonic_ns() - start_ns,
            jobs=jobs,
            settings=read_back_settings(answer, self.target.disks[0].name) | _writeback(cell.scheduler),
            engine=answer["engine"],
            warnings=[*ended_in_ramp(cell.workload, jobs), *starvation_in(cell.workload, jobs)],
        )
        if request["changes"] is None:
            return sample
        sample = sample.model_copy(update={"settings": self._settings(cell.scheduler)})
        return with_changes(sample, self._options.changes, request["changes"], answer)

    def _length_ns(self, workload: Workload) -> int | None:
        return expected_runtime_ns(workload, self._options.runtime_ns)

    def unswitchable(self, workload: Workload) -> str | None:
        """Refuses schedulers that no kernel has together, beside the usual."""
        if reason := why_not_switched(workload, self.target.backend, self._options, self._choices):
            return reason
        if len({_family(choice.name) for choice in self._choices}) > 1:
            return "no kernel has legacy and multi-queue schedulers at once"
        return None

    def run_stretch(self, stretch: Stretch) -> list[RunSample]:
        """Simulates one load with a switch at the beginning of each slot."""
        first = stretch.slots[0].scheduler
        request = stretch_request(stretch, self._request(first, stretch.workload, seed=stretch.seed))
        choices = {slot.scheduler.label: slot.scheduler for slot in stretch.slots}
        settings = {label: self._settings(choice) for label, choice in choices.items()}
        started_at = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
        start_ns = time.monotonic_ns()
        try:
            text, _ = self.simulations.run(json.dumps(request))
        except SimulationError as error:
            elapsed_ns = time.monotonic_ns() - start_ns
            return failed_stretch(stretch, error.message, started_at=started_at, elapsed_ns=elapsed_ns)
        answer = json.loads(text)
        return stretch_samples(
            stretch,
            answer["slots"],
            lambda slot, _: dict(settings[slot.scheduler.label]),
            started_at=started_at,
            elapsed_ns=time.monotonic_ns() - start_ns,
            engine={name: answer["engine"][name] for name in ("name", "version", "seed")},
        )

    def _settings(self, choice: SchedulerChoice) -> dict[str, str]:
        """The settings in force under a scheduler."""
        request = self._device | {"scheduler": choice.name, "tunables": choice.iosched}
        facts = check_with_core(request | {"queue": self._options.queue | choice.queue})
        settings = read_back_settings(facts | {"scheduler": choice.name}, self.target.disks[0].name)
        return settings | _writeback(choice)

    def stop(self) -> None:
        """Aborts the simulations."""
        self.simulations.stop()

    def stretch_commands(self, stretch: Stretch) -> list[str]:
        """A remark: no command makes schedulers take turns here."""
        turns = ", ".join(slot.scheduler.label for slot in stretch.slots)
        return [f"# the model runs one load and switches: {turns}"]

    def commands(self, cell: Cell) -> list[str]:
        """The simulation as a command."""
        choice = cell.scheduler
        tunables = "".join(f" --tunable {key}={value}" for key, value in _of_scheduler(choice).items())
        attributes = self._options.queue | choice.queue
        queue = "".join(f" --queue {key}={value}" for key, value in attributes.items())
        groups = "".join(
            f" --cgroup {shlex.quote(f'{group}:{key}={value}')}"
            for group, settings in choice.groups_over(self._options.cgroups).items()
            for key, value in settings.items()
        )
        machine = f" --machine {shlex.quote(self._options.machine.source)}" if self._options.machine else ""
        changes = "".join(
            f" {word}"
            for change in self._options.changes
            for word in ("--change", shlex.quote(change.canonical))
        )
        fixed = " --arrangement fixed" if self._options.arrangement == "fixed" else ""
        command = f"blklab run {self.target.target} {cell.workload.source} --scheduler {cell.scheduler.name}"
        return [f"{command}{tunables}{queue}{groups}{machine}{changes}{fixed} --seed {cell.key.seed}"]

    def _request(self, choice: SchedulerChoice, workload: Workload, *, seed: int) -> dict[str, Any]:
        return self._device | {
            "scheduler": choice.name,
            "tunables": choice.iosched,
            "queue": self._options.queue | choice.queue,
            "cgroups": choice.groups_over(self._options.cgroups),
            "jobs": {"text": workload.text, "source": workload.source},
            "runtime_ns": self._options.runtime_ns,
            "seed": seed,
            "arrangement": self._options.arrangement_seed(seed),
            "machine": (self._options.machine.parameters() if self._options.machine else {})
            | choice.of_writeback,
            "processors": None if self._options.machine is None else self._options.machine.request(),
            "limits": {"events": None, "simulated_ns": None},
            "changes": changes_request(self._options, workload, self._options.runtime_ns),
            "timeline": self._options.timeline_file is not None or self._options.rate_window_ns is not None,
        }


def _takes(model: ModelTarget, profile: Profile, scheduler: str) -> bool:
    """Whether a device can have a scheduler: one without a request queue has none."""
    try:
        check_with_core(device_request(model, profile) | {"scheduler": scheduler})
    except SchedulerUnavailableError:
        return False
    return True


def _of_scheduler(choice: SchedulerChoice) -> dict[str, str]:
    """The settings that `blklab run` takes as tunables."""
    return choice.iosched | _writeback(choice)


def _writeback(choice: SchedulerChoice) -> dict[str, str]:
    """Its settings of writeback, by their names in choices."""
    return {name: value for name, value in choice.tunables.items() if is_writeback_setting(name)}


def _family(scheduler: str) -> str:
    """The request path of a scheduler: ``legacy`` or ``multi-queue``; empty if there is no such scheduler."""
    families = {entry["name"]: str(entry["family"]) for entry in known_schedulers()}
    return families.get(scheduler, "")


BACKEND = SimBackend()
