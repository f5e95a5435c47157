"""`blklab advise`: from a few questions to a comparison, its answer, and the setting."""

from __future__ import annotations

from typing import Any

import click

from blklab.cli.commands import described_command
from blklab.cli.options import dry_run_option, json_option, quiet_option, store_option
from blklab.labs.advice.questions import AIMS, USES, USUAL, WATCH

WATCH_TIME = "1m"
"""The usual length of a recording."""


@described_command(
    name="advise",
    examples=(
        ("ask, plan, compare, and offer to apply, as root", "blklab advise /srv"),
        (
            "the same in a script: for a database, in at most ten minutes",
            "blklab advise /var/lib/postgresql --for database --budget 10m --yes",
        ),
        (
            "the plan alone, for what is running now",
            "blklab advise /srv --for watch --budget 1h --dry-run",
        ),
        ("on a modelled disk, without root", "blklab advise sim:ssd-sata --for desktop --yes"),
    ),
)
@click.argument("target", required=False, metavar="[DIRECTORY|DISK]")
@click.option(
    "--for",
    "use",
    type=click.Choice(list(USES)),
    metavar="USE",
    help=f"What runs here: {', '.join(USES)}. With {WATCH} the disk is recorded, and what was seen is "
    "replayed under each scheduler.",
)
@click.option(
    "--watch",
    "watch_time",
    metavar="TIME",
    help=f"With --for {WATCH}: how long to record. Default: {WATCH_TIME}.",
)
@click.option(
    "--budget",
    metavar="TIME",
    help="The longest time that it may take, such as 10m. Default: 10m, or more if an answer needs more.",
)
@click.option(
    "--goal",
    "aim",
    type=click.Choice(list(AIMS)),
    help=f"What matters more. {USUAL}: {AIMS[USUAL]}. Default: {USUAL}.",
)
@click.option("-y", "--yes", is_flag=True, help="Begin without asking.")
@click.option(
    "--apply/--no-apply",
    "applies",
    default=None,
    help="Set the scheduler if another is better, or do not; without asking.",
)
@dry_run_option("Print the plan, and the `blklab compare` that does the same; start nothing.")
@json_option
@store_option
@click.option("-v", "--verbose", is_flag=True, help="Print all figures, not only the answer.")
@quiet_option
def command(**arguments: Any) -> int:
    """Ask what runs here, compare the schedulers for it, and set the best if that is wanted.

    Four questions at most: what runs here, on which disk, how long it may take, and what matters more. Each
    has a flag, and what a flag answers is not asked. Without a terminal, --for and --yes are needed; the rest
    has defaults. The plan is printed before anything starts.

    DIRECTORY is on the disk in question; a block device, loop:SIZE and models such as sim:ssd-sata are taken
    as by `blklab compare`, which makes the comparison.
    """
    from blklab.cli import advising  # noqa: PLC0415 - a Tab on the flags need not wait for it

    return advising.advise_and_show(**arguments)
