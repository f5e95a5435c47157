"""Options of an experiment that belong to its commands, and how they change those commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from blklab.errors import SpecError
from blklab.quantities.units import MOST_BYTES, MOST_NS, format_bytes, format_duration
from blklab.spec.commands import DEFAULT_SPACE_BYTES, DEFAULT_TIME_LIMIT_NS, JOB
from blklab.spec.forms import DURATION, PATHS, SIZE, SWITCH, WORD
from blklab.spec.options import Option, Topic
from blklab.spec.permits import Beside, require
from blklab.spec.workloads import Workload, load_workload

_SEE = "measure-a-program.md"
_TAKEN_BY = ("compare", "run")


class CommandOptions(BaseModel):
    """Options that every command of an experiment has in common."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cold: Annotated[
        bool,
        Option(
            SWITCH,
            "Run commands on a file system of blklab's own that is unmounted and mounted again before each "
            "run, so that its page cache is empty.",
            Topic.COMMANDS,
            see=_SEE,
            commands=_TAKEN_BY,
        ),
    ] = False
    beside: Annotated[
        str | None,
        Option(
            WORD,
            "Load on the same disk that begins before each run of a command and ends after it: a job file, "
            "or a shipped workload.",
            Topic.COMMANDS,
            metavar="NAME|FILE.fio",
            see=_SEE,
            names="workloads",
            commands=_TAKEN_BY,
        ),
    ] = None
    set_up: Annotated[
        str | None,
        Option(
            WORD,
            "Shell command before the first run of --command, such as one that unpacks a tree; not measured.",
            Topic.COMMANDS,
            metavar="COMMAND",
            see=_SEE,
            commands=_TAKEN_BY,
        ),
    ] = None
    repeat_set_up: Annotated[
        str | None,
        Option(
            WORD,
            "Shell command before each run of --command, such as 'make clean'; not measured.",
            Topic.COMMANDS,
            metavar="COMMAND",
            see=_SEE,
            commands=_TAKEN_BY,
        ),
    ] = None
    space_bytes: Annotated[
        int | None,
        Field(gt=0, le=MOST_BYTES),
        Option(
            SIZE,
            "Room that --command needs, which is also the size of its own file system on a directory.",
            Topic.COMMANDS,
            name="space",
            metavar="SIZE",
            default_text=format_bytes(DEFAULT_SPACE_BYTES),
            see=_SEE,
            commands=_TAKEN_BY,
        ),
    ] = None
    guest_files: Annotated[
        list[str],
        Option(
            PATHS,
            "File or folder of this machine, also with wildcards, that --command needs in a guest, beside "
            "the programs that it names and their libraries; other targets have all files.",
            Topic.COMMANDS,
            name="guest_file",
            metavar="PATH",
            see=_SEE,
            commands=_TAKEN_BY,
        ),
    ] = []
    time_limit_ns: Annotated[
        int | None,
        Field(gt=0, le=MOST_NS),
        Option(
            DURATION,
            "Most time for a run of --command, and for each set-up; a run that takes longer has failed.",
            Topic.COMMANDS,
            name="time_limit",
            metavar="TIME",
            default_text=format_duration(DEFAULT_TIME_LIMIT_NS),
            see=_SEE,
            commands=_TAKEN_BY,
        ),
    ] = None


OF_INLINE = {
    "set_up": "set_up",
    "repeat_set_up": "repeat_set_up",
    "space_bytes": "space",
    "time_limit_ns": "time_limit",
    "guest_files": "guest_file",
}
"""Fields that change only commands given as such, which say nothing about these themselves; by option."""


def with_command_options(workloads: Sequence[Workload], given: dict[str, Any]) -> list[Workload]:
    """The workloads of an experiment with its options for commands applied.

    Args:
        workloads: Job files and commands.
        given: Fields of `CommandOptions` that were given.

    Raises:
        SpecError: for an option that no command can take.
    """
    commands = [workload.command for workload in workloads if workload.command is not None]
    inline = any(command.inline for command in commands)
    for field in CommandOptions.model_fields:
        if not given.get(field):
            continue
        name = OF_INLINE.get(field, field)
        if field in OF_INLINE and not inline:
            raise SpecError(f"{name} belongs to a command, and none is given", hint="give --command COMMAND")
        if not commands:
            raise SpecError(
                f"{name} is for commands, and every workload here is a job file",
                hint="give --command COMMAND, or a workload that is a command (`blklab workloads`)",
            )
    beside = _load_beside(given["beside"]) if given.get("beside") else None
    cold = {"cold": True} if given.get("cold") else {}
    own = {field: given[field] for field in OF_INLINE if given.get(field)}
    changed = []
    for workload in workloads:
        if workload.command is not None:
            update = cold | own if workload.command.inline else cold
            command = workload.command.model_copy(update=update)
            focus = [JOB] if beside is None else [JOB, *beside.focus]
            changed.append(workload.model_copy(update={"command": command, "beside": beside, "focus": focus}))
        else:
            changed.append(workload)
    return changed


def _load_beside(name: str) -> Workload:
    """The load beside all commands. Its measured sections are measured, too.

    Raises:
        SpecError: if it is a command itself or a recording, or has a section with the name that the command
            has in reports.
    """
    beside = load_workload(name)
    require(beside, "host", beside=Beside.A_COMMAND, name=name)
    if any(job.name == JOB for job in beside.jobs):
        raise SpecError(f"{name}: a section beside a command cannot be called {JOB!r}", hint="rename it")
    return beside
