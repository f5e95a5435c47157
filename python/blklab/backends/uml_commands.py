"""Commands in guests: their set-ups on this machine, their files on the modelled disk, the guest's report.

A set-up runs here, in a directory that the guest then finds as the command's own. The guest runs everything
else: ``repeat_set_up`` and, for a warm command, one unmeasured run before the clock counts, then the command.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from blklab.backends.uml_load import SIMULATED_RESERVE_NS, GuestLoad, check_own_generator, job_samples
from blklab.errors import KernelLacksError, RunFailedError, SpaceError
from blklab.guests.command_files import DIRECTORY, SEARCHED, command_root
from blklab.guests.file_tree import FileTree
from blklab.guests.guest import GuestResult
from blklab.guests.kernels.kernel_build import KernelBuild
from blklab.guests.programs import program_files
from blklab.guests.scratch import SessionFolder, choose_scratch
from blklab.linux.load.beside import LEAD_NS, endless
from blklab.linux.load.command import check_requirements, run_command
from blklab.linux.load.fio_output import FioReport
from blklab.linux.scratch.space import Announce
from blklab.quantities.units import format_bytes
from blklab.records.samples import CommandSample, JobSample
from blklab.spec.commands import DIRECTORY_VARIABLE, JOB, Command, in_directory
from blklab.spec.guest import GuestFilesystem, GuestOptions
from blklab.spec.workloads import Workload

ARCHIVE = "command.cpio"
"""The command's files, in the guest's folder."""
FILESYSTEM: GuestFilesystem = "ext4"
"""Of a guest whose user has chosen none."""
_FAST_LEAD_NS = 100_000_000
"""Time of a load to itself on a disk without moving parts, where each I/O is real work for the guest."""
_OF_GUEST_BYTES = 160 << 20
"""Memory that a command's files cannot have: for the kernel, programs, and a load beside the command."""


@dataclass(frozen=True)
class _Prepared:
    """A command's files, written as an archive."""

    archive: Path
    digest: str
    size_bytes: int


class _Report(BaseModel):
    """The guest's report on a command."""

    wall_ns: int
    complaint: str | None
    """Why it failed; None if it did not."""
    busy_ns: int | None
    disk_read_bytes: int
    disk_written_bytes: int
    major_faults: int
    context_switches: int


class GuestCommands(GuestLoad):
    """The commands of one session; a context manager that removes their files."""

    def __init__(self, guest: GuestOptions, *, rotational: bool) -> None:
        """Changes nothing.

        Args:
            guest: Options of the guests.
            rotational: Whether the disk has moving parts.
        """
        filesystem = guest.filesystem or FILESYSTEM
        super().__init__(guest.model_copy(update={"filesystem": filesystem}), lambda _: None)
        self._lead_ns = LEAD_NS if rotational else _FAST_LEAD_NS
        self._folder: SessionFolder | None = None
        self._prepared: dict[str, _Prepared] = {}
        self._programs: dict[str, Path] | None = None

    def __enter__(self) -> GuestCommands:
        return self

    def __exit__(self, *_: object) -> None:
        if self._folder is not None:
            self._folder.remove()

    def programs(self) -> Mapping[str, Path]:
        """Those with which a guest makes the commands' file system.

        Raises:
            MissingToolError: if they are not installed.
        """
        if self._programs is None:
            self._programs = program_files([f"mkfs.{self.guest.filesystem}"])
        return self._programs

    def check(self, workloads: Sequence[Workload], kernels: Sequence[KernelBuild]) -> list[str]:
        """Looks for disks that keep what is written to them, programs, and loads that would wait for ever.

        Raises:
            KernelLacksError: if a kernel has no such disk.
            MissingToolError: if a program is missing.
            JobFileError: for a mistake in the load beside a command.
        """
        for kernel in kernels:
            if not kernel.has_ublk:
                raise KernelLacksError(
                    f"the kernel {kernel.name} ({kernel.version}) has no ublk, so its modelled disk keeps "
                    f"nothing, and {workloads[0].name} needs files on it",
                    hint="Linux 6.0 and later have it",
                )
        _ = self.programs()
        notes = ["in virtual time a command's own computing takes no time: its time is that of its I/O"]
        notes = [] if self.guest.time == "host" else notes
        for workload in workloads:
            check_requirements(workload.name, _command_of(workload))
            if workload.beside is not None:
                endless(workload.beside)
                notes += check_own_generator(workload.beside)
        return notes

    def job_files(self, workload: Workload) -> list[Workload]:
        """The load beside a command."""
        return [] if workload.beside is None else [workload.beside]

    def prepare(self, workloads: Sequence[Workload], announce: Announce) -> None:
        """Runs the set-ups, and collects the files of each command.

        Raises:
            RunFailedError: if a set-up fails.
            MissingToolError: if a program, an interpreter or a library is missing.
            SpaceError: if the files are too many for the guest's memory.
            BlklabError: if a file cannot be read or copied.
        """
        for workload in workloads:
            if workload.name in self._prepared:
                continue
            command = _command_of(workload)
            if self._folder is None:
                self._folder = SessionFolder(choose_scratch(0)[0])
            place = Path(tempfile.mkdtemp(dir=self._folder.path))
            directory = place / "directory"
            directory.mkdir()
            if command.set_up:
                announce(f"{workload.name}: its set-up runs")
                outcome = run_command(command.set_up, directory, time_limit_ns=command.time_limit_ns)
                if outcome.error is not None:
                    raise RunFailedError(f"the set-up of {workload.name} failed: {outcome.error}")
            announce(f"{workload.name}: its files are collected")
            tree = _tree_of(command, directory)
            self._check_size(workload.name, tree)
            archive = place / ARCHIVE
            self._prepared[workload.name] = _Prepared(archive, tree.write(archive), tree.bytes)

    def files(self, workload: Workload) -> dict[str, Path]:
        """The programs, and the command's files."""
        return {**self.programs(), ARCHIVE: self._prepared[workload.name].archive}

    def request(self, workload: Workload) -> dict[str, Any]:
        """The load beside it, and the command."""
        command, beside = _command_of(workload), workload.beside
        jobs = None if beside is None else {"text": beside.text, "source": beside.source}
        described = {
            "run": in_directory(command.run, DIRECTORY),
            "repeat_set_up": in_directory(command.repeat_set_up, DIRECTORY),
            "directory": DIRECTORY,
            "environment": {
                "PATH": ":".join(SEARCHED),
                "HOME": "/",
                "LC_ALL": "C.UTF-8",
                DIRECTORY_VARIABLE: DIRECTORY,
            },
            "cold": command.cold,
            "time_limit_ns": command.time_limit_ns,
            "lead_ns": 0 if beside is None else self._lead_ns,
        }
        return {"jobs": jobs, "command": described}

    def longest_ns(self, workload: Workload) -> int:
        """Its time limit for set-up and run, with a reserve."""
        return self._lead_ns + 2 * _command_of(workload).time_limit_ns + SIMULATED_RESERVE_NS

    def engine(self, workload: Workload) -> dict[str, Any]:
        """Facts on the run, for its sample."""
        prepared = self._prepared.get(workload.name)
        facts: dict[str, Any] = {"page_cache": "cold" if _command_of(workload).cold else "warm"}
        if prepared is not None:
            facts["files"] = {"bytes": prepared.size_bytes, "digest": prepared.digest}
        return facts

    def steps(self, workload: Workload) -> list[str]:
        """Says what is in the archive of its files."""
        command = _command_of(workload)
        set_up = f"{DIRECTORY}, as left by the set-up here: {command.set_up}" if command.set_up else DIRECTORY
        return [
            f"# {ARCHIVE} holds /bin/sh, the programs that the command names, their libraries, and {set_up}"
        ]

    def read(self, workload: Workload, answer: Mapping[str, Any], end: GuestResult) -> FioReport:  # noqa: ARG002 - for others
        """The sample of the command, then those of the load beside it."""
        jobs = job_samples(answer)
        job, reason = command_job(answer, alone=workload.beside is None)
        return FioReport([], reason, []) if job is None else FioReport([job, *jobs], None, [])

    def _check_size(self, name: str, tree: FileTree) -> None:
        # The disk keeps its contents in the guest's memory, and the page cache holds what was written last.
        needed = 2 * tree.bytes + _OF_GUEST_BYTES
        if needed > self.guest.memory_bytes:
            raise SpaceError(
                f"the files of {name} take {format_bytes(tree.bytes)}, and a guest of "
                f"{format_bytes(self.guest.memory_bytes)} holds them twice: on its disk, which lies in its "
                "memory, and in the page cache",
                hint=f"give guests more memory: --memory {-(-needed >> 20)}m",
            )


def command_job(answer: Mapping[str, Any], *, alone: bool) -> tuple[JobSample | None, str | None]:
    """The sample of a command, or why it failed.

    Args:
        answer: The guest's.
        alone: Whether no load ran beside it: the disk's bytes and the processor's time are the command's.

    Raises:
        ValidationError: if the answer is not as expected.
    """
    report = _Report.model_validate(answer["command"])
    if report.complaint is not None:
        return None, report.complaint
    busy_ns = report.busy_ns if alone else None
    command = CommandSample(
        read_bytes=report.disk_read_bytes if alone else None,
        written_bytes=report.disk_written_bytes if alone else None,
        major_faults=report.major_faults,
    )
    job = JobSample(
        name=JOB,
        clones=1,
        runtime_ns=report.wall_ns,
        directions=[],
        # The program's own computing takes no time, so all of it is the kernel's.
        cpu_user_ns=None if busy_ns is None else 0,
        cpu_system_ns=busy_ns,
        context_switches=report.context_switches,
        command=command,
    )
    return job, None


def _tree_of(command: Command, directory: Path) -> FileTree:
    lines = [line for line in (command.run, command.repeat_set_up) if line]
    return command_root(lines, command.requires, command.guest_files, directory)


def _command_of(workload: Workload) -> Command:
    if workload.command is None:
        raise ValueError(f"{workload.name} is a job file")
    return workload.command
