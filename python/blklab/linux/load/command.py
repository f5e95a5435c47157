"""Runs a command in a directory and measures all of its processes; none of them outlives the run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from blklab.errors import MissingToolError
from blklab.linux.load import command_supervisor
from blklab.linux.load.load_process import LoadProcess, load_process
from blklab.linux.processes.ending import ending
from blklab.linux.processes.exit_accounting import (
    ExitAccounting,
    delays_are_accounted,
    io_delay_of_descendants,
)
from blklab.quantities.units import NS_PER_SECOND, format_duration
from blklab.records.samples import CommandSample, JobSample
from blklab.spec.commands import DIRECTORY_VARIABLE, JOB, Command, in_directory, required_test

SHELL = "/bin/sh"
_OWN_PROC = ("unshare", "--propagation", "slave", "--mount-proc")
"""A /proc of the command's PID namespace: otherwise /proc/$$ is another process there.

What is unmounted outside goes within it too: it must not hold the file systems of other runs.
"""
_MOST_LINES = 4
"""Of a failed command's errors."""
_LONGEST_LINE = 200
_GRACE_S = 60
"""Time for the processes of a command that took too long to disappear."""
_POLL_S = 0.001
_START_LIMIT_S = 30
_TEST_LIMIT_S = 120


@dataclass(frozen=True)
class CommandOutcome:
    """The end of a command."""

    job: JobSample | None
    """None if it failed."""
    error: str | None
    """Its exit code and its last words; None if it succeeded."""


def shell_command(line: str, directory: Path) -> list[str]:
    """Program and arguments that run a command line."""
    return [SHELL, "-c", in_directory(line, str(directory))]


def check_requirements(name: str, command: Command) -> None:
    """Makes sure that this machine has what a command requires.

    Args:
        name: The command's, for messages.
        command: With its requirements.

    Raises:
        MissingToolError: for the first that is missing, with the package that has it.
    """
    for requirement, package in command.requires.items():
        test = subprocess.run(
            [SHELL, "-c", required_test(requirement)],
            check=False,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_TEST_LIMIT_S,
        )
        if test.returncode:
            raise MissingToolError(
                f"{name} needs {package}: `{required_test(requirement)}` fails", hint=f"apt install {package}"
            )


def run_command(line: str, directory: Path, *, time_limit_ns: int) -> CommandOutcome:
    """Runs a command line in a directory, and ends what it leaves behind.

    Its standard input and output are ``/dev/null``.

    Args:
        line: For ``/bin/sh -c``.
        directory: Its working directory.
        time_limit_ns: After this time it is killed and has failed.

    Raises:
        RunFailedError: if its processes cannot be killed.
    """
    if not directory.is_dir():
        return CommandOutcome(None, f"its directory {directory} is gone")
    limit_s = time_limit_ns / NS_PER_SECOND
    supervisor = [sys.executable, "-I", "-S", command_supervisor.__file__, repr(limit_s)]
    with ExitStack() as stack:
        accounting = ExitAccounting.opened()
        if accounting is not None:
            stack.enter_context(accounting)
        process = stack.enter_context(
            load_process(
                [*_OWN_PROC, *supervisor, *shell_command(line, directory)],
                directory,
                limit_s=limit_s + _GRACE_S,
                too_long=f"the command could not be killed after {format_duration(time_limit_ns)}",
                environment={**os.environ, DIRECTORY_VARIABLE: str(directory)},
            )
        )
        begun_ns = time.monotonic_ns()
        first = _first_process(process)
        ended = process.wait()
        io_delay_ns = _io_delay_ns(accounting, first, within_ns=time.monotonic_ns() - begun_ns)
    try:
        report = json.loads(ended.output.rpartition("\n")[2])
    except ValueError:
        words = _last_lines(ended.output) or f"exit code {ended.returncode}"
        return CommandOutcome(None, f"the command could not be started: {words}")
    if report["timed_out"]:
        took = format_duration(time_limit_ns)
        return CommandOutcome(
            None, _with_words(f"it still ran after {took} and was killed", report["errors"])
        )
    if report["exit_code"]:
        return CommandOutcome(None, _with_words(ending(report["exit_code"]), report["errors"]))
    sample = CommandSample(
        read_bytes=report["read_bytes"],
        written_bytes=report["written_bytes"],
        major_faults=report["major_faults"],
        io_delay_ns=io_delay_ns,
    )
    job = JobSample(
        name=JOB,
        clones=1,
        runtime_ns=report["wall_ns"],
        directions=[],
        cpu_user_ns=report["user_ns"],
        cpu_system_ns=report["system_ns"],
        context_switches=report["context_switches"],
        command=sample,
    )
    return CommandOutcome(job, None)


def _first_process(process: LoadProcess) -> int | None:
    """PID of the supervisor; None if it ended before it was seen."""
    limit = time.monotonic() + _START_LIMIT_S
    while process.running and time.monotonic() < limit:
        found = process.program
        if found is not None:
            return found
        time.sleep(_POLL_S)
    return None


def _io_delay_ns(accounting: ExitAccounting | None, first: int | None, *, within_ns: int) -> int | None:
    """Waits of all tasks of a command; None if the kernel did not account each of them."""
    if accounting is None or first is None or not delays_are_accounted():
        return None
    tasks = accounting.ended_tasks()
    return None if tasks is None else io_delay_of_descendants(tasks, first, within_ns=within_ns)


def _with_words(reason: str, errors: str) -> str:
    words = _last_lines(errors)
    return f"{reason}: {words}" if words else reason


def _last_lines(text: str) -> str:
    lines = [line.strip()[:_LONGEST_LINE] for line in text.splitlines() if line.strip()]
    return "; ".join(lines[-_MOST_LINES:])
