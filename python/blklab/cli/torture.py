"""`blklab kernel torture`: does a scheduler keep every request, its data and its time?"""

from __future__ import annotations

from typing import Any

import click

from blklab.cli.commands import described_command
from blklab.cli.options import cluster_option, json_option, quiet_option
from blklab.labs.torture.seeds import SEEDS


@described_command(
    name="torture",
    examples=(
        (
            "a patch: the kernel is built with its own checks first",
            "blklab kernel torture --patch my-idea.patch",
        ),
        ("a scheduler that is one file", "blklab kernel torture --scheduler-file my-sched.c -s my-sched"),
        ("one seed again, on a kernel that is there", "blklab kernel torture tortured -s kyber --seed 17"),
    ),
)
@click.argument("name", required=False)
@click.option(
    "--patch",
    "patches",
    metavar="FILE",
    multiple=True,
    help="Build NAME (tortured) with this patch, mailbox or folder of patches first. Repeatable.",
)
@click.option(
    "--scheduler-file",
    "scheduler_files",
    metavar="FILE.c",
    multiple=True,
    help="Build NAME with this scheduler, which is one file, first. Repeatable.",
)
@click.option("--source", metavar="debian|DIR|ARCHIVE", help="Build NAME from this source first.")
@click.option("--release", metavar="X.Y", help="Build NAME from the source of this release first.")
@click.option(
    "-s",
    "--scheduler",
    "schedulers",
    metavar="NAME",
    multiple=True,
    help="Scheduler to torture. Repeatable. Default: all of the kernel.",
)
@click.option("--seeds", type=click.IntRange(min=1), help=f"Number of runs. Default: {SEEDS}.")
@click.option("--seed", type=click.IntRange(min=0), help="Only this one, to see its mistake again.")
@click.option(
    "--duration",
    metavar="TIME",
    default="1s",
    show_default=True,
    help="How long each run begins I/Os, in the guest's time.",
)
@click.option("--keep-going", is_flag=True, help="Go on after the first mistake.")
@cluster_option
@json_option
@quiet_option
def command(**arguments: Any) -> int:
    """Torture the schedulers of the guest kernel NAME, and name the seed that shows a mistake.

    Tasks read and write a disk and check all that they read, while schedulers, depths and tunables change at
    random, tasks exit with I/O in flight, control groups vanish, and the disk hands requests back or lets
    them time out. Without NAME, or with a patch, file, source or release, a kernel that checks itself
    (lockdep, KASAN, fault injection) is built first. Exits with 8 if a mistake was found.
    """
    from blklab.cli import torturing  # noqa: PLC0415 - a Tab on the flags need not wait for it

    return torturing.torture_and_show(**arguments)
