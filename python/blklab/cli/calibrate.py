"""`blklab calibrate`: measure on this machine what models need to know of it."""

from __future__ import annotations

import click

from blklab.cli.calibrate_check import command as check_command
from blklab.cli.calibrate_disk import command as disk_command
from blklab.cli.calibrate_processor import command as processor_command
from blklab.cli.commands import CommandGroup, note_new_spelling

_BEFORE = "--processor"
"""Chose the processor when both were one command."""
_FILE_BEFORE = "--profile"
"""Named the disk's profile, which ``--output`` does now."""


class _Calibrate(CommandGroup):
    """Also takes the spellings from the time when both were one command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Finds the command; an old spelling is understood, with a note."""
        return super().parse_args(ctx, self._current(ctx, args))

    def _current(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or args[0] in self.list_commands(ctx):
            return args
        if _BEFORE in args:
            note_new_spelling(f"calibrate {_BEFORE}", "calibrate processor")
            return ["processor", *(one for one in args if one != _BEFORE)]
        if any(one.partition("=")[0] == _FILE_BEFORE for one in args):
            note_new_spelling(f"calibrate TARGET {_FILE_BEFORE} FILE", "calibrate disk TARGET -o FILE")
            return ["disk", *(one.replace(_FILE_BEFORE, "--output", 1) for one in args)]
        return args


@click.group(
    name="calibrate",
    cls=_Calibrate,
    examples=(
        ("a disk, into a profile (as root)", "blklab calibrate disk /srv -o my-disk.toml"),
        ("the profile in use", "blklab compare sim:my-disk.toml -w many-readers"),
        ("a file of a drive that somebody sent", "blklab calibrate check drive.json"),
        ("what computing costs on this machine (as root)", "blklab calibrate processor"),
    ),
)
def command() -> None:
    """Measure on this machine what models need to know of it: a disk, or what computing costs."""


command.add_command(disk_command)
command.add_command(check_command)
command.add_command(processor_command)
