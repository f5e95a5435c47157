"""Workloads, shipped or a person's own: fio job files, and commands (`blklab.spec.commands`).

A job file has a head of comments that state its purpose. The head is the run of comment lines before the
first section::

    ; purpose: Many small reads at once, as a busy database sends them.
    ; decide-by: iops
    ; focus: reader
    ; control: no

`purpose` is for people. `decide-by` names the metric that the verdict rests on; without it throughput
decides for sequential work and IOPS for random work. `focus` names the sections that are measured (all by
default); the others are background. `control: yes` marks a workload that the scheduler cannot influence:
if it shows a difference, the set-up is at fault. `tool: hdparm -t` (or ``-T``) says that the only job is that
test: on a disk of this machine hdparm itself makes the load where it is installed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from blklab import _core
from blklab.errors import JobFileError, UnknownNameError, did_you_mean
from blklab.named_files import is_file, read_text
from blklab.quantities.notes import as_notes
from blklab.shipped import shipped_files
from blklab.spec.commands import DECIDES, JOB, Command, name_of, parse_command_file
from blklab.spec.job_text import JobText, expand, needs_expansion
from blklab.spec.loads import Load
from blklab.spec.replays import is_replay, read_replay

_HEAD = re.compile(r"[;#]\s*(purpose|decide-by|focus|control|tool)\s*:\s*(.*?)\s*", re.IGNORECASE)
ENVIRONMENT = "env:"
"""Before the path of a job file: its variables are those of the environment."""
COMMAND_SUFFIX = ".toml"
"""Of files that describe a command."""
TOOLS = ("hdparm -t", "hdparm -T")
"""Tests of other programs that a workload can stand for."""
_YES = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


class JobOptionNote(BaseModel):
    """A remark of the job parser about one option."""

    model_config = ConfigDict(frozen=True)

    job: str
    option: str
    line: int
    message: str = ""


class Job(BaseModel):
    """One section of a job file, with ``[global]`` applied."""

    model_config = ConfigDict(frozen=True)

    name: str
    line: int
    options: dict[str, str]
    """The section's effective options under their canonical names, as the person wrote the values."""
    option_lines: dict[str, int]
    numjobs: int
    rw: str
    reads: bool
    writes: bool
    sequential: bool
    direct: bool
    ioengine: str
    iodepth: int
    block_size_bytes: int
    smallest_block_bytes: int = 512
    """The smallest of reads and writes, used or not: fio's unit for shares of a file."""
    size_bytes: int | None
    size_percent: int | None = None
    """The size as a share of the file."""
    offset_bytes: int
    offset_percent: int | None = None
    offset_increment_bytes: int
    offset_increment_percent: int | None = None
    io_size_bytes: int | None
    io_size_percent: int | None = None
    number_ios: int | None
    runtime_ns: int | None
    time_based: bool
    ramp_time_ns: int
    startdelay_ns: int
    filename: str | None
    """The first of `filenames`."""
    filenames: list[str] = []
    """Logical names: sections that name the same file share it. Files lie in scratch space."""
    nr_files: int = 1
    """Files of each clone, if it names none."""
    filesize_bytes: int | None = None
    """Length of each file, if all have the same."""
    file_lengths: list[list[int]] = []
    """Lengths of each clone's files, if a range bounds them."""
    stonewall: bool
    new_group: bool = False
    wait_for: str | None = None
    """The section that must have ended."""
    exitall: bool = False
    verifies: bool = False
    """Whether it reads back what it has written."""
    strided: bool = False
    """Whether it visits zones one after the other."""
    prioclass: int | None
    prio: int | None
    nice: int | None
    cgroup: str | None
    cgroup_weight: int | None
    replayed_ios: int | None = None
    """Recorded I/Os that it replays; None if it generates its own."""
    replayed_home: tuple[int, int] | None = None
    """The processor that the tasks of most of these I/Os had stayed on, and the number of all of its machine;
    None if they had stayed on none."""


class Workload(BaseModel):
    """A job file with the facts in its head, or a command.

    Holds the text: a stored run repeats without the file.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    source: str
    """Its origin, for messages: a path, or the name of a shipped workload."""
    text: str
    purpose: str
    control: bool
    focus: list[str]
    """Sections that are measured."""
    decide_by: str
    """Name of the metric that the verdict rests on."""
    tool: str = ""
    """The test of another program that the only job is, one of `TOOLS`; empty for most."""
    jobs: list[Job]
    """Empty for a command."""
    command: Command | None = None
    """The program that is measured; None for a job file."""
    beside: Workload | None = None
    """The load that runs while the command does, before its start and beyond its end; None for none."""
    host_only: list[JobOptionNote]
    """Options that fio honours on hosts and models refuse."""
    warnings: list[JobOptionNote]
    """Options that fio honours on hosts and models leave out."""
    notes: list[JobOptionNote] = []
    """Options that mean something else than fio's manual says, on all grounds."""
    leaves_regions: bool = Field(default=False, exclude=True)
    """Whether its strided jobs may go on behind their regions, to the end of the device, as fio's do."""

    def refuse_host_only(self, who: str, hint: str) -> None:
        """Refuses options that a generator other than fio does not know.

        Raises:
            JobFileError: at the first one.
        """
        for note in self.host_only:
            raise JobFileError(
                f"{who} does not know the option {note.option}"
                + (f" ({note.message})" if note.message else ""),
                source=self.source,
                line=note.line,
                option=note.option,
                hint=hint,
            )

    @property
    def load(self) -> Load:
        """The kind of load that it is."""
        if self.command is not None:
            return Load.COMMAND
        if self.tool:
            return Load.HDPARM
        return Load.REPLAY if self.replays else Load.FIO

    @property
    def replays(self) -> bool:
        """True if any section replays recorded I/Os."""
        return any(job.replayed_ios is not None for job in self.jobs)

    @property
    def reads(self) -> bool:
        """True if any section reads."""
        return any(job.reads for job in self.jobs)

    @property
    def writes(self) -> bool:
        """True if any section writes."""
        return any(job.writes for job in self.jobs)


def notes_on(workloads: Iterable[Workload]) -> list[str]:
    """Notes of the job parser on options that mean something else here, with file and line."""
    return as_notes(_said(workload, note) for workload in workloads for note in workload.notes)


def remarks_on(workloads: Iterable[Workload]) -> list[str]:
    """The same with the options that models leave out."""
    return as_notes(
        _said(workload, note) for workload in workloads for note in [*workload.notes, *workload.warnings]
    )


def _said(workload: Workload, note: JobOptionNote) -> str:
    return f"{workload.source}:{note.line}: {note.option}: {note.message}"


def shipped_workloads() -> dict[str, Path]:
    """The workloads that come with blklab, by name."""
    return shipped_files("workloads", ".fio")


def shipped_commands() -> dict[str, Path]:
    """The commands that come with blklab as workloads, by name."""
    return shipped_files("workloads", COMMAND_SUFFIX)


def load_workload(name_or_path: str) -> Workload:
    """Loads a shipped workload by name, a file by path, or a recording as ``trace:FILE``.

    A file is a job file, or the description of a command. As ``env:FILE`` a job file's ``${VARIABLES}`` are
    taken from the environment.

    Raises:
        UnknownNameError: if there is neither; close names are suggested.
        JobFileError: if the file cannot be read or has a mistake.
        SpecError: likewise for the description of a command.
        UsageError: for a recording that cannot be replayed as asked.
        FormatError: for a recording that cannot be read.
    """
    if is_replay(name_or_path):
        return _of_recording(name_or_path)
    if name_or_path.startswith(ENVIRONMENT):
        path = Path(name_or_path.removeprefix(ENVIRONMENT))
        return _read(path, name_or_path, environment=os.environ)
    shipped = shipped_workloads() | shipped_commands()
    if name_or_path in shipped:
        return _read(shipped[name_or_path], name_or_path)
    path = Path(name_or_path)
    if path.suffix in (".fio", COMMAND_SUFFIX) or "/" in name_or_path or is_file(path):
        return _read(path, name_or_path)
    close = did_you_mean(name_or_path, list(shipped))
    hint = f"{close} " if close else ""
    raise UnknownNameError(
        f"there is no workload {name_or_path!r}",
        hint=f"{hint}`blklab workloads` lists them; a job file of your own is named by its path",
    )


def _read(path: Path, source: str, environment: Mapping[str, str] | None = None) -> Workload:
    try:
        text = read_text(path).removeprefix("\ufeff")
    except OSError as error:
        raise JobFileError(f"cannot be read: {error.strerror}", source=source) from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise JobFileError("is not UTF-8 text", source=source, line=line) from error
    if path.suffix == COMMAND_SUFFIX:
        return workload_of_description(text, name=path.stem, source=source)
    if needs_expansion(text, environment=environment is not None):
        return _parse_expanded(expand(text, path, source, environment), path.stem, source)
    return parse_workload(text, name=path.stem, source=source)


def _parse_expanded(expanded: JobText, name: str, source: str) -> Workload:
    """Reads a job file that others are included in; remarks and mistakes name the file that they are in."""
    try:
        workload = parse_workload(expanded.text, name=name, source=source)
    except JobFileError as error:
        origin = expanded.origin(error.line)
        if origin is None:
            raise
        message = error.message.removeprefix(f"{source}:{error.line}: ")
        raise JobFileError(
            message, source=origin[0], line=origin[1], option=error.option, hint=error.hint
        ) from error

    def placed(note: JobOptionNote) -> JobOptionNote:
        file, line = expanded.origin(note.line) or (source, note.line)
        message = note.message if file == source else f"{note.message} ({file}:{line})"
        return note.model_copy(update={"line": line, "message": message})

    first = workload.jobs[0].name
    own = [
        JobOptionNote(job=first, option=option, line=line, message=message)
        for line, option, message in expanded.notes
    ]
    return workload.model_copy(
        update={
            "notes": [placed(note) for note in [*own, *workload.notes]],
            "warnings": [placed(note) for note in workload.warnings],
            "host_only": [placed(note) for note in workload.host_only],
        }
    )


def workload_of_command(line: str) -> Workload:
    """The workload of a command that was given as such."""
    return _of_command(Command(run=line, inline=True), name=name_of(line), source=line, text=line)


def workload_of_description(text: str, *, name: str, source: str) -> Workload:
    """The workload of a command that a TOML text describes.

    Raises:
        SpecError: for a mistake in it.
    """
    described = parse_command_file(text, source)
    workload = _of_command(described.as_command(), name=name, source=source, text=text)
    return workload.model_copy(
        update={
            "purpose": described.purpose,
            "control": described.control,
            "decide_by": described.decide_by,
        }
    )


def _of_command(command: Command, *, name: str, source: str, text: str) -> Workload:
    return Workload(
        name=name,
        source=source,
        text=text,
        purpose="",
        control=False,
        focus=[JOB],
        decide_by=DECIDES,
        jobs=[],
        command=command,
        host_only=[],
        warnings=[],
    )


def _of_recording(text: str) -> Workload:
    request, job_file, summary = read_replay(text)
    workload = parse_workload(job_file, name=request.name, source=text)
    first = workload.jobs[0]
    notes = [
        JobOptionNote(job=first.name, option="replay", line=first.line, message=note)
        for note in summary.notes
    ]
    return workload.model_copy(update={"notes": [*workload.notes, *notes]})


def parse_workload(text: str, *, name: str, source: str) -> Workload:
    """Reads a job file.

    Raises:
        JobFileError: for a mistake in the file or its head, with the line.
    """
    try:
        parsed = json.loads(_core.parse_jobs(text, source))
    except _core.JobFileError as error:
        raise JobFileError(error.message, source=source, line=error.line, option=error.option) from error
    jobs = [Job.model_validate(job) for job in parsed["jobs"]]
    head = _read_head(text, source)
    names = list(dict.fromkeys(job.name for job in jobs))
    focus = [part.strip() for part in head["focus"][0].split(",")] if "focus" in head else names
    for section in focus:
        if section not in names:
            raise JobFileError(f"focus names no section: {section!r}", source=source, line=head["focus"][1])
    control_text, control_line = head.get("control", ("no", 0))
    if control_text.lower() not in _YES:
        raise JobFileError("control takes yes or no", source=source, line=control_line)
    tool, tool_line = head.get("tool", ("", 0))
    if tool and (tool not in TOOLS or len(jobs) != 1):
        known = " or ".join(TOOLS)
        raise JobFileError(f"tool takes {known}, with a single section", source=source, line=tool_line)
    focused = [job for job in jobs if job.name in focus]
    by_default = "throughput" if all(job.sequential for job in focused) else "iops"
    return Workload(
        name=name,
        source=source,
        text=text,
        purpose=head.get("purpose", ("", 0))[0],
        control=_YES[control_text.lower()],
        focus=focus,
        decide_by=head.get("decide-by", (by_default, 0))[0],
        tool=tool,
        jobs=jobs,
        host_only=[JobOptionNote.model_validate(note) for note in parsed["host_only"]],
        warnings=[JobOptionNote.model_validate(note) for note in parsed["warnings"]],
        notes=[JobOptionNote.model_validate(note) for note in parsed["notes"]],
    )


def _read_head(text: str, source: str) -> dict[str, tuple[str, int]]:
    """Keys of the comment head with their lines; a key given twice is a mistake."""
    head: dict[str, tuple[str, int]] = {}
    for line, content in enumerate(text.splitlines(), start=1):
        stripped = content.strip()
        if stripped and stripped[0] not in ";#":
            break
        match = _HEAD.fullmatch(stripped)
        if match is None:
            continue
        key = match[1].lower()
        if key in head:
            raise JobFileError(f"{key} is given twice", source=source, line=line)
        head[key] = (match[2], line)
    return head
