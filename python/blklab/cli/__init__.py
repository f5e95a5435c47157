"""The command line: one file a subcommand. A new one is a file beside this one and a line in `_GROUPS`.

Other packages add theirs by an entry point (`blklab.registry`).
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

import blklab
from blklab.cli import output
from blklab.cli.address_space import require_address_space
from blklab.cli.commands import CommandGroup, MovedCommand, moved, option_mistake
from blklab.cli.system_errors import explained, is_full
from blklab.errors import BlklabError, ExitCode, InterruptedRunError, RequirementError
from blklab.linux.journal.unrestored import errors_beside_results
from blklab.linux.processes.signals import shielded, signals_as_exceptions
from blklab.registry import PluginWarning, Registry

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_GROUPS = {
    "Ask": {
        "advise": "Ask what runs here, compare the schedulers for it, and set the best.",
        "compare": "Find out which scheduler is best, and how sure that is.",
        "run": "Run one workload under one scheduler, once, and show what it did.",
        "tune": "Find settings that beat the default, on a model, and confirm them.",
        "apply": "Set a disk's scheduler, now and at every boot.",
    },
    "Look": {
        "targets": "List the disks of this machine and the modelled devices.",
        "workloads": "List the shipped workloads, or check and describe your own.",
        "top": "Show which tasks do I/O, in which class and at which level.",
        "record": "Record what reaches the disks beneath a path.",
        "where": "Show where recorded I/O waits, and who held the device meanwhile.",
        "convert": "Convert a recording to Parquet or NumPy.",
        "explain": "Draw one simulated run: positions, turns, depths, latencies.",
        "playground": "Write a page in which simulated disks can be watched and changed.",
    },
    "Models": {
        "calibrate": "Measure a disk or this processor for the models.",
        "iocost": "Determine io.cost's parameters for a disk.",
        "study": "Run published experiments again and compare the figures.",
        "fidelity": "Show how far the simulator and a real kernel differ.",
    },
    "Kernels": {
        "kernel": "Build guest kernels, judge a patch, find the commit that made one slower.",
    },
    "Results": {
        "runs": "List stored runs, or compare two of them.",
        "report": "Show a stored run: verdict, figures, warnings.",
        "fleet": "Find out which scheduler is best for a class of drives, from many runs.",
        "analyse": "Analyse the results of other benchmark tools.",
    },
    "This program": {
        "doctor": "Check what this machine can do, and say how to get the rest.",
        "restore": "Restore the settings that a killed run left changed.",
        "completion": "Print the completion script for bash, zsh or fish.",
        "help": "Show the help of a command.",
    },
}
"""Commands in the order of the help; the command ``x`` is `blklab.cli.x.command`."""


def _checked(name: str, command: Any) -> click.Command:
    if not isinstance(command, click.Command):
        raise TypeError(f"the command {name} is a {type(command).__name__}, not a click.Command")
    return command


COMMANDS = Registry(
    "blklab.commands",
    {name: f"blklab.cli.{name}:command" for commands in _GROUPS.values() for name in commands},
    _checked,
)
_MOVED = {
    "judge": MovedCommand("judge", "kernel judge"),
    "bisect": MovedCommand("bisect", "kernel bisect"),
}
"""Old spellings, which still work."""
_EXAMPLES = (
    ("which scheduler for the disk beneath this directory, as root", "blklab compare"),
    ("the same question of a modelled disk, without root", "blklab compare sim:hdd-7200 -w many-readers"),
    ("what can this machine do?", "blklab doctor"),
)

DEBUG_VARIABLE = "BLKLAB_DEBUG"
COMPLETION_VARIABLE = "_BLKLAB_COMPLETE"
"""Set by shells that ask what could come next on their line."""

EXIT_MEANINGS = {
    ExitCode.OK: "done",
    ExitCode.INTERNAL: "a defect in blklab",
    ExitCode.USAGE: "the request is wrong",
    ExitCode.REQUIREMENT: "this machine lacks something",
    ExitCode.REFUSED: "refused for safety",
    ExitCode.RUN_FAILED: "the run or the recorded command failed",
    ExitCode.DATA: "data cannot be read",
    ExitCode.PARTIAL: "only a part could be used",
    ExitCode.SLOWER: "a judged kernel or run is slower",
}
_EPILOG = "Exit codes: " + " · ".join(
    [
        *(f"{code.value} {meaning}" for code, meaning in EXIT_MEANINGS.items()),
        "128+N ended by signal N (130: Ctrl-C).",
    ]
)


class _LazyGroup(CommandGroup):
    """Imports a command's module only when that command is asked for, so that ``--help`` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name in _MOVED:
            require_address_space(cmd_name)
            return moved(_MOVED[cmd_name], cmd_name)
        if cmd_name not in COMMANDS:
            return None
        require_address_space(cmd_name)
        # An exception while it builds validators makes pydantic-core panic, with a message of Rust's.
        with shielded():
            command = COMMANDS[cmd_name]
        # Python binds the module of the command `run` in this package, where it would hide the function.
        globals().update(run=_FUNCTION)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[Any]]:
        """Commands that begin so, from the table above: click would import every one of them at each Tab."""
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - for completion only

        named = chain.from_iterable(commands.items() for commands in self.headed_commands(ctx).values())
        return [CompletionItem(name, help=text) for name, text in named if name.startswith(incomplete)]

    def headed_commands(self, ctx: click.Context) -> Mapping[str, Mapping[str, str]]:
        """The table above, without importing every command for the first line of its help."""
        del ctx
        own = {name for commands in _GROUPS.values() for name in commands}
        added = {name: COMMANDS[name].get_short_help_str(limit=200) for name in COMMANDS if name not in own}
        return {**_GROUPS, "Of other packages": added} if added else _GROUPS


def _print_version(ctx: click.Context, _option: click.Parameter, asked: bool) -> None:
    """Looks the version up only on request: importlib.metadata takes as long to import as click."""
    if asked:
        output.print_document(f"blklab, version {blklab.__version__}")
        ctx.exit()


@click.command(
    cls=_LazyGroup, epilog=_EPILOG, examples=_EXAMPLES, context_settings={"help_option_names": ["--help"]}
)
@click.option(
    "-V",
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
def command_line() -> None:
    """Which Linux I/O scheduler, for this disk and this work, and how sure are we?

    `blklab compare` answers for the disk beneath the current directory (as root) or for a simulated one.
    """


def main(arguments: list[str] | None = None) -> None:
    """Runs the command line and ends the process with a documented exit code."""
    output.open_closed_streams()
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """Runs the command line and gives its exit code.

    Settings that could not be restored are an error of their own, after the command's result or error.
    """
    if instruction := os.environ.get(COMPLETION_VARIABLE):
        return _complete(instruction)
    with errors_beside_results() as unrestored:
        code = _run(arguments)
    for error in unrestored:
        code = _report(error)
    return code


_FUNCTION = run


def _run(arguments: list[str] | None) -> int:
    stdout = sys.stdout
    try:
        with signals_as_exceptions(), output.warnings_as_notes(PluginWarning):
            result = command_line.main(args=arguments, prog_name="blklab", standalone_mode=False)
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as error:
        # The reader of a pipe went away (`| head`), which is no error; of this click makes an exit with 1.
        if isinstance(error, SystemExit) and sys.stdout is stdout:
            raise
        with contextlib.suppress(OSError):
            output.drop_output()
        return ExitCode.OK
    except (BlklabError, InterruptedRunError, click.ClickException) as error:
        return _report(error)
    except MemoryError:
        return _report(RequirementError("out of memory", hint="see `ulimit -v` and `free -m`"))
    except Exception as error:
        if is_full(error):
            with contextlib.suppress(OSError):
                output.drop_output()
        if (known := explained(error, sys.argv[1:] if arguments is None else arguments)) is not None:
            return _report(known)
        if os.environ.get(DEBUG_VARIABLE):
            raise
        output.print_error(
            f"a defect in blklab: {type(error).__name__}: {error}",
            f"please report it with the traceback that {DEBUG_VARIABLE}=1 prints; settings were restored",
        )
        return ExitCode.INTERNAL
    return result if isinstance(result, int) else ExitCode.OK


def _complete(instruction: str) -> int:
    """Answers a shell. A failure offers nothing: there is no room for messages on a line that is typed."""
    with contextlib.suppress(Exception):
        output.print_document(import_module("blklab.cli.reference.completion").complete(instruction))
    return ExitCode.OK


def _report(error: BlklabError | InterruptedRunError | click.ClickException) -> int:
    """Prints an expected error and gives its exit code."""
    match error:
        case InterruptedRunError():
            output.print_error(error.message, None)
            return 128 + error.signal_number
        case BlklabError():
            output.print_error(error.message, error.hint)
            return error.exit_code
        case click.exceptions.NoArgsIsHelpError():
            error.show()
        case click.NoSuchOption():
            hint = f"`{error.ctx.command_path} --help` lists the options" if error.ctx else None
            output.print_error(option_mistake(error), hint)
        case click.UsageError() if isinstance(error.ctx and error.ctx.command, click.Group):
            hint = f"`{error.ctx.command_path} --help` lists the commands" if error.ctx else None
            output.print_error(error.format_message(), hint)
        case click.UsageError():
            hint = f"`{error.ctx.command_path} --help` lists the options" if error.ctx else None
            output.print_error(error.format_message(), hint)
        case _:
            output.print_error(error.format_message(), None)
    return ExitCode.USAGE
