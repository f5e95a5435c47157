"""`blklab compare`: compare schedulers and give a verdict."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from blklab.cli.commands import described_command
from blklab.cli.gate import no_gate_option
from blklab.cli.options import (
    cluster_option,
    experiment_options,
    json_option,
    junit_option,
    openmetrics_option,
    quiet_option,
    store_option,
)
from blklab.errors import ExitCode, SpecError
from blklab.spec.budget import NO_LIMITS
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.request import SpecValues, build_specs, read_spec_file, run_limits

if TYPE_CHECKING:
    from blklab.backends import Workers
    from blklab.records.experiment import ExperimentRecord


@described_command(
    name="compare",
    examples=(
        ("the disk beneath this directory, as root, in at most ten minutes", "blklab compare --budget 10m"),
        (
            "a database's log and its small reads; 5 % more or less do not matter",
            "blklab compare /var/lib/postgresql -w write-ahead-log -w random-read-4k-qd32 --good-enough 5%",
        ),
        (
            "two schedulers on a modelled hard disk, without root",
            "blklab compare sim:hdd-7200 -s bfq,mq-deadline -w many-readers",
        ),
        (
            "two guest kernels, in virtual time",
            "blklab compare uml:nvme-tlc --kernel stock,mine -s mq-deadline -w mixed-70-30",
        ),
    ),
)
@experiment_options("compare")
@click.option(
    "--spec", "spec_file", type=click.Path(path_type=Path), help="Experiment description (TOML); flags win."
)
@click.option("--resume", "resume", metavar="RUN", help="Continue a stored run.")
@click.option(
    "--against",
    "baseline",
    metavar="RUN",
    help="Compare the result with that of a stored run too; exit with 8 if it is slower.",
)
@click.option(
    "--dry-run", is_flag=True, help="Print every setting and command of the first block; change nothing."
)
@cluster_option
@json_option
@openmetrics_option
@junit_option
@click.option("--html", "html_file", metavar="FILE", help="Write the HTML report to FILE.")
@click.option(
    "--model-answer/--no-model-answer",
    "model_answer",
    default=None,
    help="Show the nearest modelled disk's answer as well. Default: if this disk's is not known yet.",
)
@click.option(
    "--why/--no-why",
    "why",
    default=None,
    help="Observe one more run of the best scheduler and of each that it beats, and say what made the "
    "difference: on disks by a recording, for guests by the simulator. Default: on simulated targets.",
)
@no_gate_option
@store_option
@click.option("-v", "--verbose", is_flag=True, help="Print all figures, not only the answer.")
@quiet_option
def command(
    *,
    given: SpecValues,
    spec_file: Path | None,
    resume: str | None,
    baseline: str | None,
    dry_run: bool,
    workers: Workers,
    json_file: str | None,
    openmetrics_file: str | None,
    junit_file: str | None,
    html_file: str | None,
    model_answer: bool | None,
    why: bool | None,
    no_gate: bool,
    store_url: str | None,
    verbose: bool,
    quiet: bool,
) -> int:
    """Find out which scheduler is best for TARGET, and how sure that is.

    TARGET is a directory or file (the disks beneath it), a block device, loop:SIZE for a scratch loop
    device, sim:DEVICE[,key=value…] for a simulated one, or uml:DEVICE[,key=value…] for the same device under
    a real kernel in virtual time. Without TARGET blklab tests the disk beneath the current directory (as root
    on Linux), otherwise a simulated disk.
    """
    from blklab.cli import comparing  # noqa: PLC0415 - a Tab on the flags need not wait for it

    resumed: ExperimentRecord | None = None
    if resume is not None:
        if dry_run or spec_file is not None:
            raise SpecError("--resume cannot be combined with --dry-run or --spec")
        resumed = comparing.load_stored(resume, store_url)
        specs = [_resumed_spec(resumed.spec, given)]
    else:
        values = read_spec_file(spec_file).overlaid_by(given) if spec_file else given
        specs = build_specs(values if "targets" in values.names else comparing.with_default_target(values))
    comparing.check_all_workers(specs, workers)
    if dry_run:
        comparing.print_plans(specs)
        return ExitCode.OK
    return comparing.compare_and_show(
        specs,
        resumed=resumed,
        baseline=baseline,
        workers=workers,
        json_file=json_file,
        openmetrics_file=openmetrics_file,
        junit_file=junit_file,
        html_file=html_file,
        model_answer=model_answer,
        store_url=store_url,
        verbose=verbose,
        quiet=quiet,
        explains=why,
        gates=not no_gate,
    ).code


def _resumed_spec(stored: ExperimentSpec, given: SpecValues) -> ExperimentSpec:
    """The stored experiment; only its number of blocks or its budget may change."""
    changed = given.names - {"blocks", "budget"}
    if changed:
        raise SpecError(
            f"--resume keeps the stored experiment as it was; it cannot change {min(changed)}",
            hint="only --blocks or --budget may be given",
        )
    limits = run_limits(given)
    if limits == NO_LIMITS:
        return stored
    if stored.stops_when_settled and limits["blocks"] is not None:
        raise SpecError(
            "--blocks fixes a number in advance, but this run adds blocks until every question is settled",
            hint=f"--budget {limits['blocks']}blocks raises the limit to that many",
        )
    if not stored.stops_when_settled and limits["budget_blocks"] is not None:
        limits |= {"blocks": limits["budget_blocks"], "budget_blocks": None}
    return stored.model_copy(update=limits)
