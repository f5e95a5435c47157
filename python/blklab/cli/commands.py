"""The form of every command: examples in its help, ``-h`` in brief, suggestions for misspelt names.

Imports only click, so that ``blklab --help`` stays quick.
"""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import click

from blklab.cli import output
from blklab.errors import close_names, did_you_mean
from blklab.report import terminal

OWN_OPTIONS = "Options"
"""The heading of options that belong to no topic."""
_CLOSE_OPTION = 0.75
"""Similarity from which an option is suggested for a misspelt one."""
_WIDEST_NAMES = 30
_SHORT = len("-v")
_LAST = 1_000
"""Rank of the heading of a command's own options."""


class Example(NamedTuple):
    """One example of a command's help."""

    purpose: str
    command: str


class HeadedOption(click.Option):
    """An option that help lists under a heading of its own."""

    heading = OWN_OPTIONS
    rank = 0
    """Of the heading, among those of the command."""
    in_brief = True
    """Whether ``-h`` shows it too."""


class CommandHelp(click.Command):
    """Help by headings and with examples; ``-h`` shows one line for each option.

    Args:
        examples: Commands that work as they are printed, the most usual first.
    """

    def __init__(self, *arguments: Any, examples: Sequence[tuple[str, str]] = (), **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.examples = [Example(*one) for one in examples]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parses the command line.

        Raises:
            click.NoSuchOption: if a long option has one dash, whose letters click would take one by one.
        """
        known = {name for parameter in self.get_params(ctx) for name in parameter.opts}
        for word in args:
            if word == "--" or (isinstance(self, click.Group) and not word.startswith("-")):
                break
            name = word.partition("=")[0]
            if name not in known and f"-{name}" in known and len(name) > _SHORT:
                raise click.NoSuchOption(name, possibilities=[f"-{name}"], ctx=ctx)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The parameters, ``-h`` and ``--help`` last."""
        brief = click.Option(
            ["-h"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_brief_help,
            help="Show help in brief and exit.",
        )
        *parameters, full = super().get_params(ctx)
        return [*parameters, brief, full]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the list of each heading, and a group's commands."""
        for heading, parameters in parameters_by_heading(self, ctx).items():
            records = _records(parameters, ctx)
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)
        if isinstance(self, click.Group):
            self.format_commands(ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the examples, then the epilog."""
        self._format_examples(formatter)
        super().format_epilog(ctx, formatter)

    def brief_help(self, ctx: click.Context) -> str:
        """Help that fits a screen: the first paragraph, an example, one line for each option."""
        formatter = ctx.make_formatter()
        self.format_usage(ctx, formatter)
        with formatter.indentation():
            formatter.write_paragraph()
            formatter.write_text(" ".join((self.help or "").split("\n\n")[0].split()))
        self._format_examples(formatter, most=1)
        by_heading = parameters_by_heading(self, ctx)
        shown = [one for group in by_heading.values() for one in group if getattr(one, "in_brief", True)]
        _write_lines(formatter, OWN_OPTIONS, _records(shown, ctx))
        if isinstance(self, CommandGroup):
            with formatter.section("Commands"):
                formatter.write_dl(
                    [(name, ", ".join(one)) for name, one in self.headed_commands(ctx).items()]
                )
        left_out = [name for name, group in by_heading.items() if group and group[0] not in shown]
        more = f"More options ({', '.join(map(str.lower, left_out))}): " if left_out else "All help: "
        formatter.write_paragraph()
        formatter.write_text(f"{more}{ctx.command_path} --help")
        return formatter.getvalue().rstrip("\n")

    def _format_examples(self, formatter: click.HelpFormatter, most: int | None = None) -> None:
        if not self.examples:
            return
        with formatter.section("Examples" if most != 1 else "Example"):
            for purpose, command in self.examples[:most]:
                formatter.write(f"{'':{formatter.current_indent}}# {purpose}\n")
                formatter.write(f"{'':{formatter.current_indent}}{command}\n")


class CommandGroup(CommandHelp, click.Group):
    """A group of commands; a misspelt one is answered with those that are like it."""

    command_class = CommandHelp

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of their declaration."""
        del ctx
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the commands under their headings, each with its first sentence."""
        for heading, commands in self.headed_commands(ctx).items():
            with formatter.section(heading):
                formatter.write_dl(list(commands.items()))

    def headed_commands(self, ctx: click.Context) -> Mapping[str, Mapping[str, str]]:
        """Commands with a line about each, by the heading under which help lists them."""
        found = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        rows = {name: one.get_short_help_str(limit=200) for name, one in found.items() if one is not None}
        return {"Commands": rows}

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds the command.

        Raises:
            click.UsageError: if there is none of that name.
        """
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            raise unknown_command(name, self.list_commands(ctx), ctx)
        return super().resolve_command(ctx, args)


class MovedCommand(NamedTuple):
    """A command that has a new place; its old spelling still works, with a note."""

    module: str
    now: str
    """The command as it is typed now, without the program's name."""


def moved(place: MovedCommand, before: str) -> click.Command:
    """The command under its old spelling, which help does not list.

    Args:
        place: The place it has moved to.
        before: The old spelling, without the program's name.
    """
    command: click.Command = import_module(f"blklab.cli.{place.module}").command
    invoke = command.callback
    old = copy.copy(command)
    old.hidden = True

    def with_note(**arguments: Any) -> Any:
        note_new_spelling(before, place.now)
        return None if invoke is None else invoke(**arguments)

    old.callback = with_note
    return old


def note_new_spelling(before: str, now: str) -> None:
    """Says that a command has a new spelling; the old one still works."""
    terminal.print_note(f"`blklab {before}` is now `blklab {now}`; the old spelling still works")


def unknown_command(name: str, known: Sequence[str], ctx: click.Context) -> click.UsageError:
    """The error for a command that does not exist, with those that are like it."""
    close = did_you_mean(name, known)
    return click.UsageError(f"there is no command {name!r}{f'; {close}' if close else ''}", ctx)


def option_mistake(error: click.NoSuchOption) -> str:
    """The message for an option that does not exist, with the one that is like it."""
    close = close_names(error.option_name, list(error.possibilities or ()), cutoff=_CLOSE_OPTION)
    suggestion = f"; did you mean {' or '.join(close)}?" if close else ""
    return f"there is no option {error.option_name}{suggestion}"


def parameters_by_heading(command: click.Command, context: click.Context) -> dict[str, list[click.Parameter]]:
    """A command's parameters by the heading under which help lists them, its own last."""
    found: dict[tuple[int, str], list[click.Parameter]] = {}
    for parameter in command.get_params(context):
        key = (_LAST, OWN_OPTIONS)
        if isinstance(parameter, HeadedOption):
            key = (parameter.rank, parameter.heading)
        found.setdefault(key, []).append(parameter)
    return {heading: found[rank, heading] for rank, heading in sorted(found)}


def _records(parameters: Sequence[click.Parameter], context: click.Context) -> list[tuple[str, str]]:
    """Options as help writes them: spelling and text."""
    flags = [one for one in parameters if isinstance(one, click.Option)]
    return [record for one in flags if (record := one.get_help_record(context)) is not None]


def _write_lines(formatter: click.HelpFormatter, heading: str, rows: Sequence[tuple[str, str]]) -> None:
    """Writes a list with one line a row, cut where the terminal ends."""
    if not rows:
        return
    widest = min(max(len(name) for name, _ in rows), _WIDEST_NAMES)
    width = min(shutil.get_terminal_size().columns, formatter.width + 2)
    with formatter.section(heading):
        for name, text in rows:
            sentence = text.partition(". ")[0].rstrip(".")
            line = f"  {name:{widest}}  {sentence}"
            formatter.write(line if len(line) <= width else line[: width - 1] + "…")
            formatter.write("\n")


def _show_brief_help(ctx: click.Context, _option: click.Parameter, asked: bool) -> None:
    if asked and isinstance(ctx.command, CommandHelp):
        output.print_document(ctx.command.brief_help(ctx))
        ctx.exit()


def described_command(**keywords: Any) -> Callable[[Callable[..., Any]], CommandHelp]:
    """Makes a function a command with examples: `click.command` with `CommandHelp`."""
    return click.command(cls=CommandHelp, **keywords)


def described_group(**keywords: Any) -> Callable[[Callable[..., Any]], CommandGroup]:
    """Makes a function a group of commands with examples."""
    return click.group(cls=CommandGroup, **keywords)
