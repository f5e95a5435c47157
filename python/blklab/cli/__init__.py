"""The command line: one file a subcommand. A new one is a file beside this one and a name in `_COMMANDS`."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from importlib import import_module

import click

import blklab
from blklab.cli import output
from blklab.errors import BlklabError, ExitCode, InterruptedRunError, SpaceError
from blklab.interrupts import signals_as_exceptions

_COMMANDS = (
    "compare",
    "run",
    "explain",
    "top",
    "targets",
    "workloads",
    "kernel",
    "fidelity",
    "runs",
    "report",
    "analyse",
    "study",
    "apply",
    "restore",
    "doctor",
)
"""In the order in which the help lists them; the command ``x`` is `blklab.cli.x.command`."""

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

DEBUG_VARIABLE = "BLKLAB_DEBUG"

_EPILOG = """\b
Exit codes: 0 done · 1 a defect in blklab · 2 the request is wrong ·
3 this machine lacks something · 4 refused for safety · 5 the run failed ·
6 data cannot be read · 7 only a part could be used · 128+N ended by signal N (130: Ctrl-C)."""


class _LazyGroup(click.Group):
    """Imports a command's module only when it is asked for, so that ``--help`` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = import_module(f"blklab.cli.{cmd_name}").command
        return command


@click.command(cls=_LazyGroup, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(blklab.__version__, prog_name="blklab")
def command_line() -> None:
    """Which Linux I/O scheduler, for this disk and this work, and how sure are we?

    `blklab compare` answers for the disk beneath the current directory (as root) or for a simulated one.
    """


def main(arguments: list[str] | None = None) -> None:
    """Runs the command line and ends the process with a documented exit code."""
    output.open_closed_streams()
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """Runs the command line and gives its exit code."""
    try:
        with signals_as_exceptions():
            result = command_line.main(args=arguments, prog_name="blklab", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of a pipe went away (`| head`): nothing is wrong, and nobody is left to be told.
        with contextlib.suppress(OSError):
            output.drop_output()
        return ExitCode.OK
    except (BlklabError, click.ClickException) as error:
        return _report(error)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _FULL:
            with contextlib.suppress(OSError):
                output.drop_output()
            where = error.filename or "standard output or a temporary file"
            return _report(SpaceError(f"{where}: cannot be written: {error.strerror}"))
        if os.environ.get(DEBUG_VARIABLE):
            raise
        output.print_error(
            f"a defect in blklab: {type(error).__name__}: {error}",
            f"please report it with what {DEBUG_VARIABLE}=1 prints in addition; settings were restored",
        )
        return ExitCode.INTERNAL
    return result if isinstance(result, int) else ExitCode.OK


def _report(error: BlklabError | click.ClickException) -> int:
    """Prints an expected error and gives its exit code."""
    match error:
        case InterruptedRunError():
            output.print_error(error.message, error.hint)
            return 128 + error.signal_number
        case BlklabError():
            output.print_error(error.message, error.hint)
            return error.exit_code
        case click.exceptions.NoArgsIsHelpError():
            error.show()
        case click.UsageError():
            hint = f"`{error.ctx.command_path} --help` lists the options" if error.ctx else None
            output.print_error(error.format_message(), hint)
        case _:
            output.print_error(error.format_message(), None)
    return ExitCode.USAGE
