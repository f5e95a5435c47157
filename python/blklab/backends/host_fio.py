"""fio jobs on this machine, and the tests of hdparm that fio's jobs stand for where hdparm cannot run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from blklab.backends.host_changes import HostChanges, await_command, change_commands, phase_window_ms
from blklab.backends.host_load import JobLoad, LoadContext, Measured
from blklab.backends.host_stretch import load_ns, stretch_window_ms
from blklab.linux.load.fio import (
    JOB_FILE,
    Fio,
    check_job_file,
    expected_runtime_ns,
    job_file_text,
    run_fio,
    started_fio,
)
from blklab.linux.load.fio_logs import has_logs, keep_logs
from blklab.linux.load.hdparm import Hdparm, run_hdparm
from blklab.linux.load.load_process import LoadProcess
from blklab.records.run_files import run_files_folder
from blklab.spec.plan import Cell
from blklab.spec.stretches import Stretch
from blklab.spec.workloads import Workload

_UNSAFE_IN_NAMES = re.compile(r"[^A-Za-z0-9_.=@:-]")


class FioLoad(JobLoad):
    """fio's jobs; the only load beneath which schedulers take turns and settings change."""

    def __init__(self, context: LoadContext, fio: Fio) -> None:
        super().__init__(context)
        self._fio = fio
        self.engine = {"name": "fio", "version": fio.version}

    def check(self, workloads: Sequence[Workload]) -> list[str]:
        """Lets fio parse every job file."""
        for workload in workloads:
            text = self._job_file(workload, seed=0)
            check_job_file(self._fio, workload, text, self._context.run_folder.ready())
        return []

    def commands(self, cell: Cell, changes: HostChanges | None) -> list[str]:
        """The job file, fio, and the changes behind it."""
        lines = self._start_commands(self._job_file(cell.workload, seed=cell.key.seed))
        if changes is None:
            return lines
        later = change_commands(changes, cell.workload, self._context.offered)
        return [*lines[:-1], f"{lines[-1]} &", await_command(cell.workload), *later, "wait"]

    def started(self, stretch: Stretch, folder: Path) -> AbstractContextManager[LoadProcess]:
        """The load of a stretch, which runs on while schedulers take turns."""
        return started_fio(
            self._fio,
            self._stretch_job_file(stretch),
            folder,
            read_only=self._context.space.read_only,
            runtime_ns=load_ns(stretch),
        )

    def stretch_commands(self, stretch: Stretch) -> list[str]:
        """The same as shell commands, with fio in the background."""
        *lines, last = self._start_commands(self._stretch_job_file(stretch))
        return [*lines, f"{last} &"]

    def _asked_ns(self, workload: Workload) -> int | None:
        return expected_runtime_ns(workload, self._context.options.runtime_ns)

    def _make(self, cell: Cell, folder: Path, changes: HostChanges | None) -> Measured:
        workload = cell.workload
        report = run_fio(
            self._fio,
            workload,
            self._job_file(workload, seed=cell.key.seed),
            folder,
            read_only=self._context.space.read_only,
            runtime_ns=self._context.options.runtime_ns,
            meanwhile=(
                None if changes is None else lambda process: changes.beneath(process, folder, workload)
            ),
        )
        return replace(report, warnings=[*report.warnings, *self._keep_logs(cell, folder)]), self.engine

    def _keep_logs(self, cell: Cell, folder: Path) -> list[str]:
        """Keeps the logs that the job file asks for; says where they are."""
        if not has_logs(cell.workload):
            return []
        name = _UNSAFE_IN_NAMES.sub("-", f"{cell.key.sequence}-{cell.key.workload}-{cell.key.scheduler}")
        kept = run_files_folder(self._context.options.run_id) / name
        names = keep_logs(folder, cell.workload, kept)
        return [f"fio's logs are in {kept}: {', '.join(names)}"] if names else []

    def _start_commands(self, text: str) -> list[str]:
        command = self._fio.command(read_only=self._context.space.read_only)
        return [f"cat > {JOB_FILE} <<'END'\n{text}END", shlex.join(command)]

    def _stretch_job_file(self, stretch: Stretch) -> str:
        return self._job_file(stretch.workload, seed=stretch.seed, stretch_ns=load_ns(stretch))

    def _job_file(self, workload: Workload, *, seed: int, stretch_ns: int | None = None) -> str:
        options = self._context.options
        return job_file_text(
            workload,
            self._context.space.regions(workload),
            seed=seed,
            runtime_ns=options.runtime_ns if stretch_ns is None else stretch_ns,
            group_joins=self._context.groups.joins(workload),
            folder=self._context.data_folder,
            stretch_window_ms=None if stretch_ns is None else stretch_window_ms(workload),
            phase_window_ms=phase_window_ms(workload, options.runtime_ns) if options.changes else None,
        )


class HdparmLoad(FioLoad):
    """hdparm itself, where it is installed and the target is a device; elsewhere the job in its place."""

    def __init__(self, context: LoadContext, fio: Fio, hdparm: Hdparm | None) -> None:
        super().__init__(context, fio)
        self._hdparm = hdparm

    def warnings(self, workload: Workload) -> list[str]:
        """Says why a job stands for the test, if it does."""
        if self._tested is not None:
            return []
        reason = "is not installed" if self._hdparm is None else "tests devices, not files"
        return [f"{workload.name}: hdparm {reason}; fio jobs emulate {workload.tool} instead"]

    def commands(self, cell: Cell, changes: HostChanges | None) -> list[str]:
        """The command line of the test."""
        if self._tested is None:
            return super().commands(cell, changes)
        hdparm, device = self._tested
        return [shlex.join(hdparm.command(cell.workload.tool, device))]

    def _asked_ns(self, workload: Workload) -> int | None:
        return super()._asked_ns(workload) if self._tested is None else None

    def _make(self, cell: Cell, folder: Path, changes: HostChanges | None) -> Measured:
        if self._tested is None:
            return super()._make(cell, folder, changes)
        hdparm, device = self._tested
        report = run_hdparm(hdparm, cell.workload, device, folder)
        return report, {"name": cell.workload.tool, "version": hdparm.version}

    @property
    def _tested(self) -> tuple[Hdparm, Path] | None:
        """The program and the device; None if it cannot test the target."""
        device = self._context.space.device
        return None if self._hdparm is None or device is None else (self._hdparm, device)
