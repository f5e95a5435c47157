"""The command line as a tree: every command with its path, for man pages and completion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import click

from blklab.cli import command_line


@dataclass(frozen=True)
class CommandNode:
    """One command."""

    path: tuple[str, ...]
    """Without ``blklab``: empty for the program itself, ``("kernel", "build")`` for a command of a group."""
    command: click.Command
    context: click.Context

    @property
    def usage(self) -> str:
        """What a person types: ``blklab kernel build``."""
        return " ".join(("blklab", *self.path))

    @property
    def subcommands(self) -> dict[str, str]:
        """Names of its subcommands with a line about each."""
        if not isinstance(self.command, click.Group):
            return {}
        return {
            name: child.get_short_help_str(limit=200)
            for name in self.command.list_commands(self.context)
            if (child := self.command.get_command(self.context, name)) is not None
        }

    @property
    def flags(self) -> list[click.Option]:
        """Its options, in the order of its help."""
        return [
            one
            for one in self.command.get_params(self.context)
            if isinstance(one, click.Option) and not one.hidden
        ]

    @property
    def arguments(self) -> list[click.Argument]:
        """Its positional arguments."""
        return [one for one in self.command.get_params(self.context) if isinstance(one, click.Argument)]

    @property
    def children(self) -> list[CommandNode]:
        """Its subcommands."""
        if not isinstance(self.command, click.Group):
            return []
        found = []
        for name in self.command.list_commands(self.context):
            child = self.command.get_command(self.context, name)
            if child is not None:
                context = click.Context(child, info_name=name, parent=self.context)
                found.append(CommandNode((*self.path, name), child, context))
        return found


def root() -> CommandNode:
    """The program itself."""
    return CommandNode(
        (), command_line, click.Context(command_line, info_name="blklab", **command_line.context_settings)
    )


def all_commands() -> Iterator[CommandNode]:
    """Every command, parents first, in the order of the help."""
    open_nodes = [root()]
    while open_nodes:
        node = open_nodes.pop(0)
        yield node
        open_nodes = [*node.children, *open_nodes]


def metavar_of(parameter: click.Parameter, context: click.Context) -> str:
    """What stands for a parameter's value in help; empty for a switch."""
    if isinstance(parameter, click.Option) and (parameter.is_flag or parameter.count):
        return ""
    return parameter.make_metavar(context)


def takes_value(option: click.Option) -> bool:
    """Whether the next word is always its value; a value that may be left out follows ``=`` in no case."""
    return not option.is_flag and not option.count
