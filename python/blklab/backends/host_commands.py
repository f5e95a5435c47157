"""Commands under test on this machine: set-ups, the state of the page cache, the load beside them, runs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from blklab.backends.host_changes import HostChanges
from blklab.backends.host_load import HostLoad, LoadContext, Measured
from blklab.errors import RunFailedError
from blklab.linux.journal.journal import Journal
from blklab.linux.load.beside import beside_text, endless, load_beside
from blklab.linux.load.command import SHELL, check_requirements, run_command
from blklab.linux.load.fio import JOB_FILE, Fio, check_job_file
from blklab.linux.load.fio_output import FioReport
from blklab.linux.machine.host_change import KernelWrite, shell_of
from blklab.linux.machine.kernel_files import text_or_empty
from blklab.linux.processes.exit_accounting import DELAY_ACCOUNTING
from blklab.linux.scratch.command_space import CommandSpace
from blklab.linux.scratch.layout import regions_in_directory
from blklab.linux.scratch.space import Announce
from blklab.records.machine_events import MachineEvents
from blklab.spec.commands import DIRECTORY_VARIABLE, Command, in_directory
from blklab.spec.permits import Beside, require
from blklab.spec.plan import Cell
from blklab.spec.workloads import Workload

_LEAST_JUDGED_BYTES = 1 << 20
"""I/O of a command from which on that of other programs is judged in proportion to it."""


class CommandLoad(HostLoad):
    """The commands of one session. They keep their own state of the page cache."""

    def __init__(self, context: LoadContext, fio: Fio) -> None:
        """Changes nothing; fio makes the load beside them."""
        super().__init__(context)
        self._space = CommandSpace(context.space, context.run_folder)
        self._fio = fio
        self._set_up: set[str] = set()
        """Names of commands whose set-up has run."""

    def check(self, workloads: Sequence[Workload]) -> list[str]:
        """Looks for room, programs and what the load beside them needs."""
        self._space.check(workloads)
        folder = self._context.run_folder.ready()
        warnings = []
        for workload in workloads:
            command = _command_of(workload)
            if self._context.options.precondition:
                require(workload, "host", beside=Beside.PRECONDITION)
            check_requirements(workload.name, command)
            if workload.beside is not None:
                check_job_file(self._fio, workload.beside, self._beside_text(workload, seed=0), folder)
            if command.cold and not self._space.on_device:
                warnings.append(
                    f"{workload.name}: its cold file system is reached through a loop device, so the disk's "
                    "scheduler sees a kernel worker in place of its processes; name a device or loop:SIZE "
                    "to let bfq tell them apart"
                )
        return warnings

    def prepare(self, workloads: Sequence[Workload], journal: Journal, announce: Announce) -> None:
        """Makes room for the commands and runs their set-ups."""
        new = [workload for workload in workloads if workload.name not in self._set_up]
        if not new:
            return
        self._context.run_folder.ready()
        self._space.prepare(new, journal, announce)
        _account_delays(journal)
        for workload in new:
            command = _command_of(workload)
            if command.set_up:
                announce(f"{workload.name}: its set-up runs")
                error = self._unmeasured(workload, command.set_up)
                if error is not None:
                    raise RunFailedError(f"the set-up of {workload.name} failed: {error}")
            self._set_up.add(workload.name)

    def run(self, cell: Cell, changes: HostChanges | None) -> Measured:  # noqa: ARG002 - refused
        """Brings the command's files and page cache into their state, and measures it.

        Returns:
            One sample for the command, then those of the load beside it; or the error.

        Raises:
            RunFailedError: if processes cannot be killed.
            RequirementError: if the file system cannot be mounted again.
        """
        folder = self._context.run_folder.ready()
        report = self._report(cell.workload, seed=cell.key.seed, folder=folder)
        return report, self._engine(cell.workload)

    def judged(self, workload: Workload, events: MachineEvents | None) -> MachineEvents | None:
        """Without traffic if that cannot be judged.

        While a load runs beside a command, its I/O cannot be told from that of others; and in proportion to
        the I/O of a command that hardly does any, everything is much.
        """
        if events is None or events.traffic is None:
            return events
        own_bytes = events.traffic.own_read_bytes + events.traffic.own_written_bytes
        if workload.beside is None and own_bytes >= _LEAST_JUDGED_BYTES:
            return events
        return events.model_copy(update={"traffic": None})

    def cache_commands(self) -> list[str]:
        """None: they are among the steps of a run."""
        return []

    def _report(self, workload: Workload, *, seed: int, folder: Path) -> FioReport:
        error = self._make_ready(workload)
        if error is not None:
            return FioReport([], error, [])
        if workload.beside is None:
            return self._measure(workload)
        text = self._beside_text(workload, seed=seed)
        load = endless(workload.beside)
        longest_ns = _longest_ns(_command_of(workload))
        with load_beside(self._fio, load, text, folder, longest_ns=longest_ns) as beside:
            report = FioReport([], None, [])
            if not beside.ended_early:
                report = self._measure(workload)
        if report.error is not None or beside.report is None:
            return report
        if beside.report.error is not None:
            return FioReport([], f"the load beside it: {beside.report.error}", [])
        if beside.ended_early:
            return FioReport([], "the load beside it ended before the command did", [])
        return replace(report, jobs=[*report.jobs, *beside.report.jobs], warnings=beside.report.warnings)

    def commands(self, cell: Cell, changes: HostChanges | None) -> list[str]:  # noqa: ARG002 - refused
        """The steps from the making of its directory to its run."""
        workload = cell.workload
        command, directory = _command_of(workload), self._space.directory(workload)
        lines = [*_delays_on().shell(), *self._space.creation_commands(workload)]
        if workload.beside is not None:
            lines.append(f"cat > {JOB_FILE} <<'END'\n{self._beside_text(workload, seed=cell.key.seed)}END")
        lines.append(f"export {DIRECTORY_VARIABLE}={shlex.quote(str(directory))}")
        if command.set_up:
            lines += ["# once, not measured", self._in_shell(command.set_up, directory)]
        if command.repeat_set_up:
            lines += ["# before each run, not measured", self._in_shell(command.repeat_set_up, directory)]
        if command.cold:
            lines.append("# cold: this empties the page cache of this file system alone")
        else:
            lines.append("# warm: it has run once before, not measured")
        lines += shell_of(self._space.page_cache_changes(workload))
        if workload.beside is not None:
            lines.append(f"{shlex.join(self._fio.command())} &")
        lines.append(f"time {self._in_shell(command.run, directory)}")
        return [*lines, "kill -INT %1; wait"] if workload.beside is not None else lines

    def _engine(self, workload: Workload) -> dict[str, str]:
        """Facts on the run, for its sample."""
        command = _command_of(workload)
        facts = {
            "name": "command",
            "page_cache": "cold" if command.cold else "warm",
            "directory": str(self._space.directory(workload)),
        }
        return facts if workload.beside is None else facts | {"beside": f"fio {self._fio.version}"}

    def _make_ready(self, workload: Workload) -> str | None:
        """Runs the repeated set-up and makes the page cache cold or warm; returns the error of a failure."""
        command = _command_of(workload)
        if not command.cold and self._context.warm != workload.name:
            error = self._repeat_set_up(workload) or self._unmeasured(workload, command.run)
            if error is not None:
                return error
            self._context.warm = workload.name
        error = self._repeat_set_up(workload)
        if error is not None:
            return error
        if command.cold:
            self._context.warm = None
        elif not self._space.directory(workload).is_dir():
            return f"its directory {self._space.directory(workload)} is gone"
        for change in self._space.page_cache_changes(workload):
            change.make()
        return None

    def _repeat_set_up(self, workload: Workload) -> str | None:
        line = _command_of(workload).repeat_set_up
        error = self._unmeasured(workload, line) if line else None
        return None if error is None else f"the set-up before the run failed: {error}"

    def _unmeasured(self, workload: Workload, line: str) -> str | None:
        """Runs a line without measuring it; returns the error of a failure."""
        directory = self._space.directory(workload)
        return run_command(line, directory, time_limit_ns=_command_of(workload).time_limit_ns).error

    def _measure(self, workload: Workload) -> FioReport:
        command = _command_of(workload)
        with self._context.monitor.monitoring():
            outcome = run_command(
                command.run, self._space.directory(workload), time_limit_ns=command.time_limit_ns
            )
        return FioReport([] if outcome.job is None else [outcome.job], outcome.error, [])

    def _beside_text(self, workload: Workload, *, seed: int) -> str:
        if workload.beside is None:
            raise ValueError(f"{workload.name} runs alone")
        return beside_text(
            endless(workload.beside),
            regions_in_directory(workload.beside),
            seed=seed,
            folder=self._space.beside_folder,
            group_joins=self._context.groups.joins(workload.beside),
            longest_ns=_longest_ns(_command_of(workload)),
        )

    @staticmethod
    def _in_shell(line: str, directory: Path) -> str:
        inner = shlex.quote(in_directory(line, str(directory)))
        return f"( cd {shlex.quote(str(directory))} && {SHELL} -c {inner} )"


def _command_of(workload: Workload) -> Command:
    if workload.command is None:
        raise ValueError(f"{workload.name} is a job file")
    return workload.command


def _longest_ns(command: Command) -> int:
    """Time after which the load beside a command ends even if nobody ends it."""
    return 2 * command.time_limit_ns


def _delays_on() -> KernelWrite:
    """The change that has the kernel account delays."""
    return KernelWrite(DELAY_ACCOUNTING, "1")


def _account_delays(journal: Journal) -> None:
    """Lets the kernel account the waits of new tasks, where it can.

    If another program has switched it on, that program may switch it off: there is nothing to restore then.
    """
    if text_or_empty(DELAY_ACCOUNTING).strip() == "0":
        journal.protect_attribute(DELAY_ACCOUNTING)
        _delays_on().make()
