"""Commands as workloads: programs that are measured as they are, with their preparation.

A command is given as such (``--command 'make -j2'``) or described in a TOML file::

    purpose = "git status in a tree of 20,000 files, from a cold page cache"
    command = "git -C tree status"
    set_up = "tar xf /srv/tree.tar"
    cold = true
    space = "512m"

    [requires]
    git = "git"

Every line runs as ``/bin/sh -c LINE`` in a directory of the target's that is empty at first. The variable
``BLKLAB_DIR`` and the placeholder ``{dir}`` name that directory.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from blklab.errors import BlklabError, SpecError
from blklab.quantities.units import parse_duration_ns, parse_size_bytes
from blklab.spec.mistakes import first_mistake

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DIRECTORY_VARIABLE = "BLKLAB_DIR"
JOB = "command"
"""Name of the command among the jobs of its run; those of a load beside it are called as their sections."""
DECIDES = "wall_time"
DEFAULT_SPACE_BYTES = 1 << 30
DEFAULT_TIME_LIMIT_NS = 600_000_000_000

_PLACEHOLDER = re.compile(r"(?<!\$)\{dir\}")
_PROGRAM = re.compile(r"[A-Za-z0-9_.+-]+")
_LONGEST_NAME = 40


class Command(BaseModel):
    """A command that is measured, and the steps around it that are not."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run: str
    """The shell command whose time decides."""
    set_up: str = ""
    """Runs once, before the first run; may be empty."""
    repeat_set_up: str = ""
    """Runs before each run; may be empty."""
    cold: bool = False
    """Whether its file system is unmounted and mounted again before each run: its page cache is empty."""
    space_bytes: int = DEFAULT_SPACE_BYTES
    """Room that it needs."""
    time_limit_ns: int = DEFAULT_TIME_LIMIT_NS
    """Most time for the command and for each of its set-ups."""
    requires: dict[str, str] = {}
    """Debian's packages, by a program in PATH or by a shell command that succeeds where all is there."""
    guest_files: list[str] = []
    """Files and folders of this machine that it needs in a guest, beside the programs that its lines name."""
    inline: bool = False
    """Whether it was given as a command, not in a file."""


def guest_paths(paths: list[str]) -> list[str]:
    """The same paths.

    Raises:
        SpecError: if one is not absolute, so that it would be another file from another directory.
    """
    for path in paths:
        if not path.startswith("/"):
            raise SpecError(f"{path!r} is not an absolute path", hint=f"write {Path.cwd() / path}")
    return paths


def in_directory(line: str, directory: str) -> str:
    """A command line with its placeholders replaced by the directory, quoted for the shell."""
    return _PLACEHOLDER.sub(lambda _: shlex.quote(directory), line)


def required_test(requirement: str) -> str:
    """The shell command that succeeds if a requirement is met."""
    return f"command -v {requirement}" if _PROGRAM.fullmatch(requirement) else requirement


def name_of(line: str) -> str:
    """The name of a command given as such: the command itself, shortened."""
    name = " ".join(line.split())
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _text_only(parse: Callable[[str], int]) -> Callable[[Any], int]:
    """A validator of text with a unit."""

    def validate(written: Any) -> int:
        if not isinstance(written, str):
            raise ValueError(f"{written!r} is not text with a unit")
        return parse(written)

    return validate


class CommandFile(BaseModel):
    """A TOML file that describes a command, as written."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    purpose: str = ""
    command: str = Field(min_length=1)
    set_up: str = ""
    repeat_set_up: str = ""
    cold: bool = False
    control: bool = False
    space: Annotated[int, BeforeValidator(_text_only(parse_size_bytes))] = DEFAULT_SPACE_BYTES
    time_limit: Annotated[int, BeforeValidator(_text_only(parse_duration_ns))] = DEFAULT_TIME_LIMIT_NS
    decide_by: str = DECIDES
    guest_file: list[str] = []
    requires: dict[str, str] = {}

    @field_validator("guest_file")
    @classmethod
    def _absolute(cls, paths: list[str]) -> list[str]:
        return guest_paths(paths)

    def as_command(self) -> Command:
        """The command that it describes."""
        return Command(
            run=self.command,
            set_up=self.set_up,
            repeat_set_up=self.repeat_set_up,
            cold=self.cold,
            space_bytes=self.space,
            time_limit_ns=self.time_limit,
            requires=self.requires,
            guest_files=self.guest_file,
        )


def parse_command_file(text: str, source: str) -> CommandFile:
    """Reads a description.

    Raises:
        SpecError: if it is not TOML, or has an unknown key or a wrong value.
    """
    try:
        return CommandFile.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{source}: is not valid TOML: {error}") from error
    except ValidationError as error:
        raise SpecError(
            f"{source}: {first_mistake(error)}", hint=f"known are {', '.join(CommandFile.model_fields)}"
        ) from error
    except BlklabError as error:
        raise SpecError(f"{source}: {error.message}", hint=error.hint) from error
