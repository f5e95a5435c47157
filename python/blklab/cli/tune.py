"""`blklab tune`: search settings on a model of the disk, confirm the best on the disk."""

from __future__ import annotations

from typing import Any

import click

from blklab.cli.commands import described_command
from blklab.cli.options import cluster_option, experiment_options, json_option, quiet_option, store_option
from blklab.labs.tuning import DEFAULT_TRIALS


@described_command(
    name="tune",
    examples=(
        ("what would be searched", "blklab tune sim:ssd-sata -w mixed-70-30 --dry-run"),
        (
            "the settings of one scheduler on a model",
            "blklab tune sim:ssd-sata -w mixed-70-30 -s mq-deadline --trials 50",
        ),
        (
            "search on a model, confirm on the disk, as root",
            "blklab tune /srv -w mixed-70-30 --model sim:ssd-sata --budget 10m",
        ),
    ),
)
@experiment_options("tune")
@click.option(
    "--model",
    metavar="sim:DEVICE",
    help="Simulated device to search on. Default: TARGET's own profile in this folder, which `blklab "
    "calibrate` writes; or TARGET itself if it is a model.",
)
@click.option(
    "--trials",
    type=click.IntRange(min=8, max=100_000),
    default=DEFAULT_TRIALS,
    show_default=True,
    help="Candidates to try on the model.",
)
@click.option(
    "--vary",
    metavar="NAME,…",
    multiple=True,
    help="Settings to vary, such as fifo_batch,nr_requests. Default: all that the load can feel.",
)
@cluster_option
@click.option("--dry-run", is_flag=True, help="Print what would be searched; neither search nor confirm.")
@json_option
@click.option("--html", "html_file", metavar="FILE", help="Write the HTML report to FILE.")
@store_option
@quiet_option
def command(**arguments: Any) -> None:
    """Find settings of TARGET that beat its default, and confirm them there.

    Schedulers, their tunables and the queue's attributes are searched on a model of the disk; the best few
    then meet the default on TARGET itself, in a comparison as `blklab compare` makes it. Nothing is
    recommended that TARGET has not confirmed. --trials limits the search, --budget the comparison after it.
    """
    from blklab.cli import tuning  # noqa: PLC0415 - a Tab on the flags need not wait for it

    tuning.tune_and_show(**arguments)
