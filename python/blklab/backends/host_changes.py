"""Planned changes on this machine's disks: blklab writes beneath the running fio, at their moments.

Everything that is written here is in the journal before the first run (queues, attributes of the root control
group) or ends with the run (the run's own control groups, priorities of fio's processes).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from blklab.backends.changeable import check_changes
from blklab.backends.host_stretch import job_between, read_logs
from blklab.backends.model_changes import never_made
from blklab.errors import RunFailedError, SpecError
from blklab.linux.cgroups.cost_control import COST_CONTROL
from blklab.linux.cgroups.run_cgroups import RunCgroups
from blklab.linux.cgroups.settings import CgroupSetting, wanted_settings
from blklab.linux.disks.disk import Disk
from blklab.linux.load.fio import expected_runtime_ns, ramp_time_ns
from blklab.linux.load.fio_histograms import total_ios
from blklab.linux.load.fio_start import STARTED, await_load, start_files
from blklab.linux.load.load_process import LoadProcess
from blklab.linux.machine.host_change import HostChange, MadeChanges, shell_of
from blklab.linux.processes.job_processes import processes_by_inner_number, set_io_priority
from blklab.linux.queue.settings import QueueSettings
from blklab.linux.queue.sysfs import TUNABLE_PREFIX
from blklab.quantities.units import NS_PER_MS, NS_PER_SECOND, format_duration
from blklab.records.samples import ChangeSample, JobSample, PhaseSample
from blklab.spec.changes import (
    Change,
    GroupChange,
    PriorityChange,
    QueueChange,
    SchedulerChange,
    TunableChange,
)
from blklab.spec.experiment import Conditions
from blklab.spec.group_settings import ROOT_GROUP, cost_is_enabled, words_of
from blklab.spec.schedulers import SchedulerChoice
from blklab.spec.workloads import Job, Workload

_LATE_NS = 50_000_000
"""A change that begins so much after its moment is reported."""
_SHORTEST_WINDOW_MS, _COARSE_WINDOW_MS = 25, 50
_MANY_CLONES = 8
_WINDOWS = 400
_NO = ("", "0", "none")


def phase_window_ms(workload: Workload, runtime_ns: int | None) -> int:
    """Length of the windows of fio's histogram logs in a run with changes; each costs memory and text."""
    clones = sum(job.numjobs for job in workload.jobs)
    shortest = _SHORTEST_WINDOW_MS if clones <= _MANY_CLONES else _COARSE_WINDOW_MS
    length_ns = expected_runtime_ns(workload, runtime_ns) or 0
    return max(shortest, length_ns // _WINDOWS // NS_PER_MS)


def check_changes_here(
    conditions: Conditions, choices: Sequence[SchedulerChoice], workloads: Sequence[Workload]
) -> None:
    """Refuses planned changes that would not happen; the kernel judges their values later.

    Among them are those of jobs whose processes have no priority that could be changed from outside.

    Raises:
        BlklabError: for the first one, with the reason.
    """
    runtime_ns = conditions.runtime_ns
    check_changes(conditions, choices, workloads, lambda workload: expected_runtime_ns(workload, runtime_ns))
    named = {change.job for change in conditions.changes if isinstance(change, PriorityChange)}
    for workload in workloads:
        for job in workload.jobs:
            reason = _fixed_priority(job)
            if job.name in named and reason is not None:
                raise SpecError(
                    f"{workload.name}: the I/O priority of job {job.name} cannot change: {reason}"
                )


def _fixed_priority(job: Job) -> str | None:
    given = [name for name in ("prio", "prioclass") if name in job.options]
    reasons = {
        "its threads are those of fio's main process (thread)": job.options.get("thread", "0") not in _NO,
        # fio_ioring_prep in engines/io_uring.c (fio 3.33).
        f"with io_uring fio gives each I/O the priority of its job file ({', '.join(given)})": (
            job.ioengine.startswith("io_uring") and bool(given)
        ),
        "the kernel's own thread submits its I/O (sqthread_poll)": (
            job.options.get("sqthread_poll", "0") not in _NO
        ),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def settings_of_groups(
    changes: Sequence[Change], version: int, leaves: Sequence[Disk]
) -> dict[Change, list[CgroupSetting]]:
    """The writes of each change of a control group.

    Raises:
        UsageError: for an invalid group or attribute.
    """
    return {
        change: wanted_settings(version, {change.group: {change.attribute: change.value}}, (), leaves)
        for change in changes
        if isinstance(change, GroupChange)
    }


@dataclass
class HostChanges:
    """The changes of one run, made one after the other."""

    conditions: Conditions
    settings: QueueSettings
    choice: SchedulerChoice
    """The scheduler in force at first."""
    groups: RunCgroups | None
    group_settings: dict[Change, list[CgroupSetting]]
    made: list[ChangeSample] = field(default_factory=list)
    start_ns: int = 0
    """The start of the load, in Unix time."""
    error: str | None = None
    """The reason why the run is of no use, if it is."""
    in_force: dict[str, str] = field(default_factory=dict)
    """The queues' settings after the last change."""
    _of_groups: MadeChanges = field(default_factory=MadeChanges)
    _of_queue: dict[str, str] = field(default_factory=dict)
    """Attributes of the queue that have changed."""

    def beneath(self, process: LoadProcess, folder: Path, workload: Workload) -> None:
        """Makes all changes at their moments, while a load runs.

        Raises:
            BlklabError: if the kernel refuses one.
        """
        self.in_force = self.settings.read()
        start_ns = await_load(process, folder, workload)
        if start_ns is None:
            return
        self.start_ns = start_ns
        for change in self.conditions.changes:
            if not self._sleep_until(change.at_ns, process):
                self.error = never_made(change, self._now_ns())
                return
            if self.error is not None or self._was_disturbed():
                return
            begun_ns = self._now_ns()
            if isinstance(change, PriorityChange):
                try:
                    JobPriority(change, _start_files_of(change.job, workload), process, folder).make()
                except _JobGoneError as error:
                    self.error = error.message
            else:
                self._make(change)
            self.in_force = self.settings.read()
            self.made.append(
                ChangeSample(
                    change=change.canonical,
                    planned_ns=change.at_ns,
                    begun_ns=begun_ns,
                    made_ns=self._now_ns(),
                )
            )

    def try_all(self) -> None:
        """Makes all changes but those of jobs, without a load, and undoes those of control groups.

        Raises:
            BlklabError: if the kernel refuses one.
        """
        try:
            for change in self.conditions.changes:
                if not isinstance(change, PriorityChange):
                    self._make(change)
        finally:
            self.undo_groups()

    def undo_groups(self) -> None:
        """Brings the control groups back to their state before the run; queues are set for the next run."""
        self._of_groups.take_back()

    def warnings(self) -> list[str]:
        """The changes that came late."""
        return [
            f"the change {made.change!r} came {format_duration(made.begun_ns - made.planned_ns)} late"
            for made in self.made
            if made.begun_ns - made.planned_ns > _LATE_NS
        ]

    def disturbed(self) -> list[str]:
        """Settings that another program has changed since the last change."""
        return self.settings.changed_since(self.in_force)

    def _was_disturbed(self) -> bool:
        changed = self.disturbed()
        if changed:
            self.error = f"another program changed settings during the run: {', '.join(changed)}"
        return bool(changed)

    def _make(self, change: Change) -> None:
        if isinstance(change, SchedulerChange):
            tunables = self._of_queue | change.tunables
            choice = SchedulerChoice(name=change.scheduler, tunables=tunables, label=change.scheduler)
            self.settings.apply(choice)
        elif isinstance(change, QueueChange):
            self.settings.change(change.name, change.value)
            self._of_queue[change.name] = change.value
        elif isinstance(change, TunableChange):
            self.settings.change(f"{TUNABLE_PREFIX}{change.name}", change.value)
        elif self.groups is not None:
            self._of_groups.make(self.groups.writes(self.group_settings[change]))

    def _now_ns(self) -> int:
        """Time since the start of the load."""
        return time.time_ns() - self.start_ns

    def _sleep_until(self, at_ns: int, process: LoadProcess) -> bool:
        """Waits for a moment of the load; False if it ends before."""
        while (left_ns := at_ns - self._now_ns()) > 0:
            if not process.running:
                return False
            time.sleep(min(left_ns, NS_PER_SECOND // 4) / NS_PER_SECOND)
        return process.running


class _JobGoneError(RunFailedError):
    """A job whose priority was to change has no process."""


@dataclass(frozen=True)
class JobPriority(HostChange):
    """The I/O priority of a job's processes; it ends with them."""

    change: PriorityChange
    files: Sequence[str]
    """The files that the job's processes leave their numbers in."""
    process: LoadProcess | None = None
    """The load; None in a dry run."""
    folder: Path = Path()
    """The load's."""

    def make(self) -> None:
        """Changes it.

        Raises:
            RunFailedError: if the job has no process, or the kernel keeps another priority.
        """
        numbers = [
            int(number)
            for path in (self.folder / name for name in self.files)
            if path.exists()
            for number in path.read_text().split()
        ]
        first = None if self.process is None else self.process.program
        found = [] if first is None else processes_by_inner_number(first, numbers)
        changed = [set_io_priority(one, self.change.io_class, self.change.level) for one in found]
        if not any(changed):
            state = "has ended" if numbers else "has not begun"
            raise _JobGoneError(f"the change {self.change.canonical!r}: job {self.change.job} {state}")

    def shell(self) -> list[str]:
        """The ``ionice``."""
        number = {"rt": 1, "be": 2, "idle": 3}[self.change.io_class]
        level = "" if self.change.io_class == "idle" else f" -n {self.change.level}"
        return [f"ionice -c {number}{level} -p $(cat {' '.join(self.files)})"]


def _start_files_of(name: str, workload: Workload) -> list[str]:
    """The files that a job's clones create; several sections may have one name."""
    pairs = zip(workload.jobs, start_files(workload), strict=True)
    return [file for job, files in pairs if job.name == name for file in files]


def phase_samples(
    run: HostChanges, jobs: Sequence[JobSample], workload: Workload, folder: Path, runtime_ns: int | None
) -> list[PhaseSample]:
    """The parts of a run between its changes, from fio's histogram logs.

    A phase begins when the change before is in force, and ends a window before the next one: a window that a
    change falls into would mix two phases. Latencies are those of completion.

    Args:
        run: Its changes.
        jobs: fio's report on the whole run, which tells the size of I/Os.
        workload: The load.
        folder: fio's working directory.
        runtime_ns: Replaces the runtime of time-based jobs.

    Raises:
        RunFailedError: if a log cannot be read.
    """
    length_ns = expected_runtime_ns(workload, runtime_ns)
    if length_ns is None:
        raise RunFailedError(f"{workload.name} has no known length")
    logs = read_logs(workload, folder)
    window_ns = phase_window_ms(workload, runtime_ns) * NS_PER_MS
    focus = [
        log
        for job, clones in zip(jobs, logs, strict=True)
        if job.name in workload.focus
        for clone in clones
        for log in clone
    ]
    begins_ns = max(ramp_time_ns(job, runtime_ns) for job in workload.jobs)
    samples = []
    for from_ns, to_ns in _edges(run.made, begins_ns, length_ns, window_ns):
        first_ns, last_ns = run.start_ns + from_ns, run.start_ns + to_ns
        windows = np.arange(first_ns, last_ns + 1, window_ns, dtype=np.int64)
        samples.append(
            PhaseSample(
                from_ns=from_ns,
                to_ns=to_ns,
                jobs=[
                    job_between(job, clones, first_ns, last_ns)
                    for job, clones in zip(jobs, logs, strict=True)
                ],
                window_ns=window_ns,
                ios=[round(float(ios), 1) for ios in total_ios(focus, windows)],
            )
        )
    return samples


def _edges(
    made: Sequence[ChangeSample], begins_ns: int, ends_ns: int, window_ns: int
) -> list[tuple[int, int]]:
    """Beginnings and ends of the phases; changes that were planned for one moment begin one phase."""
    by_moment: dict[int, list[ChangeSample]] = {}
    for one in made:
        by_moment.setdefault(one.planned_ns, []).append(one)
    starts, ends = [begins_ns], []
    for group in by_moment.values():
        if group[0].begun_ns <= begins_ns:
            starts[-1] = max(begins_ns, group[-1].made_ns)
            continue
        ends.append(group[0].begun_ns - window_ns)
        starts.append(group[-1].made_ns)
    ends.append(ends_ns - window_ns)
    return [(start, end) for start, end in zip(starts, ends, strict=True) if end - start >= window_ns]


def change_commands(run: HostChanges, workload: Workload, offered: Sequence[str]) -> list[str]:
    """The changes as shell commands behind a fio in the background."""
    lines: list[str] = []
    now_ns = 0
    of_queue: dict[str, str] = {}
    under_cost = cost_is_enabled(run.choice.groups_over(run.conditions.cgroups))
    for change in run.conditions.changes:
        if change.at_ns > now_ns:
            lines.append(f"sleep {(change.at_ns - now_ns) / NS_PER_SECOND:g}")
            now_ns = change.at_ns
        if isinstance(change, SchedulerChange):
            tunables = of_queue | change.tunables
            choice = SchedulerChoice(name=change.scheduler, tunables=tunables, label=change.scheduler)
            lines += run.settings.commands(choice, offered, under_cost=under_cost)
        elif isinstance(change, QueueChange):
            of_queue[change.name] = change.value
            lines += shell_of(run.settings.writes(change.name, change.value))
        elif isinstance(change, TunableChange):
            lines += shell_of(run.settings.writes(f"{TUNABLE_PREFIX}{change.name}", change.value))
        elif isinstance(change, PriorityChange):
            lines += JobPriority(change, _start_files_of(change.job, workload)).shell()
        elif run.groups is not None:
            lines += shell_of(run.groups.writes(run.group_settings[change]))
            if (change.group, change.attribute) == (ROOT_GROUP, COST_CONTROL):
                enable = words_of(change.value).get("enable")
                under_cost = under_cost if enable is None else enable == "1"
    return lines


def await_command(workload: Workload) -> str:
    """The shell command that waits until fio's jobs have begun."""
    first = next(iter(start_files(workload)[0]), STARTED)
    return f"until [ -s {first} ]; do sleep 0.01; done"
