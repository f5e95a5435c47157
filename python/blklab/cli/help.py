"""`blklab help`: the help of a command."""

from __future__ import annotations

import click

from blklab.cli.commands import CommandGroup, described_command, unknown_command
from blklab.cli.output import print_document


@described_command(
    name="help",
    examples=(
        ("all commands", "blklab help"),
        ("one command", "blklab help compare"),
        ("a command of a group", "blklab help kernel build"),
    ),
)
@click.argument("names", nargs=-1, metavar="[COMMAND…]")
@click.pass_context
def command(context: click.Context, *, names: tuple[str, ...]) -> None:
    """Show the help of a command, as `--help` behind it does."""
    found = context.find_root()
    for name in names:
        if not isinstance(found.command, CommandGroup):
            raise click.UsageError(f"{found.command_path} has no commands of its own", found)
        child = found.command.get_command(found, name)
        if child is None:
            raise unknown_command(name, found.command.list_commands(found), found)
        found = click.Context(child, info_name=name, parent=found)
    print_document(found.get_help())
