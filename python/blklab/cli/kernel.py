"""`blklab kernel`: build, list and remove guest kernels, judge and bisect changes to them."""

from __future__ import annotations

from typing import Any

import click

from blklab.cli.bisect import command as bisect_command
from blklab.cli.commands import described_group
from blklab.cli.judge import command as judge_command
from blklab.cli.kernel_module import module_command
from blklab.cli.options import json_option, quiet_option
from blklab.cli.torture import command as torture_command
from blklab.guests.kernels.names import DEFAULT_NAME


@described_group(
    name="kernel",
    examples=(
        ("the newest kernel of Debian's packages", "blklab kernel build"),
        ("the same with a patch, under a name of its own", "blklab kernel build mine --patch my-idea.patch"),
        ("is the patch faster, slower or the same, and for whom?", "blklab kernel judge --kernel stock,mine"),
    ),
)
def command() -> None:
    """Build, list and remove guest kernels (for `uml:` targets) and schedulers as modules (for disks).

    `judge` says whether a change made a kernel faster or slower, and `bisect` finds the commit.
    """


command.add_command(module_command)

command.add_command(torture_command)


@command.command(
    name="build",
    examples=(
        ("the newest kernel of Debian's packages", "blklab kernel build"),
        ("with a patch, under a name of its own", "blklab kernel build mine --patch my-idea.patch"),
        ("with a scheduler that is one file", "blklab kernel build mine --scheduler-file my-sched.c"),
        (
            "a source tree of your own, without building yet",
            "blklab kernel build mine --source ~/linux --dry-run",
        ),
    ),
)
@click.argument("name", default=DEFAULT_NAME)
@click.option(
    "--source",
    metavar="debian|DIR|ARCHIVE",
    default="debian",
    show_default=True,
    help="Linux source, 5.2 or later, or 4.19 for cfq: the newest of Debian's linux-source packages, a tree "
    "(it is copied, never written to) or an archive.",
)
@click.option(
    "--release",
    metavar="X.Y",
    help="Fetch the source of this release from Debian's suites, past and future ones too, instead of "
    "--source. It is kept for later builds; nothing is installed.",
)
@click.option(
    "--patch",
    "patches",
    metavar="FILE",
    multiple=True,
    help="Patch to apply, mailbox or folder of patches, or the name of a patch that ships with blklab. "
    "Repeatable; applied in that order.",
)
@click.option(
    "--scheduler-file",
    "scheduler_files",
    metavar="FILE.c",
    multiple=True,
    help="Scheduler to add that is one file, built as block/FILE.c. Repeatable.",
)
@click.option(
    "--config",
    "fragments",
    metavar="FRAGMENT",
    multiple=True,
    help="File of options (CONFIG_…=y) to add to the shipped configuration. Repeatable.",
)
@click.option(
    "--no-instruments",
    is_flag=True,
    help="Leave out blklab's own small patches to User-mode Linux, which make measurements exact.",
)
@click.option("--jobs", "-j", type=int, help="Parallel compilations. Default: the number of processors.")
@click.option(
    "--dry-run", is_flag=True, help="Show what would be built, and from which source; change nothing."
)
@quiet_option
@json_option
def build_command(**arguments: Any) -> None:
    """Build the guest kernel NAME (stock by default), or reuse a build from identical sources.

    The first build of a source takes minutes; another patch on it takes seconds.
    """
    from blklab.cli import kernel_builds  # noqa: PLC0415 - a Tab on the flags need not wait for it

    kernel_builds.build_and_show(**arguments)


@command.command(
    name="list",
    examples=(
        ("all of them", "blklab kernel list"),
        ("as JSON", "blklab kernel list --json -"),
        ("into a file", "blklab kernel list --json kernels.json"),
    ),
)
@json_option
def list_command(**arguments: Any) -> None:
    """List the guest kernels and the modules that were built."""
    from blklab.cli import kernel_builds  # noqa: PLC0415 - a Tab on the flags need not wait for it

    kernel_builds.list_all(**arguments)


@command.command(
    name="show",
    examples=(
        ("the stock kernel", "blklab kernel show"),
        ("another", "blklab kernel show mine"),
        ("its configuration", "blklab kernel show mine --configuration"),
    ),
)
@click.argument("name", default=DEFAULT_NAME)
@click.option("--configuration", is_flag=True, help="Print its whole configuration instead.")
@json_option
def show_command(**arguments: Any) -> None:
    """Show what the guest kernel NAME (stock by default) was built from and what it offers."""
    from blklab.cli import kernel_builds  # noqa: PLC0415 - a Tab on the flags need not wait for it

    kernel_builds.show(**arguments)


@command.command(
    name="remove",
    examples=(
        ("one kernel", "blklab kernel remove mine"),
        ("what that would free", "blklab kernel remove mine --dry-run"),
        ("kept sources and objects", "blklab kernel remove --trees"),
    ),
)
@click.argument("names", nargs=-1, metavar="NAME...")
@click.option(
    "--trees", is_flag=True, help="Remove kept sources and objects too; the next build then takes longer."
)
@click.option(
    "--modules", is_flag=True, help="Each NAME is a module (`blklab kernel module`), not a guest kernel."
)
@click.option("--dry-run", is_flag=True, help="Show what would be removed; change nothing.")
@json_option
def remove_command(**arguments: Any) -> int:
    """Remove guest kernels, or modules, that were built.

    Removing the last kernel that was built from a source removes that source and its objects.
    """
    from blklab.cli import kernel_builds  # noqa: PLC0415 - a Tab on the flags need not wait for it

    return kernel_builds.remove(**arguments)


command.add_command(judge_command)

command.add_command(bisect_command)
