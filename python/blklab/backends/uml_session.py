"""Sessions of the uml backend: checks, and runs of one guest each."""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Iterator, Mapping, Sequence
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
from blklab.backends.uml_commands import GuestCommands
from blklab.backends.uml_load import SIMULATED_RESERVE_NS, GuestFio, GuestLoad
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
from blklab.linux.load.fio import expected_runtime_ns
from blklab.linux.load.fio_output import FioReport
from blklab.linux.queue.attributes import (
    FIRST_WITH_ASYNC_DEPTH_OF_QUEUE,
    note_on_place,
)
from blklab.linux.queue.settings import settings_of_disk
from blklab.linux.scratch.space import Announce
from blklab.quantities.notes import as_notes
from blklab.quantities.units import format_duration
from blklab.records.samples import RunSample, TargetDescription
from blklab.simulator.core import core_error, read_back_settings
from blklab.spec.guest import GuestOptions
from blklab.spec.loads import Load
from blklab.spec.permits import require_runs, why_not_switched
from blklab.spec.plan import Cell, CellKey
from blklab.spec.queue_attributes import ASYNC_DEPTH
from blklab.spec.schedulers import SchedulerChoice
from blklab.spec.stretches import Stretch
from blklab.spec.workloads import Workload, parse_workload, remarks_on, shipped_workloads

_PROBE = parse_workload("[probe]\nrw=read\nbs=4k\nsize=4k\ndirect=1\n", name="probe", source="probe")
"""The workload of a guest that is booted only to read or try its settings."""


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
        guest, size_bytes = options.guest, target.disks[0].size_bytes
        jobs: GuestLoad = (
            GuestFio(guest, self._runtime_ns, size_bytes)
            if guest.generator == "fio"
            else GuestLoad(guest, self._runtime_ns)
        )
        self._loads: Mapping[Load, GuestLoad] = {
            Load.COMMAND: commands,
            Load.FIO: jobs,
            Load.HDPARM: jobs,
            Load.REPLAY: jobs,
        }
        # Some arrays can be made only by their file system.
        filesystem = guest.filesystem if target.details.get("array") else None
        self._probe_load = GuestLoad(GuestOptions(time=guest.time, filesystem=filesystem), self._runtime_ns)
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
        for load, own in self._by_kind(workloads):
            notes += load.check(own, list(self._kernels.values()))
        check_changes(
            self._options, choices, workloads, lambda one: expected_runtime_ns(one, self._runtime_ns(one))
        )
        for jobs in (jobs for workload in workloads for jobs in self._load_of(workload).job_files(workload)):
            # Jobs are valid or not regardless of scheduler and settings, so the core checks them without
            # these.
            plain = {**self._device, "scheduler": "none", **self._load_of(jobs).request(jobs)}
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
        cell = Cell(key=key, scheduler=choice, workload=_PROBE)
        request = self._request(cell, self._probe_load) | {"changes": trial_request(self._options)}
        return self._run(cell, self._probe_load, request)[0]

    def prepare(self, workloads: Sequence[Workload], announce: Announce) -> None:
        """Collects the files of commands; each guest makes its own disk.

        Raises:
            BlklabError: if a set-up fails, or a command's files cannot be had.
        """
        for load, own in self._by_kind(workloads):
            load.prepare(own, announce)

    def run(self, cell: Cell) -> RunSample:
        """Boots a guest for one cell.

        Raises:
            BlklabError: if the guest's kernel refuses a setting of the cell, or no guest can be started.
        """
        return self._measure(cell, self._request(cell))[0]

    def run_recorded(self, cell: Cell) -> tuple[RunSample, list[RecordedIo]]:
        """Boots a guest for one cell, and also tells each I/O of its load.

        The load must be blklab's own, do direct I/O only, and work on a bare disk.

        Raises:
            BlklabError: as for `run`, or if the run fails.
        """
        request = self._request(cell)
        request["guest"]["recording"] = True
        sample, answer = self._measure(cell, request)
        if sample.error is not None:
            raise RunFailedError(sample.error)
        return sample, recorded_ios(answer)

    def _measure(self, cell: Cell, request: dict[str, Any]) -> tuple[RunSample, Mapping[str, Any]]:
        """Makes a run; gives its sample with planned changes, and the guest's answer."""
        sample, answer = self._run(cell, self._load_of(cell.workload), request)
        if sample.error is None and request["changes"] is not None:
            sample = with_changes(sample, self._options.changes, request["changes"], answer)
        return sample, answer

    def _run(
        self, cell: Cell, load: GuestLoad, request: dict[str, Any]
    ) -> tuple[RunSample, Mapping[str, Any]]:
        started_at = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
        start_ns = time.monotonic_ns()
        end = self.guests.run(self._image(cell, load), request, load.texts(cell), load.wanted)
        report = self._read_result(cell, load, end)
        answer = end.answer or {}
        sample = RunSample(
            cell=cell.key,
            status="ok" if report.error is None else "failed",
            error=report.error,
            started_at=started_at,
            elapsed_ns=time.monotonic_ns() - start_ns,
            jobs=report.jobs,
            settings=read_back_settings(answer, self.target.disks[0].name) if report.error is None else {},
            engine=self._engine(cell, load, answer),
            warnings=report.warnings,
        )
        return sample, answer

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
        request["limits"]["simulated_ns"] = request["runtime_ns"] + SIMULATED_RESERVE_NS
        load = self._load_of(stretch.workload)
        end = self.guests.run(self._image(cell, load), request, {}, ())
        error = self._read_result(cell, load, end).error
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
            engine=self._engine(cell, load, answer),
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
        kernel, load = self._kernel_of(cell.scheduler), self._load_of(cell.workload)
        files = {KERNEL: kernel.linux, INIT: self._init, **self._programs, **load.programs()}
        lines = [f"# kernel {kernel.name}: {summary_of(kernel)}", 'cd "$(mktemp -d -p /dev/shm)"']
        folders = sorted({str(Path(name).parent) for name in files} - {"."})
        lines.append(f"mkdir -p {' '.join([*MOUNT_POINTS, *folders])}")
        lines += [f"cp {path} {name}" for name, path in files.items()]
        lines += load.steps(cell.workload)
        request = json.dumps(asked, indent=1, ensure_ascii=False)
        for name, text in {**load.texts(cell), REQUEST: request}.items():
            lines.append(f"cat > {name} <<'END'\n{text.rstrip()}\nEND")
        return [*lines, self._boot.command(kernel.boot_parameters), f"cat {ANSWER}"]

    def _load_of(self, workload: Workload) -> GuestLoad:
        return self._loads[workload.load]

    def _by_kind(self, workloads: Sequence[Workload]) -> Iterator[tuple[GuestLoad, list[Workload]]]:
        for kind, load in self._loads.items():
            if own := [workload for workload in workloads if workload.load is kind]:
                yield load, own

    def _image(self, cell: Cell, load: GuestLoad) -> GuestImage:
        kernel = self._kernel_of(cell.scheduler)
        programs = {**self._programs, **load.files(cell.workload)}
        return GuestImage(kernel.linux, kernel.build_id, self._init, programs, kernel.boot_parameters)

    def _engine(self, cell: Cell, load: GuestLoad, answer: Mapping[str, Any]) -> dict[str, Any]:
        kernel = self._kernel_of(cell.scheduler)
        named = {"name": kernel.name, "version": kernel.version, "build_id": kernel.build_id}
        return {**answer.get("engine", {}), **load.engine(cell.workload), "kernel": named}

    def _kernel_of(self, choice: SchedulerChoice) -> KernelBuild:
        name = choice.kernel or DEFAULT_NAME
        return self._kernels[name] if name in self._kernels else find(name)

    def _shortened(self, workload: Workload) -> bool:
        """Tells whether to shorten the runtime: only for shipped workloads, never for a user's job file."""
        shipped = workload.source in shipped_workloads()
        return self._shortens and shipped and any(job.time_based for job in workload.jobs)

    def _runtime_ns(self, workload: Workload) -> int | None:
        """The runtime of time-based jobs; None for that of the job file."""
        return FAST_RUNTIME_NS if self._shortened(workload) else self._options.runtime_ns

    def _request(self, cell: Cell, load: GuestLoad | None = None) -> dict[str, Any]:
        load = load or self._load_of(cell.workload)
        guest = load.guest
        return {
            **self._device,
            "scheduler": cell.scheduler.name,
            "tunables": cell.scheduler.iosched,
            "queue": self._options.queue | cell.scheduler.queue,
            "cgroups": cell.scheduler.groups_over(self._options.cgroups),
            **({"machine": cell.scheduler.of_writeback} if cell.scheduler.of_writeback else {}),
            **load.request(cell.workload),
            "runtime_ns": self._runtime_ns(cell.workload),
            "seed": cell.key.seed,
            "arrangement": self._options.arrangement_seed(cell.key.seed),
            "processors": processors_request(self._options.machine, self._kernel_of(cell.scheduler)),
            "limits": {"events": None, "simulated_ns": load.longest_ns(cell.workload)},
            "changes": changes_request(self._options, cell.workload, self._runtime_ns(cell.workload)),
            "guest": {
                "driver": self._kernel_of(cell.scheduler).driver,
                "generator": guest.generator,
                "filesystem": guest.filesystem,
                "time": guest.time,
            },
        }

    def _read_result(self, cell: Cell, load: GuestLoad, end: GuestResult) -> FioReport:
        """Reads jobs, error and warnings from a guest's result.

        Raises:
            BlklabError: if the guest refused the request, as it would in every block.
        """
        answer = end.answer
        if answer is None:
            return FioReport([], end.error, [])
        refused = answer.get("error")
        if refused is not None:
            error = core_error(refused)
            if not isinstance(error, RunFailedError):
                raise error
            return FioReport([], with_log_tail(error.message, end.log), [])
        try:
            return load.read(cell.workload, answer, end)
        except (KeyError, TypeError, ValidationError) as error:
            message = f"the guest's answer is not as expected: {error}"
            return FioReport([], with_log_tail(message, end.log), [])


def summary_of(kernel: KernelBuild) -> str:
    """One line about a kernel for reports: its source, patches and instruments."""
    patches = ", ".join(patch.name for patch in kernel.record.patches)
    source = Path(kernel.record.source).name
    made_of = f"from {source} with {patches}" if patches else f"from {source}, unpatched"
    instruments = " and ".join(kernel.instruments) or "none"
    return f"Linux {kernel.version} {made_of}; instruments: {instruments}; build {kernel.build_id[:12]}"
