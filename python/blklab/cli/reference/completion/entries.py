"""The command line as the completion scripts need it."""

from __future__ import annotations

from dataclasses import dataclass

import click

from blklab.cli.reference.names import Values, values_of
from blklab.cli.reference.tree import CommandNode, all_commands, metavar_of

PROGRAM = "blklab"


@dataclass(frozen=True)
class FlagEntry:
    """One flag."""

    spellings: tuple[str, ...]
    help: str
    """One sentence, without its full stop."""
    metavar: str
    """Empty for a switch."""
    values: Values | None
    repeated: bool


@dataclass(frozen=True)
class ArgumentEntry:
    """One positional argument."""

    metavar: str
    values: Values | None
    repeated: bool


@dataclass(frozen=True)
class CommandEntry:
    """One command."""

    path: str
    """Without the program's name; empty for the program itself."""
    subcommands: dict[str, str]
    flags: list[FlagEntry]
    arguments: list[ArgumentEntry]

    @property
    def valued(self) -> list[str]:
        """Spellings of flags that a value follows."""
        return [spelling for flag in self.flags if flag.metavar for spelling in flag.spellings]


def command_entries() -> list[CommandEntry]:
    """All commands, the program itself first."""
    return [_command(node) for node in all_commands()]


def all_values(entries: list[CommandEntry]) -> dict[str, Values]:
    """Everything that is offered somewhere, by name."""
    offered = [flag.values for entry in entries for flag in entry.flags]
    offered += [argument.values for entry in entries for argument in entry.arguments]
    return {values.name: values for values in offered if values is not None}


def _command(node: CommandNode) -> CommandEntry:
    return CommandEntry(
        path=" ".join(node.path),
        subcommands=node.subcommands,
        flags=[_flag(node, flag) for flag in node.flags],
        arguments=[
            ArgumentEntry(metavar_of(one, node.context).strip("[]…."), values_of(node, one), one.nargs == -1)
            for one in node.arguments
        ],
    )


def _flag(node: CommandNode, flag: click.Option) -> FlagEntry:
    metavar = metavar_of(flag, node.context)
    return FlagEntry(
        spellings=tuple(flag.opts),
        help=(flag.help or "").partition(". ")[0].rstrip("."),
        metavar=metavar.strip("[]"),
        values=values_of(node, flag) if metavar else None,
        repeated=flag.multiple,
    )
