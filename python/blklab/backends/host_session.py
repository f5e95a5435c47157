"""Sessions of the host backend: checks, preparation, runs."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

from blklab.backends.changeable import check_changes
from blklab.backends.failed_slots import failed_stretch
from blklab.backends.group_choices import change_groups, check_group_choices, unswitchable_choices
from blklab.backends.host_changes import (
    HostChanges,
    await_command,
    change_commands,
    check_jobs,
    phase_samples,
    phase_window_ms,
    settings_of_groups,
)
from blklab.backends.host_commands import CommandRuns
from blklab.backends.host_modules import HostModules
from blklab.backends.host_modules import module_commands as own_module_commands
from blklab.backends.host_replays import HostReplays
from blklab.backends.host_stretch import load_ns, slot_samples, stretch_window_ms, take_turns
from blklab.backends.host_warnings import (
    warnings_on_disks,
    warnings_on_encryption,
    warnings_on_priorities,
    warnings_on_weights,
)
from blklab.backends.protocol import SessionOptions
from blklab.backends.switchable import unswitchable_workload
from blklab.errors import DeviceVanishedError
from blklab.linux.cgroups.choice_settings import ChoiceSettings
from blklab.linux.cgroups.hierarchy import find_hierarchy, offered_attributes
from blklab.linux.cgroups.run_cgroups import RunCgroups
from blklab.linux.cgroups.settings import CgroupSetting, group_names, wanted_settings
from blklab.linux.disks.disk import Disk, read_disk
from blklab.linux.disks.zones import check_order, check_zoned_writes, zones_of_node
from blklab.linux.journal.journal import Journal
from blklab.linux.journal.module_loading import attributes_of_modules, load_modules, module_commands
from blklab.linux.load.fio import (
    JOB_FILE,
    Fio,
    check_job_file,
    expected_runtime_ns,
    job_file_text,
    read_report,
    run_fio,
    started_fio,
)
from blklab.linux.load.fio_logs import has_logs, keep_logs
from blklab.linux.load.fio_output import FioReport
from blklab.linux.load.hdparm import Hdparm, run_hdparm
from blklab.linux.load.numa import numa_warnings
from blklab.linux.load.replay import check_replay
from blklab.linux.machine.monitor import MachineMonitor
from blklab.linux.machine.writeback import WritebackSettings, writeback_in_force
from blklab.linux.queue import grace_periods
from blklab.linux.queue.grace_periods import GracePeriods
from blklab.linux.queue.schedulers import unavailable_scheduler
from blklab.linux.queue.settings import QueueSettings, settings_of_disk
from blklab.linux.queue.snapshot import restore_snapshot
from blklab.linux.scratch import page_cache
from blklab.linux.scratch.command_space import CommandSpace, loads_beside
from blklab.linux.scratch.precondition import (
    check_precondition,
    files_to_overwrite,
    precondition,
    precondition_job,
)
from blklab.linux.scratch.run_folder import RunFolder
from blklab.linux.scratch.space import Announce, ScratchSpace
from blklab.records.machine_events import MachineEvents
from blklab.records.ramps import ended_in_ramp
from blklab.records.run_files import run_files_folder
from blklab.records.samples import NS_PER_SECOND, PhaseSample, RunSample, TargetDescription
from blklab.records.starvation import starvation_in
from blklab.spec.changes import GroupChange, SchedulerChange
from blklab.spec.group_settings import cost_is_enabled, group_settings
from blklab.spec.plan import Cell
from blklab.spec.schedulers import SchedulerChoice
from blklab.spec.stretches import Stretch
from blklab.spec.workloads import Workload, notes_on

_LEAST_JUDGED_BYTES = 1 << 20
"""I/O of a command from which on that of other programs is judged in proportion to it."""
_UNSAFE_IN_NAMES = re.compile(r"[^A-Za-z0-9_.=@:-]")


class HostSession:
    """See `blklab.backends.protocol.Session`."""

    def __init__(
        self,
        target: TargetDescription,
        leaves: Sequence[Disk],
        space: ScratchSpace,
        options: SessionOptions,
        *,
        fio: Fio,
        hdparm: Hdparm | None,
        journal: Journal | None,
        run_folder: RunFolder,
        watched: Sequence[Disk] | None = None,
    ) -> None:
        """Only stores its arguments; the backend has opened everything.

        Args:
            target: The target as found.
            leaves: The disks whose queues are set.
            space: The scratch space or device that the load works on.
            options: Options of all runs.
            fio: The load generator.
            hdparm: The load generator for workloads that are its tests; None if it is not installed.
            journal: Records every change; None for a dry run.
            run_folder: The run's own directory, fio's working directory.
            watched: The disks that serve the I/O, if they are not the leaves.
        """
        self._target = target
        self._leaves = leaves
        self._space = space
        self._options = options
        self._fio = fio
        self._hdparm = hdparm
        self._journal_or_none = journal
        self._settings = QueueSettings(leaves, options.queue)
        self._grace_periods = GracePeriods()
        self._modules = HostModules()
        self._groups: RunCgroups | None = None
        self._group_settings: list[CgroupSetting] = []
        self._choice_settings: ChoiceSettings | None = None
        self._writeback = WritebackSettings()
        self._unswitchable_choices: str | None = None
        """The reason why the choices that were checked cannot take turns within a load, if there is one."""
        self._run_folder = run_folder
        self._preconditioned = False
        self._command_runs = CommandRuns(CommandSpace(space, run_folder), fio, self._group_joins)
        self._replays = HostReplays(space, leaves, self._group_files)
        self._disks = [disk.sys_path for disk in (leaves if watched is None else watched)]
        self._monitor = MachineMonitor(self._disks)

    @property
    def target(self) -> TargetDescription:
        """The target as found."""
        return self._target

    @property
    def parallel(self) -> int:
        """One: runs share the disk."""
        return 1

    def unswitchable(self, workload: Workload) -> str | None:
        """Refuses loads in which schedulers leave traces for one another, and targets without a scheduler."""
        # As described, since in a dry run the loop device may not exist yet.
        if not all(disk.schedulers for disk in self._target.disks):
            return "a disk of the target has no scheduler to switch"
        if self._unswitchable_choices is not None:
            return self._unswitchable_choices
        return unswitchable_workload(workload, self._options)

    def run_stretch(self, stretch: Stretch) -> list[RunSample]:
        """Drops the page cache, starts the load, switches beneath it, reads its logs."""
        started_at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        self._check_disks()
        self._settings.apply(stretch.slots[0].scheduler)
        page_cache.drop_page_cache()
        folder, runtime_ns = self._run_folder.ready(), load_ns(stretch)
        text = self._job_file(stretch.workload, seed=stretch.seed, stretch_ns=runtime_ns)
        engine = {"name": "fio", "version": self._fio.version}
        with (
            self._grace_periods.shortened(self._journal),
            self._monitor.monitoring(runtime_ns),
            started_fio(
                self._fio, text, folder, read_only=self._space.read_only, runtime_ns=runtime_ns
            ) as process,
        ):
            turns, end_ns = take_turns(stretch, self._settings, process, folder)
            report = read_report(folder, process.wait(), stretch.workload)
        self._check_disks()
        error = report.error
        if error is None and len(turns) < len(stretch.slots):
            error = "fio ended before the last slot"
        if error is not None:
            error = self._with_trouble(error)
            return failed_stretch(stretch, error, started_at=started_at, engine=engine)
        return slot_samples(
            stretch,
            turns,
            end_ns,
            report.jobs,
            folder,
            engine=engine,
            events=self._monitor.events,
            group_settings=self._settings_of_groups(),
        )

    def stop(self) -> None:
        """Does nothing: no other thread has runs."""

    def close(self) -> None:
        """Ends the watch on modules."""
        self._modules.close()

    @property
    def _journal(self) -> Journal:
        if self._journal_or_none is None:
            raise RuntimeError("a dry run changes nothing")
        return self._journal_or_none

    def tunable_defaults(self, choice: SchedulerChoice) -> Mapping[str, str] | None:
        """Switches to the scheduler briefly, reads its tunables and the queue's, and restores the queues."""
        if self._journal_or_none is None:
            return None
        load_modules([choice.name], (), self._journal)
        self._modules.load([choice], self._journal)
        try:
            settings = self._settings.apply(choice.model_copy(update={"tunables": {}}))
        finally:
            self._restore_queues()
        return settings_of_disk(settings, self._leaves[0].name) | writeback_in_force()

    def group_attributes(self) -> frozenset[str]:
        """Those of the mounted hierarchy with the I/O controller, with those of modules not yet loaded."""
        return offered_attributes(find_hierarchy()) | attributes_of_modules(find_hierarchy().version)

    def check(self, choices: Sequence[SchedulerChoice], workloads: Sequence[Workload]) -> list[str]:
        """Tries every job file, control group, scheduler and setting once, and restores the queues."""
        self._check_order_of_writes(choices, workloads)
        warnings = self._command_runs.check(
            workloads, self._run_folder.ready(), precondition=self._options.precondition
        )
        self._check_changes(choices, workloads)
        check_group_choices(self._options, choices, workloads)
        self._unswitchable_choices = unswitchable_choices(choices)
        self._space.check(self._fio_loads(workloads))
        if self._options.precondition:
            check_precondition(self._space, self._target.details)
        for workload in _job_files(workloads):
            if workload.replays:
                check_replay(workload)
                continue
            text = self._job_file(workload, seed=0)
            check_job_file(self._fio, workload, text, self._run_folder.ready())
        # Before the groups: bfq's module brings files of theirs.
        load_modules((choice.name for choice in choices), self._wanted_attributes(choices), self._journal)
        warnings += self._modules.load(choices, self._journal)
        self._create_groups([*_job_files(workloads), *loads_beside(workloads)], choices)
        try:
            self._settings.learn(choices)
            self._writeback.protect(choices, self._journal)
            for choice in choices:
                self._apply_groups(choice)
                self._writeback.apply(choice)
                self._settings.apply(choice)
                if self._options.changes:
                    self._changes(choice).try_all()
                    self._restore_queues()
        finally:
            # In this order: io.cost holds settings of the queue while it is on.
            if self._choice_settings is not None:
                self._choice_settings.undo()
            self._writeback.undo()
            self._restore_queues()
        loads = [*_job_files(workloads), *loads_beside(workloads)]
        warnings += self._settings.notes()
        return [*notes_on(loads), *numa_warnings(loads), *self._warnings(choices, loads), *warnings]

    def _check_changes(self, choices: Sequence[SchedulerChoice], workloads: Sequence[Workload]) -> None:
        """Refuses planned changes that would not happen; the kernel judges their values later."""
        check_changes(
            self._options,
            choices,
            workloads,
            lambda workload: expected_runtime_ns(workload, self._options.runtime_ns),
        )
        for workload in workloads:
            check_jobs(self._options.changes, workload)

    def _check_order_of_writes(
        self, choices: Sequence[SchedulerChoice], workloads: Sequence[Workload]
    ) -> None:
        """Refuses schedulers that reorder writes to zoned disks.

        A file system writes its metadata whatever the load does.
        """
        commands = any(workload.command is not None for workload in workloads)
        writes = self._space.folder is not None or commands or any(one.writes for one in workloads)
        planned = [one.scheduler for one in self._options.changes if isinstance(one, SchedulerChange)]
        device = self._space.device
        zones = None if device is None else zones_of_node(device)
        if device is not None and zones is not None:
            for workload in workloads:
                check_zoned_writes(workload, zones, device)
        for leaf in self._leaves:
            check_order(leaf, [*(choice.name for choice in choices), *planned], writes=writes)

    def _restore_queues(self) -> None:
        """Restores the queues; what io.cost holds while it is on, the journal restores at the end."""
        for leaf in self._leaves:
            wanted = self._journal.protect_queue(leaf)
            restore_snapshot(leaf, wanted, held=self._settings.held(leaf))

    def _wanted_attributes(self, choices: Sequence[SchedulerChoice]) -> set[str]:
        """The attributes of control groups that the conditions, their changes or choices bring."""
        return {
            *(attribute for group in self._options.cgroups.values() for attribute in group),
            *(one.attribute for one in self._options.changes if isinstance(one, GroupChange)),
            *(place.attribute for choice in choices for place in group_settings(choice.of_groups)),
        }

    def prepare(self, workloads: Sequence[Workload], announce: Announce) -> None:
        """Lays out the test files, preconditions them once if requested, and sets commands up."""
        self._create_groups([*_job_files(workloads), *loads_beside(workloads)])
        if len(_job_files(workloads)) == len(workloads) or self._space.folder is not None:
            self._space.prepare(self._fio_loads(workloads), announce)
        if self._options.precondition and not self._preconditioned:
            folder = self._run_folder.ready()
            files = files_to_overwrite(self._space, workloads)
            announce(f"preconditioning: overwriting {self._target.target} at random")
            announce(precondition(self._fio, files, folder=self._data_folder, work_folder=folder))
            self._preconditioned = True
        if len(_job_files(workloads)) < len(workloads):
            self._run_folder.ready()
            self._command_runs.prepare(workloads, self._journal, announce)
        replays = [workload for workload in workloads if workload.replays]
        if replays:
            self._replays.prepare(replays[0], self._run_folder.ready(), announce)
        self._check_disks()

    def _fio_loads(self, workloads: Sequence[Workload]) -> list[Workload]:
        """The loads of fio that work on scratch space itself."""
        beside = [] if self._space.folder is None else loads_beside(workloads)
        return [*_job_files(workloads), *beside]

    def run(self, cell: Cell) -> RunSample:
        """Sets the scheduler, runs the load or the command, reads its report."""
        started_at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        started_ns = time.monotonic_ns()
        self._check_disks()
        changes = self._changes(cell.scheduler) if self._options.changes else None
        if changes is not None:
            # The run before has left its last settings.
            self._restore_queues()
        self._apply_groups(cell.scheduler)
        settings = self._settings.apply(cell.scheduler)
        self._writeback.apply(cell.scheduler)
        of_writeback = self._writeback.read()
        of_groups = self._settings_of_groups()
        self._monitor.events = None
        is_command = cell.workload.command is not None
        report, engine = self._run_command(cell) if is_command else self._run_jobs(cell, changes)
        self._check_disks()
        error = report.error
        logs = self._keep_logs(cell, self._run_folder.ready())
        if changes is None:
            of_groups = self._settings_of_groups()
            changed = self._settings.changed_since(settings)
        else:
            error = error or changes.error
            changed = changes.disturbed()
            logs += changes.warnings()
            changes.undo_groups()
        changed += self._writeback.changed_since(of_writeback)
        if error is None and changed:
            error = f"another program changed settings during the run: {', '.join(changed)}"
        if error is not None:
            error = self._with_trouble(error)
        settings |= of_groups | of_writeback
        return RunSample(
            cell=cell.key,
            status="ok" if error is None else "failed",
            error=error,
            started_at=started_at,
            elapsed_ns=time.monotonic_ns() - started_ns,
            jobs=report.jobs if error is None else [],
            settings=settings,
            engine=engine,
            warnings=[
                *report.warnings,
                *logs,
                *ended_in_ramp(cell.workload, report.jobs),
                *starvation_in(cell.workload, report.jobs),
            ],
            events=self._events_of(cell.workload),
            changes=[] if changes is None else changes.made,
            phases=[] if changes is None or error is not None else self._phases(changes, report, cell),
        )

    def _phases(self, changes: HostChanges, report: FioReport, cell: Cell) -> list[PhaseSample]:
        folder = self._run_folder.ready()
        return phase_samples(changes, report.jobs, cell.workload, folder, self._options.runtime_ns)

    def _changes(self, choice: SchedulerChoice) -> HostChanges:
        """The planned changes of a run."""
        of_groups = {}
        groups = self._groups
        if any(isinstance(change, GroupChange) for change in self._options.changes):
            hierarchy = find_hierarchy()
            groups = groups or RunCgroups(hierarchy, self._options.run_id)
            of_groups = settings_of_groups(self._options.changes, hierarchy.version, self._leaves)
        return HostChanges(self._options.changes, self._settings, choice, groups, of_groups)

    def _with_trouble(self, error: str) -> str:
        """The error of a run, with what the kernel's log says about the disks."""
        trouble = None if self._monitor.events is None else self._monitor.events.trouble
        return error if trouble is None else f"{error}; the kernel's log: {trouble}"

    def _events_of(self, workload: Workload) -> MachineEvents | None:
        """Events during the last run, without its traffic if that cannot be judged.

        While a load runs beside a command, its I/O cannot be told from that of others; and in proportion to
        the I/O of a command that hardly does any, everything is much.
        """
        events = self._monitor.events
        if events is None or events.traffic is None or workload.command is None:
            return events
        own_bytes = events.traffic.own_read_bytes + events.traffic.own_written_bytes
        if workload.beside is None and own_bytes >= _LEAST_JUDGED_BYTES:
            return events
        return events.model_copy(update={"traffic": None})

    def _run_jobs(self, cell: Cell, changes: HostChanges | None) -> tuple[FioReport, dict[str, str]]:
        """Drops the page cache and runs fio, hdparm or a replay; returns its report and its name."""
        page_cache.drop_page_cache()
        self._command_runs.cache_dropped()
        folder = self._run_folder.ready()
        with self._monitor.monitoring(self._asked_ns(cell.workload)):
            return self._load(cell, folder, changes)

    def _asked_ns(self, workload: Workload) -> int | None:
        """The length that a load is to have; None if its I/Os decide."""
        if workload.replays or self._hdparm_test(workload) is not None:
            return None
        return expected_runtime_ns(workload, self._options.runtime_ns)

    def _load(
        self, cell: Cell, folder: Path, changes: HostChanges | None
    ) -> tuple[FioReport, dict[str, str]]:
        workload = cell.workload
        if (tested := self._hdparm_test(workload)) is not None:
            hdparm, device = tested
            report = run_hdparm(hdparm, workload, device, folder)
            return report, {"name": workload.tool, "version": hdparm.version}
        if workload.replays:
            return self._replays.run(workload, folder)
        report = run_fio(
            self._fio,
            workload,
            self._job_file(workload, seed=cell.key.seed),
            folder,
            read_only=self._space.read_only,
            runtime_ns=self._options.runtime_ns,
            meanwhile=(
                None if changes is None else lambda process: changes.beneath(process, folder, workload)
            ),
        )
        return report, {"name": "fio", "version": self._fio.version}

    def _run_command(self, cell: Cell) -> tuple[FioReport, dict[str, str]]:
        """Runs a command; returns its report and facts on its run."""
        report = self._command_runs.run(
            cell.workload,
            seed=cell.key.seed,
            folder=self._run_folder.ready(),
            monitoring=self._monitor.monitoring,
        )
        return report, self._command_runs.engine(cell.workload)

    def _keep_logs(self, cell: Cell, folder: Path) -> list[str]:
        """Keeps the logs that the job file asks for; says where they are."""
        if not has_logs(cell.workload):
            return []
        name = _UNSAFE_IN_NAMES.sub("-", f"{cell.key.sequence}-{cell.key.workload}-{cell.key.scheduler}")
        kept = run_files_folder(self._options.run_id) / name
        names = keep_logs(folder, cell.workload, kept)
        return [f"fio's logs are in {kept}: {', '.join(names)}"] if names else []

    def commands(self, cell: Cell) -> list[str]:
        """All steps from laying out files to the load; `run` skips settings that are in effect already."""
        self._check_changes([cell.scheduler], [cell.workload])
        if cell.workload.command is not None:
            return [
                *self._commands_before_load(cell.workload, cell.scheduler),
                *self._command_runs.commands(cell.workload, seed=cell.key.seed),
            ]
        lines = self._commands_before_load(cell.workload, cell.scheduler)
        tested = self._hdparm_test(cell.workload)
        if tested is not None:
            hdparm, device = tested
            return [*lines, shlex.join(hdparm.command(cell.workload.tool, device))]
        if cell.workload.replays:
            folder = self._run_folder.path
            return [*lines, *self._replays.commands(cell.workload, folder)]
        text = self._job_file(cell.workload, seed=cell.key.seed)
        lines.append(f"cat > {JOB_FILE} <<'END'\n{text}END")
        command = shlex.join(self._fio.command(read_only=self._space.read_only))
        if not self._options.changes:
            return [*lines, command]
        changes = change_commands(self._changes(cell.scheduler), cell.workload, self._target.schedulers)
        return [*lines, f"{command} &", await_command(cell.workload), *changes, "wait"]

    def stretch_commands(self, stretch: Stretch) -> list[str]:
        """All steps from laying out files to the last switch beneath fio."""
        lines = self._commands_before_load(stretch.workload, stretch.slots[0].scheduler)
        text = self._job_file(stretch.workload, seed=stretch.seed, stretch_ns=load_ns(stretch))
        lines.append(f"cat > {JOB_FILE} <<'END'\n{text}END")
        lines.append(f"{shlex.join(self._fio.command(read_only=self._space.read_only))} &")
        turns = []
        for slot in stretch.slots:
            turns += self._settings.commands(slot.scheduler, self._target.schedulers)
            turns.append(f"sleep {stretch.slot_ns / NS_PER_SECOND:g}")
        return [*lines, *grace_periods.commands([*turns, "wait"])]

    def _commands_before_load(self, workload: Workload, choice: SchedulerChoice) -> list[str]:
        if choice.kernel is None and choice.name not in self._target.schedulers:
            raise unavailable_scheduler(self._target.target, choice.name, self._target.schedulers)
        loads = self._fio_loads([workload])
        lines = module_commands([choice.name], self._wanted_attributes([choice]))
        lines += own_module_commands(choice)
        lines += self._space.commands(loads)
        names = group_names(self._options.cgroups, loads)
        if names or self._options.cgroups or choice.of_groups:
            hierarchy = find_hierarchy()
            groups = RunCgroups(hierarchy, self._options.run_id)
            settings = choice.groups_over(self._options.cgroups)
            wanted = wanted_settings(hierarchy.version, settings, loads, self._leaves)
            lines += groups.commands(names, wanted)
        lines += self._settings.commands(choice, self._target.schedulers)
        lines += self._writeback.commands(choice)
        if cost_is_enabled(choice.groups_over(self._options.cgroups)):
            lines += self._settings.renewal_commands()
        if workload.command is None:
            lines += page_cache.commands()
        folder = self._run_folder.path
        lines += [f"mkdir -p -m 700 {shlex.quote(str(folder))}", f"cd {shlex.quote(str(folder))}"]
        if self._options.precondition:
            check_precondition(self._space, self._target.details)
            files = files_to_overwrite(self._space, [workload])
            _, _, overwriting = precondition_job(files, folder=self._data_folder)
            lines.append(f"cat > {JOB_FILE} <<'END'\n{overwriting}END")
            lines.append(shlex.join(self._fio.command()))
        return lines

    def _hdparm_test(self, workload: Workload) -> tuple[Hdparm, Path] | None:
        """The program and the device, if hdparm generates this workload's load; otherwise None."""
        if not workload.tool or self._hdparm is None or self._space.device is None:
            return None
        return self._hdparm, self._space.device

    def _job_file(self, workload: Workload, *, seed: int, stretch_ns: int | None = None) -> str:
        return job_file_text(
            workload,
            self._space.regions(workload),
            seed=seed,
            runtime_ns=self._options.runtime_ns if stretch_ns is None else stretch_ns,
            group_joins=self._group_joins(workload),
            folder=self._data_folder,
            stretch_window_ms=None if stretch_ns is None else stretch_window_ms(workload),
            phase_window_ms=(
                phase_window_ms(workload, self._options.runtime_ns) if self._options.changes else None
            ),
        )

    def _group_joins(self, workload: Workload) -> dict[str, str]:
        """The files by which the jobs of a load join their control groups, quoted for the shell."""
        return {name: shlex.quote(file) for name, file in self._group_files(workload).items()}

    def _group_files(self, workload: Workload) -> dict[str, str]:
        """The file of each of the workload's control groups that takes processes."""
        names = {job.cgroup for job in workload.jobs if job.cgroup is not None}
        if not names:
            return {}
        groups = self._groups or RunCgroups(find_hierarchy(), self._options.run_id)
        return {name: str(groups.processes_file(name)) for name in sorted(names)}

    @property
    def _data_folder(self) -> str | None:
        """The test files' directory, relative to fio's working directory; None for devices."""
        folder = self._space.folder
        return None if folder is None else str(folder.relative_to(self._run_folder.path))

    def _create_groups(self, workloads: Sequence[Workload], choices: Sequence[SchedulerChoice] = ()) -> None:
        """Creates all control groups at once, on the first call with workloads that need any.

        What choices change in the root group is recorded on each call.
        """
        names = group_names(self._options.cgroups, workloads)
        changed = any(isinstance(change, GroupChange) for change in self._options.changes)
        needed = bool(names or self._options.cgroups or changed or change_groups(choices))
        if self._groups is None and needed:
            self._make_groups(names, workloads)
        if self._choice_settings is not None:
            self._choice_settings.protect(choices, self._journal)

    def _make_groups(self, names: Sequence[str], workloads: Sequence[Workload]) -> None:
        hierarchy = find_hierarchy()
        settings = wanted_settings(hierarchy.version, self._options.cgroups, workloads, self._leaves)
        groups = RunCgroups(hierarchy, self._options.run_id)
        groups.create(self._journal, names, settings)
        for later in settings_of_groups(self._options.changes, hierarchy.version, self._leaves).values():
            groups.protect_root(self._journal, later)
        self._groups, self._group_settings = groups, settings
        self._choice_settings = ChoiceSettings(groups, self._options.cgroups, self._leaves)

    def _apply_groups(self, choice: SchedulerChoice) -> None:
        """Makes the settings of control groups that a choice brings."""
        if self._choice_settings is not None:
            self._choice_settings.apply(choice)

    def _settings_of_groups(self) -> dict[str, str]:
        """The settings of control groups as read back; empty if there are none."""
        if self._groups is None or self._choice_settings is None:
            return {}
        return self._groups.read_back([*self._group_settings, *self._choice_settings.in_force])

    def _check_disks(self) -> None:
        """Makes sure that every leaf is still the same disk, and that the kernel reported no mistake."""
        self._modules.check()
        for leaf in self._leaves:
            now = read_disk(leaf.sys_path, node=leaf.dev_path)
            same = (now.device_number, now.serial, now.wwid) == (leaf.device_number, leaf.serial, leaf.wwid)
            if not now.size_bytes or not same or now.diskseq != leaf.diskseq:
                raise DeviceVanishedError(
                    f"the disk {leaf.name} vanished during the experiment",
                    hint="earlier measurements are kept; the kernel's log (dmesg) may give the reason",
                )

    def _warnings(self, choices: Sequence[SchedulerChoice], workloads: Sequence[Workload]) -> list[str]:
        settings = self._group_settings
        warnings = warnings_on_disks(self._disks)
        warnings += warnings_on_weights(self._options, settings, choices)
        for workload in workloads:
            if workload.tool and self._hdparm_test(workload) is None:
                reason = "is not installed" if self._hdparm is None else "tests devices, not files"
                warnings.append(f"{workload.name}: hdparm {reason}; fio jobs emulate {workload.tool} instead")
            warnings += warnings_on_priorities(self._options, choices, workload)
        stack = self._target.details.get("stack", "")
        return warnings + warnings_on_encryption(
            self._options, settings, choices, workloads, disks=self._disks, stack=stack
        )


def _job_files(workloads: Sequence[Workload]) -> list[Workload]:
    return [workload for workload in workloads if workload.command is None]
