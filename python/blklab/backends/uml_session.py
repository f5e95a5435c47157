"""Sessions of the uml backend: checks, and runs of one guest each."""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from blklab.backends.changeable import check_changes
from blklab.backends.failed_slots import failed_stretch
from blklab.backends.group_choices import OF_VERSION_2, check_group_choices
from blklab.backends.model_changes import changes_request, trial_request, with_changes
from blklab.backends.model_stretch import stretch_request, stretch_samples
from blklab.backends.modelled_device import check_with_core, default_writeback
from blklab.backends.protocol import SessionOptions
from blklab.backends.uml_clocks import bfq_idling_warning, clock_warnings
from blklab.backends.uml_commands import GuestCommands, command_job
from blklab.backends.uml_load import check_load
from blklab.backends.uml_processor_time import is_costly, processor_notes, processors_request
from blklab.backends.workers import GuestRuns
from blklab.errors import RunFailedError
from blklab.guests.boot import INIT, KERNEL, Boot
from blklab.guests.guest import REQUEST, GuestImage, GuestResult
from blklab.guests.kernels.kernel_build import KernelBuild
from blklab.guests.kernels.names import DEFAULT_NAME
from blklab.guests.kernels.store import find
from blklab.guests.log import with_log_tail
from blklab.guests.recorded_ios import RecordedIo, recorded_ios
from blklab.guests.scratch import MOUNT_POINTS
from blklab.guests.watchdog import ANSWER
from blklab.linux.load.fio import JOB_FILE, OUTPUT_FILE, expected_runtime_ns, job_file_text
from blklab.linux.load.fio_output import read_fio_report
from blklab.linux.queue.attributes import (
    FIRST_WITH_ASYNC_DEPTH_OF_QUEUE,
    note_on_place,
)
from blklab.linux.queue.settings import settings_of_disk
from blklab.linux.scratch.layout import JobRegions, regions_in_numbered_files, regions_on_device
from blklab.linux.scratch.space import Announce
from blklab.quantities.notes import as_notes
from blklab.quantities.units import format_duration
from blklab.records.samples import JobSample, RunSample, TargetDescription
from blklab.simulator.core import core_error, read_back_settings
from blklab.spec.guest import GuestOptions
from blklab.spec.permits import require_runs, why_not_switched
from blklab.spec.plan import Cell, CellKey
from blklab.spec.queue_attributes import ASYNC_DEPTH
from blklab.spec.schedulers import SchedulerChoice
from blklab.spec.stretches import Stretch
from blklab.spec.workloads import Workload, parse_workload, remarks_on, shipped_workloads

_DISK = "/dev/blklab"
"""Link in the guest to the modelled disk, for every driver."""
_DATA = "/mnt"
"""Mount point of the jobs' file system in the guest."""
_GROUPS = "/sys/fs/cgroup"
_FIO_LOG = "fio.log"
_PROBE = parse_workload("[probe]\nrw=read\nbs=4k\nsize=4k\ndirect=1\n", name="probe", source="probe")
"""The workload of a guest that is booted only to read or try its settings."""
_SIMULATED_RESERVE_NS = 3_600_000_000_000
"""Virtual time beyond its jobs' own runtimes after which a run is aborted."""
_USUAL_LIMIT_NS = 24 * _SIMULATED_RESERVE_NS
"""Limit in virtual time for jobs that end after a number of I/Os."""


FAST_RUNTIME_NS = 100_000_000
"""Runtime of shipped workloads on non-rotational disks: some ten thousand I/Os, seconds of a guest's work."""


class UmlSession:
    """See `blklab.backends.protocol.Session`."""

    guests: GuestRuns
    """Set before the first run; a dry run has none."""

    def __init__(
        self,
        target: TargetDescription,
        device: Mapping[str, Any],
        options: SessionOptions,
        kernels: Mapping[str, KernelBuild],
        *,
        init: Path,
        programs: Mapping[str, Path],
        boot: Boot,
        commands: GuestCommands,
    ) -> None:
        self.target = target
        self.parallel = 1
        self._device = device
        self._options = options
        self._shortens = options.runtime_ns is None and not target.disks[0].rotational
        self._kernels = kernels
        self._init = init
        self._programs = programs
        self._boot = boot
        self._guest_commands = commands
        self._choices: Sequence[SchedulerChoice] = ()
        """The schedulers that were checked."""

    def tunable_defaults(self, choice: SchedulerChoice) -> Mapping[str, str] | None:
        """The tunables and attributes that a guest's kernel reports; None in a dry run, which boots none."""
        if self._options.dry_run:
            return None
        self._kernel_of(choice).require_scheduler(choice.name)
        sample = self._probe(choice.model_copy(update={"tunables": {}}))
        if sample.status == "failed":
            raise RunFailedError(f"the tunables of {choice.without_label} cannot be read: {sample.error}")
        writeback = default_writeback(check_with_core({**self._device, "scheduler": "none"}))
        return settings_of_disk(sample.settings, self.target.disks[0].name) | writeback

    def group_attributes(self) -> frozenset[str]:
        """Those of cgroup v2, which guests mount; an old kernel refuses those that it lacks."""
        return OF_VERSION_2

    def check(self, choices: Sequence[SchedulerChoice], workloads: Sequence[Workload]) -> list[str]:
        """Checks kernels, schedulers and jobs, and tries the settings in a guest.

        With a single choice, the run itself is the trial.
        """
        require_runs(self.target.backend, self._options, workloads, self.target.target)
        for choice in choices:
            self._kernel_of(choice).require_scheduler(choice.name)
        self._choices = choices
        check_group_choices(self._options, choices, workloads)
        notes = clock_warnings(list(self._kernels.values()), self._options.guest) + remarks_on(workloads)
        notes += processor_notes(self._options.machine, list(self._kernels.values()), self._options.guest)
        notes += self._guest_commands.check(workloads, list(self._kernels.values()))
        check_changes(self._options, choices, workloads, self._length_ns)
        for workload in workloads:
            jobs = workload if workload.command is None else workload.beside
            if jobs is None:
                continue
            notes += check_load(jobs, self._options.guest)
            # Jobs are valid or not regardless of scheduler and settings, so the core checks them without
            # these.
            plain: dict[str, Any] = {**self._device, "scheduler": "none", "jobs": _jobs(jobs)}
            plain["runtime_ns"] = self._runtime_ns(jobs)
            check_with_core(plain, source=jobs.source)
        notes += self._bfq_warnings(choices) + self._notes_on_places(choices)
        if any(self._shortened(workload) for workload in workloads):
            note = (
                f"shipped workloads run for {format_duration(FAST_RUNTIME_NS)} of the guest's time each, "
                "because every I/O of a fast disk is real work for the guest; --runtime sets another length"
            )
            notes += as_notes([note])
        if len(choices) > 1:
            self._try_settings(choices)
        return notes

    def _notes_on_places(self, choices: Sequence[SchedulerChoice]) -> list[str]:
        """Notes on `async_depth`, once for each kernel that has it in another place than asked for."""
        notes = []
        for choice in choices:
            kernel = self._kernel_of(choice)
            of_queue = kernel.release >= FIRST_WITH_ASYNC_DEPTH_OF_QUEUE
            if ASYNC_DEPTH in (choice.tunables if of_queue else self._options.queue):
                notes.append(note_on_place(f"the kernel {kernel.name} ({kernel.version})", of_queue=of_queue))
        return list(dict.fromkeys(notes))

    def _bfq_warnings(self, choices: Sequence[SchedulerChoice]) -> list[str]:
        """One warning for each kernel under which bfq would idle for readers."""
        if is_costly(self._options.machine) or not any(disk.rotational for disk in self.target.disks):
            return []
        kernels = [self._kernel_of(choice) for choice in choices if choice.name == "bfq"]
        found = (bfq_idling_warning(kernel, self._options.guest) for kernel in kernels)
        return list(dict.fromkeys(warning for warning in found if warning is not None))

    def _try_settings(self, choices: Sequence[SchedulerChoice]) -> None:
        """Boots a guest for each choice with settings, so that a refusal comes before the first block."""
        everywhere = bool(self._options.queue or self._options.cgroups or self._options.changes)
        tried = [choice for choice in choices if everywhere or choice.tunables]
        with ThreadPoolExecutor(self.parallel) as executor:
            for _ in executor.map(self._probe, tried):
                pass  # a refused setting raises; a guest that fails is reported by its runs

    def _probe(self, choice: SchedulerChoice) -> RunSample:
        """Makes a minimal run."""
        key = CellKey(block=0, sequence=0, position=0, workload=_PROBE.name, scheduler=choice.label, seed=0)
        return self.run(Cell(key=key, scheduler=choice, workload=_PROBE))

    def prepare(self, workloads: Sequence[Workload], announce: Announce) -> None:
        """Collects the files of commands; each guest makes its own disk.

        Raises:
            BlklabError: if a set-up fails, or a command's files cannot be had.
        """
        self._guest_commands.prepare(workloads, announce)

    def run(self, cell: Cell) -> RunSample:
        """Boots a guest for one cell.

        Raises:
            BlklabError: if the guest's kernel refuses a setting of the cell, or no guest can be started.
        """
        return self._run(cell, self._request(cell))[0]

    def run_recorded(self, cell: Cell) -> tuple[RunSample, list[RecordedIo]]:
        """Boots a guest for one cell, and also tells each I/O of its load.

        The load must be blklab's own, do direct I/O only, and work on a bare disk.

        Raises:
            BlklabError: as for `run`, or if the run fails.
        """
        request = self._request(cell)
        request["guest"]["recording"] = True
        sample, answer = self._run(cell, request)
        if sample.error is not None:
            raise RunFailedError(sample.error)
        return sample, recorded_ios(answer)

    def _run(self, cell: Cell, request: dict[str, Any]) -> tuple[RunSample, Mapping[str, Any]]:
        """Makes a run; gives its sample, and the guest's answer."""
        started_at = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
        start_ns = time.monotonic_ns()
        fio = self._guest_for(cell).generator == "fio"
        wanted = (OUTPUT_FILE, _FIO_LOG) if fio else ()
        end = self.guests.run(self._image(cell), request, self._files(cell), wanted)
        jobs, error, warnings = self._read_result(cell, end)
        answer = end.answer or {}
        sample = RunSample(
            cell=cell.key,
            status="ok" if error is None else "failed",
            error=error,
            started_at=started_at,
            elapsed_ns=time.monotonic_ns() - start_ns,
            jobs=jobs,
            settings=read_back_settings(answer, self.target.disks[0].name) if error is None else {},
            engine=self._engine(cell, answer),
            warnings=warnings,
        )
        if error is not None or request["changes"] is None or cell.workload == _PROBE:
            return sample, answer
        return with_changes(sample, self._options.changes, request["changes"], answer), answer

    def unswitchable(self, workload: Workload) -> str | None:
        """Refuses schedulers of different kernels, beside the usual."""
        if reason := why_not_switched(workload, self.target.backend, self._options, self._choices):
            return reason
        return "the schedulers are those of different kernels" if len(self._kernels) > 1 else None

    def run_stretch(self, stretch: Stretch) -> list[RunSample]:
        """Boots a guest for one load, in which a process switches at the beginning of each slot.

        Raises:
            BlklabError: as for `run`.
        """
        started_at = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
        start_ns = time.monotonic_ns()
        first = stretch.slots[0]
        cell = Cell(key=first.key, scheduler=first.scheduler, workload=stretch.workload)
        request = stretch_request(stretch, self._request(cell))
        request["limits"]["simulated_ns"] = request["runtime_ns"] + _SIMULATED_RESERVE_NS
        end = self.guests.run(self._image(cell), request, {}, ())
        _, error, _ = self._read_result(cell, end)
        answer = end.answer or {}
        elapsed_ns = time.monotonic_ns() - start_ns
        if error is not None:
            return failed_stretch(stretch, error, started_at=started_at, elapsed_ns=elapsed_ns)
        disk = self.target.disks[0].name
        return stretch_samples(
            stretch,
            answer["slots"],
            lambda _, record: read_back_settings(record, disk),
            started_at=started_at,
            elapsed_ns=elapsed_ns,
            engine=self._engine(cell, answer),
        )

    def stop(self) -> None:
        """Ends all guests."""
        self.guests.stop()

    def stretch_commands(self, stretch: Stretch) -> list[str]:
        """As `commands`, for one load with its switches."""
        first = stretch.slots[0]
        cell = Cell(key=first.key, scheduler=first.scheduler, workload=stretch.workload)
        return self._commands(cell, stretch_request(stretch, self._request(cell)))

    def commands(self, cell: Cell) -> list[str]:
        """The guest's directory, request and boot command; running them in a shell repeats the run."""
        return self._commands(cell, self._request(cell))

    def _commands(self, cell: Cell, asked: Mapping[str, Any]) -> list[str]:
        kernel = self._kernel_of(cell.scheduler)
        files = {KERNEL: kernel.linux, INIT: self._init, **self._programs}
        lines = [f"# kernel {kernel.name}: {summary_of(kernel)}", 'cd "$(mktemp -d -p /dev/shm)"']
        if cell.workload.command is not None:
            files |= self._guest_commands.programs
        folders = sorted({str(Path(name).parent) for name in files} - {"."})
        lines.append(f"mkdir -p {' '.join([*MOUNT_POINTS, *folders])}")
        lines += [f"cp {path} {name}" for name, path in files.items()]
        if cell.workload.command is not None:
            lines += self._guest_commands.steps(cell.workload)
        request = json.dumps(asked, indent=1, ensure_ascii=False)
        for name, text in {**self._files(cell), REQUEST: request}.items():
            lines.append(f"cat > {name} <<'END'\n{text.rstrip()}\nEND")
        return [*lines, self._boot.command(kernel.boot_parameters), f"cat {ANSWER}"]

    def _image(self, cell: Cell) -> GuestImage:
        kernel = self._kernel_of(cell.scheduler)
        programs = self._programs
        if cell.workload.command is not None:
            programs = {**programs, **self._guest_commands.files(cell.workload)}
        return GuestImage(kernel.linux, kernel.build_id, self._init, programs, kernel.boot_parameters)

    def _engine(self, cell: Cell, answer: Mapping[str, Any]) -> dict[str, Any]:
        kernel = self._kernel_of(cell.scheduler)
        named = {"name": kernel.name, "version": kernel.version, "build_id": kernel.build_id}
        of_command = {} if cell.workload.command is None else self._guest_commands.engine(cell.workload)
        return {**answer.get("engine", {}), **of_command, "kernel": named}

    def _kernel_of(self, choice: SchedulerChoice) -> KernelBuild:
        name = choice.kernel or DEFAULT_NAME
        return self._kernels[name] if name in self._kernels else find(name)

    def _guest_for(self, cell: Cell) -> GuestOptions:
        """The requested guest; a trial of settings gets a minimal one."""
        asked = self._options.guest
        if cell.workload.command is not None:
            return asked.model_copy(update={"filesystem": self._guest_commands.filesystem})
        if cell.workload != _PROBE:
            return asked
        # Some arrays can be made only by their file system.
        filesystem = asked.filesystem if self.target.details.get("array") else None
        return GuestOptions(time=asked.time, filesystem=filesystem)

    def _shortened(self, workload: Workload) -> bool:
        """Tells whether to shorten the runtime: only for shipped workloads, never for a user's job file."""
        shipped = workload.source in shipped_workloads()
        return self._shortens and shipped and any(job.time_based for job in workload.jobs)

    def _runtime_ns(self, workload: Workload) -> int | None:
        """The runtime of time-based jobs; None for that of the job file."""
        return FAST_RUNTIME_NS if self._shortened(workload) else self._options.runtime_ns

    def _request(self, cell: Cell) -> dict[str, Any]:
        guest = self._guest_for(cell)
        expected_ns = expected_runtime_ns(cell.workload, self._runtime_ns(cell.workload))
        limit_ns = _USUAL_LIMIT_NS if expected_ns is None else expected_ns + _SIMULATED_RESERVE_NS
        command = None
        if cell.workload.command is not None:
            command = self._guest_commands.request(cell.workload)
            limit_ns = self._guest_commands.longest_ns(cell.workload) + _SIMULATED_RESERVE_NS
        return {
            **self._device,
            "scheduler": cell.scheduler.name,
            "tunables": cell.scheduler.iosched,
            "queue": self._options.queue | cell.scheduler.queue,
            "cgroups": cell.scheduler.groups_over(self._options.cgroups),
            **({"machine": cell.scheduler.of_writeback} if cell.scheduler.of_writeback else {}),
            "jobs": _jobs(cell.workload),
            **({} if command is None else {"command": command}),
            "runtime_ns": self._runtime_ns(cell.workload),
            "seed": cell.key.seed,
            "arrangement": self._options.arrangement_seed(cell.key.seed),
            "processors": processors_request(self._options.machine, self._kernel_of(cell.scheduler)),
            "limits": {"events": None, "simulated_ns": limit_ns},
            "changes": self._changes_of(cell),
            "guest": {
                "driver": self._kernel_of(cell.scheduler).driver,
                "generator": guest.generator,
                "filesystem": guest.filesystem,
                "time": guest.time,
            },
        }

    def _length_ns(self, workload: Workload) -> int | None:
        return expected_runtime_ns(workload, self._runtime_ns(workload))

    def _changes_of(self, cell: Cell) -> dict[str, Any] | None:
        if cell.workload == _PROBE:
            return trial_request(self._options)
        return changes_request(self._options, cell.workload, self._runtime_ns(cell.workload))

    def _files(self, cell: Cell) -> dict[str, str]:
        if self._guest_for(cell).generator != "fio":
            return {}
        joins = {
            job.cgroup: f"{_GROUPS}/{job.cgroup}/cgroup.procs" for job in cell.workload.jobs if job.cgroup
        }
        text = job_file_text(
            cell.workload,
            self._regions(cell.workload),
            seed=cell.key.seed,
            runtime_ns=self._runtime_ns(cell.workload),
            group_joins=joins,
        )
        return {JOB_FILE: text}

    def _regions(self, workload: Workload) -> list[JobRegions]:
        """The regions that fio's jobs work on in the guest."""
        size_bytes = self.target.disks[0].size_bytes
        if self._options.guest.filesystem is None:
            return regions_on_device(workload, _DISK, size_bytes)
        return regions_in_numbered_files(workload, _DATA, size_bytes)

    def _read_result(self, cell: Cell, end: GuestResult) -> tuple[list[JobSample], str | None, list[str]]:
        """Reads jobs, error and warnings from a guest's result.

        Raises:
            BlklabError: if the guest refused the request, as it would in every block.
        """
        answer = end.answer
        if answer is None:
            return [], end.error, []
        refused = answer.get("error")
        if refused is not None:
            error = core_error(refused)
            if not isinstance(error, RunFailedError):
                raise error
            return [], with_log_tail(error.message, end.log), []
        if (fio := answer.get("fio")) is not None:
            report = read_fio_report(
                end.files.get(OUTPUT_FILE, ""),
                messages=end.files.get(_FIO_LOG, ""),
                returncode=fio["exit_code"],
                workload=cell.workload,
            )
            return report.jobs, report.error, report.warnings
        try:
            jobs = [JobSample.model_validate(job) for job in answer["jobs"]]
            if cell.workload.command is None:
                return jobs, None, []
            job, reason = command_job(answer, alone=cell.workload.beside is None)
            return ([], reason, []) if job is None else ([job, *jobs], None, [])
        except (KeyError, TypeError, ValidationError) as error:
            return [], with_log_tail(f"the guest's answer is not as expected: {error}", end.log), []


def summary_of(kernel: KernelBuild) -> str:
    """One line about a kernel for reports: its source, patches and instruments."""
    patches = ", ".join(patch.name for patch in kernel.record.patches)
    source = Path(kernel.record.source).name
    made_of = f"from {source} with {patches}" if patches else f"from {source}, unpatched"
    instruments = " and ".join(kernel.instruments) or "none"
    return f"Linux {kernel.version} {made_of}; instruments: {instruments}; build {kernel.build_id[:12]}"


def _jobs(workload: Workload) -> dict[str, str] | None:
    """The job file of a workload, or of the load beside a command; None for a command that runs alone."""
    jobs = workload if workload.command is None else workload.beside
    return None if jobs is None else {"text": jobs.text, "source": jobs.source}
