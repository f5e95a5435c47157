"""`blklab run`: one run of one workload under one scheduler."""

from __future__ import annotations

from typing import Any

import click

from blklab.cli.commands import described_command
from blklab.cli.gate import no_gate_option
from blklab.cli.options import (
    experiment_options,
    json_option,
    openmetrics_option,
    quiet_option,
    scheduler_option,
)
from blklab.spec.experiment import option_named

COMMANDS = option_named("commands")
KERNELS = option_named("kernels")


@described_command(
    name="run",
    examples=(
        ("one run on a modelled hard disk", "blklab run sim:hdd-7200 reader-beside-writers -s bfq"),
        ("a job file of your own under the scheduler in force, as root", "blklab run /srv my-load.fio"),
        (
            "a run with a changed tunable, and its timeline for `blklab explain`",
            "blklab run sim:hdd-7200 many-readers -s bfq --tunable slice_idle=0 --timeline run.timeline",
        ),
    ),
)
@experiment_options("run", apart=("kernels", "commands"), required=("targets",))
@click.argument("workload", metavar="[NAME|FILE.fio|trace:FILE]", required=False)
@click.option(COMMANDS.flag, "shell_command", metavar="COMMAND", help="Shell command instead of a workload.")
@scheduler_option("the active one of the target")
@click.option(
    "--tunable", "tunables", multiple=True, metavar="KEY=VALUE", help="Tunable of the scheduler. Repeatable."
)
@click.option(KERNELS.flag, metavar="NAME", help="Guest kernel of a uml: target. Default: stock.")
@click.option(
    "--timeline",
    "timeline_file",
    metavar="FILE",
    help="Write the timeline of the run, for `blklab explain` (simulated targets only).",
)
@click.option("--dry-run", is_flag=True, help="Print every setting and command; change nothing.")
@no_gate_option
@json_option
@openmetrics_option
@quiet_option
def command(**arguments: Any) -> None:
    """Run one workload or command on TARGET under one scheduler, once, and show what it did.

    The result is not stored. To repeat a run of a comparison, give its seed.
    """
    from blklab.cli import running  # noqa: PLC0415 - a Tab on the flags need not wait for it

    running.run_and_show(**arguments)
