"""`blklab study`: run published experiments again."""

from __future__ import annotations

from typing import Any

import click

from blklab.cli.commands import described_group
from blklab.cli.options import (
    cluster_option,
    json_option,
    junit_option,
    openmetrics_option,
    quiet_option,
    store_option,
)
from blklab.errors import ExitCode
from blklab.labs.studies.replication.options import STUDY_BACKENDS
from blklab.spec.experiment import DEFAULT_SEED


@described_group(
    name="study",
    examples=(
        ("what there is", "blklab study list"),
        ("one experiment again, in small", "blklab study run ionice --quick"),
        ("all of them under a real kernel in virtual time", "blklab study run all --on uml"),
    ),
)
def command() -> None:
    """Run published experiments again and compare their figures with ours."""


@command.command(
    name="list",
    examples=(
        ("what there is", "blklab study list"),
        ("as JSON", "blklab study list --json -"),
        ("your own too", "blklab study list my-study/"),
    ),
)
@click.argument("names", nargs=-1, metavar="[DIRECTORY…]")
@json_option
def list_command(**arguments: Any) -> None:
    """List the studies that ship, and those of DIRECTORIES."""
    from blklab.cli import study_runs  # noqa: PLC0415 - a Tab on the flags need not wait for it

    study_runs.list_all(**arguments)


@command.command(
    name="show",
    examples=(
        ("what a study is about", "blklab study show ionice"),
        ("one of your own", "blklab study show my-study/"),
        ("its experiments with --quick", "blklab study show ioband --quick"),
    ),
)
@click.argument("name", metavar="NAME|DIRECTORY")
@click.option("--quick", is_flag=True, help="With the sizes of --quick.")
def show_command(**arguments: Any) -> None:
    """Show a study's source, published conclusions and experiments."""
    from blklab.cli import study_runs  # noqa: PLC0415 - a Tab on the flags need not wait for it

    study_runs.show(**arguments)


@command.command(
    name="check",
    examples=(
        ("before the first run", "blklab study check my-study/"),
        ("several", "blklab study check my-study/ another/"),
        ("one that ships", "blklab study check ionice"),
    ),
)
@click.argument("names", nargs=-1, required=True, metavar="NAME|DIRECTORY…")
def check_command(**arguments: Any) -> None:
    """Check that studies can be read: description, job files, published values. Runs nothing."""
    from blklab.cli import study_runs  # noqa: PLC0415 - a Tab on the flags need not wait for it

    study_runs.check(**arguments)


@command.command(
    name="run",
    examples=(
        ("one experiment again, in small", "blklab study run ionice --quick"),
        ("in full, with a page", "blklab study run ionice --html ionice.html"),
        ("one of your own", "blklab study run my-study/"),
    ),
)
@click.argument("names", nargs=-1, required=True, metavar="NAME|DIRECTORY…|all")
@click.option(
    "--on",
    "backend_name",
    type=click.Choice(STUDY_BACKENDS),
    default="sim",
    show_default=True,
    help="Backend: the simulator, guest kernels, or this machine's disks.",
)
@click.option("--quick", is_flag=True, help="Use smaller sizes and fewer cases: seconds on the simulator.")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=DEFAULT_SEED,
    show_default=True,
    help="Seed of the order of runs and the load's random choices.",
)
@click.option(
    "--target",
    "directory",
    type=click.Path(file_okay=False),
    metavar="FOLDER",
    help="Folder for scratch files, and so the disk, with --on host. Default: the current folder, or for "
    "iozone-raid10 an array of loop devices in /var/tmp.",
)
@click.option(
    "--kernel",
    "kernel_name",
    metavar="NAME",
    help="Guest kernel with --on uml. On one with cfq, deadline and noop, studies of these run with them.",
)
@cluster_option
@json_option
@openmetrics_option
@junit_option
@click.option("--html", "html_file", metavar="FILE", help="Write a page with figures and pictures to FILE.")
@click.option("-v", "--verbose", is_flag=True, help="Print all statements and figures.")
@store_option
@quiet_option
def run_command(**arguments: Any) -> ExitCode:
    """Run studies again, as published and with a sound design, and say which claims hold.

    Prints each published claim with what was found, and the figures that differ most; a page has the rest.
    Runs are stored like those of `blklab compare`. On the host only scratch files are written. What is
    missing here, such as a guest kernel, is said before the first run; experiments that a study can do
    without are left out, and the exit code is 7.
    """
    from blklab.cli import study_runs  # noqa: PLC0415 - a Tab on the flags need not wait for it

    return study_runs.run_and_show(**arguments)
