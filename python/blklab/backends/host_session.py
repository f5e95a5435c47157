"""Sessions of the host backend: checks, preparation, runs."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone

from blklab.backends.failed_slots import failed_stretch
from blklab.backends.group_choices import check_group_choices
from blklab.backends.host_changes import (
    HostChanges,
    check_changes_here,
    phase_samples,
)
from blklab.backends.host_groups import HostGroups
from blklab.backends.host_load import LoadContext
from blklab.backends.host_loads import HostLoads
from blklab.backends.host_modules import HostModules
from blklab.backends.host_modules import module_commands as own_module_commands
from blklab.backends.host_stretch import load_ns, slot_samples, take_turns
from blklab.backends.host_warnings import (
    warnings_on_disks,
    warnings_on_encryption,
    warnings_on_priorities,
    warnings_on_weights,
)
from blklab.backends.protocol import SessionOptions
from blklab.errors import DeviceVanishedError
from blklab.linux.cgroups.hierarchy import find_hierarchy, offered_attributes
from blklab.linux.disks.disk import Disk, read_disk
from blklab.linux.disks.zones import check_zones
from blklab.linux.journal.journal import Journal
from blklab.linux.journal.module_loading import attributes_of_modules, load_modules, module_changes
from blklab.linux.load.fio import (
    JOB_FILE,
    Fio,
    read_report,
)
from blklab.linux.load.hdparm import Hdparm
from blklab.linux.load.lost_disks import loads_end_with_their_disks
from blklab.linux.load.numa import numa_warnings
from blklab.linux.load.precondition import (
    check_precondition,
    files_to_overwrite,
    precondition,
    precondition_job,
)
from blklab.linux.machine.host_change import shell_of
from blklab.linux.machine.monitor import MachineMonitor
from blklab.linux.machine.writeback import WritebackSettings, writeback_in_force
from blklab.linux.queue import grace_periods
from blklab.linux.queue.grace_periods import GracePeriods
from blklab.linux.queue.schedulers import unavailable_scheduler
from blklab.linux.queue.settings import QueueSettings, settings_of_disk
from blklab.linux.queue.snapshot import restore_snapshot
from blklab.linux.scratch.run_folder import RunFolder
from blklab.linux.scratch.space import Announce, ScratchSpace
from blklab.quantities.units import NS_PER_SECOND
from blklab.records.ramps import ended_in_ramp
from blklab.records.samples import RunSample, TargetDescription
from blklab.records.starvation import starvation_in
from blklab.spec.changes import SchedulerChange
from blklab.spec.group_settings import cost_is_enabled
from blklab.spec.permits import require_runs, why_not_switched
from blklab.spec.plan import Cell
from blklab.spec.schedulers import SchedulerChoice
from blklab.spec.stretches import Stretch
from blklab.spec.workloads import Workload, notes_on


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
        self._journal_or_none = journal
        self._settings = QueueSettings(leaves, options.queue)
        self._grace_periods = GracePeriods()
        self._modules = HostModules()
        self._groups = HostGroups(options, leaves)
        self._writeback = WritebackSettings()
        self._choices: Sequence[SchedulerChoice] = ()
        """The schedulers that were checked."""
        self._run_folder = run_folder
        self._preconditioned = False
        self._disks = [disk.sys_path for disk in (leaves if watched is None else watched)]
        self._monitor = MachineMonitor(self._disks)
        self._context = LoadContext(
            space, leaves, options, run_folder, self._groups, self._monitor, offered=target.schedulers
        )
        self._loads = HostLoads(self._context, fio, hdparm)

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
        return why_not_switched(workload, self._target.backend, self._options, self._choices)

    def run_stretch(self, stretch: Stretch) -> list[RunSample]:
        """Drops the page cache, starts the load, switches beneath it, reads its logs."""
        started_at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        self._check_disks()
        self._settings.apply(stretch.slots[0].scheduler)
        self._context.drop_page_cache()
        folder, engine = self._run_folder.ready(), self._loads.fio.engine
        with (
            self._modules.blamed(),
            self._grace_periods.shortened(self._journal),
            self._monitor.monitoring(load_ns(stretch)),
            loads_end_with_their_disks(self._disks),
            self._loads.fio.started(stretch, folder) as process,
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
            group_settings=self._groups.read_back(),
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
        require_runs(self._target.backend, self._options, workloads, self._target.target)
        planned = [one.scheduler for one in self._options.changes if isinstance(one, SchedulerChange)]
        check_zones(
            self._leaves,
            self._space.device,
            workloads,
            [*(choice.name for choice in choices), *planned],
        )
        check_changes_here(self._options, choices, workloads)
        check_group_choices(self._options, choices, workloads)
        self._choices = choices
        self._space.check(self._loads.on_space(workloads))
        if self._options.precondition:
            check_precondition(self._space, self._target.details)
        warnings = self._loads.check(workloads)
        # Before the groups: bfq's module brings files of theirs.
        load_modules(
            (choice.name for choice in choices), self._groups.wanted_attributes(choices), self._journal
        )
        warnings += self._modules.load(choices, self._journal)
        loads = self._loads.with_jobs(workloads)
        self._groups.create(self._journal, loads, choices)
        try:
            self._settings.learn(choices)
            self._writeback.protect(choices, self._journal)
            for choice in choices:
                self._groups.apply(choice)
                self._writeback.apply(choice)
                self._settings.apply(choice)
                if self._options.changes:
                    self._changes(choice).try_all()
                    self._restore_queues()
        finally:
            # In this order: io.cost holds settings of the queue while it is on.
            self._groups.undo_choice()
            self._writeback.undo()
            self._restore_queues()
        warnings += self._settings.notes()
        return [*notes_on(loads), *numa_warnings(loads), *self._warnings(choices, loads), *warnings]

    def _restore_queues(self) -> None:
        """Restores the queues; what io.cost holds while it is on, the journal restores at the end."""
        for leaf in self._leaves:
            wanted = self._journal.protect_queue(leaf)
            restore_snapshot(leaf, wanted, held=self._settings.held(leaf))

    def prepare(self, workloads: Sequence[Workload], announce: Announce) -> None:
        """Lays out the test files, preconditions them once if requested, and sets commands up."""
        self._groups.create(self._journal, self._loads.with_jobs(workloads))
        on_space = self._loads.on_space(workloads)
        if on_space or self._space.folder is not None:
            self._space.prepare(on_space, announce)
        if self._options.precondition and not self._preconditioned:
            folder = self._run_folder.ready()
            files = files_to_overwrite(self._space, workloads)
            within, place = self._context.data_folder, self._target.target
            precondition(self._fio, files, folder=within, work_folder=folder, place=place, announce=announce)
            self._preconditioned = True
        for load, own in self._loads.by_kind(workloads):
            load.prepare(own, self._journal, announce)
        self._check_disks()

    def run(self, cell: Cell) -> RunSample:
        """Sets the scheduler, runs the load or the command, reads its report."""
        started_at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        started_ns = time.monotonic_ns()
        self._check_disks()
        changes = self._changes(cell.scheduler) if self._options.changes else None
        if changes is not None:
            # The run before has left its last settings.
            self._restore_queues()
        self._groups.apply(cell.scheduler)
        settings = self._settings.apply(cell.scheduler)
        self._writeback.apply(cell.scheduler)
        of_writeback = self._writeback.read()
        of_groups = self._groups.read_back()
        self._monitor.events = None
        load = self._loads.of(cell.workload)
        with self._modules.blamed(), loads_end_with_their_disks(self._disks):
            report, engine = load.run(cell, changes)
        self._check_disks()
        error = report.error
        late: list[str] = []
        if changes is None:
            of_groups = self._groups.read_back()
            changed = self._settings.changed_since(settings)
        else:
            error = error or changes.error
            changed = changes.disturbed()
            late = changes.warnings()
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
                *late,
                *ended_in_ramp(cell.workload, report.jobs),
                *starvation_in(cell.workload, report.jobs),
            ],
            events=load.judged(cell.workload, self._monitor.events),
            changes=[] if changes is None else changes.made,
            phases=[]
            if changes is None or error is not None
            else phase_samples(
                changes, report.jobs, cell.workload, self._run_folder.ready(), self._options.runtime_ns
            ),
        )

    def _changes(self, choice: SchedulerChoice) -> HostChanges:
        """The planned changes of a run."""
        groups, of_groups = self._groups.for_changes()
        return HostChanges(self._options, self._settings, choice, groups, of_groups)

    def _with_trouble(self, error: str) -> str:
        """The error of a run, with what the kernel's log says about the disks."""
        trouble = None if self._monitor.events is None else self._monitor.events.trouble
        return error if trouble is None else f"{error}; the kernel's log: {trouble}"

    def commands(self, cell: Cell) -> list[str]:
        """All steps from laying out files to the load; `run` skips settings that are in effect already."""
        check_changes_here(self._options, [cell.scheduler], [cell.workload])
        changes = self._changes(cell.scheduler) if self._options.changes else None
        lines = self._commands_before_load(cell.workload, cell.scheduler)
        return [*lines, *self._loads.of(cell.workload).commands(cell, changes)]

    def stretch_commands(self, stretch: Stretch) -> list[str]:
        """All steps from laying out files to the last switch beneath fio."""
        lines = self._commands_before_load(stretch.workload, stretch.slots[0].scheduler)
        lines += self._loads.fio.stretch_commands(stretch)
        turns = []
        for slot in stretch.slots:
            turns += [*self._switch_commands(slot.scheduler), f"sleep {stretch.slot_ns / NS_PER_SECOND:g}"]
        return [*lines, *grace_periods.commands([*turns, "wait"])]

    def _switch_commands(self, choice: SchedulerChoice) -> list[str]:
        under_cost = cost_is_enabled(choice.groups_over(self._options.cgroups))
        return self._settings.commands(choice, self._target.schedulers, under_cost=under_cost)

    def _commands_before_load(self, workload: Workload, choice: SchedulerChoice) -> list[str]:
        if choice.kernel is None and choice.name not in self._target.schedulers:
            raise unavailable_scheduler(self._target.target, choice.name, self._target.schedulers)
        loads = self._loads.on_space([workload])
        lines = shell_of(module_changes([choice.name], self._groups.wanted_attributes([choice]), None))
        lines += own_module_commands(choice)
        lines += [*self._space.commands(loads), *self._groups.commands(choice, loads)]
        lines += self._switch_commands(choice)
        lines += self._writeback.commands(choice)
        lines += self._loads.of(workload).cache_commands()
        folder = self._run_folder.path
        lines += [f"mkdir -p -m 700 {shlex.quote(str(folder))}", f"cd {shlex.quote(str(folder))}"]
        if self._options.precondition:
            check_precondition(self._space, self._target.details)
            files = files_to_overwrite(self._space, [workload])
            _, _, overwriting = precondition_job(files, folder=self._context.data_folder)
            lines.append(f"cat > {JOB_FILE} <<'END'\n{overwriting}END")
            lines.append(shlex.join(self._fio.command()))
        return lines

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
        settings = self._groups.settings
        warnings = warnings_on_disks(self._disks)
        warnings += warnings_on_weights(self._options, settings, choices)
        for workload in workloads:
            warnings += self._loads.of(workload).warnings(workload)
            warnings += warnings_on_priorities(self._options, choices, workload)
        stack = self._target.details.get("stack", "")
        return warnings + warnings_on_encryption(
            self._options, settings, choices, workloads, disks=self._disks, stack=stack
        )
