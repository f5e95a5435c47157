"""`blklab calibrate`: measure on this machine what models need to know of it."""

from __future__ import annotations

import datetime
import os
import platform
from pathlib import Path

import click

from blklab.cli.output import console_out, require_writable, write_text
from blklab.cli.progress import ProgressDisplay
from blklab.errors import UsageError
from blklab.execution.calibration.fit import Observation, fitted
from blklab.execution.calibration.loads import CHECKED, FITTED
from blklab.execution.calibration.measuring import memory_device
from blklab.execution.calibration.quantiles import median_and_95th
from blklab.execution.calibration.result import predictions, table_text
from blklab.spec.experiment import DEFAULT_SEED
from blklab.spec.machines import THIS, Machine, calibrated_machine, load_machine

_START = "ordinary"
_BASE_SLICE_NS = 700_000
_MOST_CPUS_OF_SLICE = 8


@click.command(name="calibrate")
@click.option("--processor", is_flag=True, help="Measure what computing costs on this machine (root).")
@click.option(
    "--repetitions",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="Times that each load runs.",
)
@click.option("--seed", type=click.IntRange(min=0), default=DEFAULT_SEED, show_default=True, help="Seed.")
@click.option(
    "--output", "output_file", metavar="FILE", help="Write the table to FILE. Default: for --machine this."
)
@click.option("--dry-run", is_flag=True, help="Print the commands of a load, and change nothing.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def command(
    *, processor: bool, repetitions: int, seed: int, output_file: str | None, dry_run: bool, quiet: bool
) -> None:
    """Measure a cost table: what the steps of an I/O and the hooks of schedulers cost on this machine.

    Runs small random I/O on a scratch loop device in memory, under every scheduler that it offers, and fits
    the table to the rates. Simulations then take it with --machine this. Some of the loads are not fitted;
    the error on these is printed.
    """
    if not processor:
        raise UsageError("say what to measure: blklab calibrate --processor")
    loads = [*FITTED, *CHECKED]
    console = console_out()
    if dry_run:
        with memory_device(loads, seed=seed, dry_run=True) as device:
            console.print(*device.commands(), sep="\n", markup=False, soft_wrap=True)
        return
    destination = calibrated_machine() if output_file is None else Path(output_file)
    destination.parent.mkdir(parents=True, exist_ok=True)
    require_writable(str(destination))
    with ProgressDisplay(quiet=quiet) as display:
        with memory_device(loads, seed=seed) as device:
            measurement = device.measure(repetitions, display.announce)
        display.announce("fitting the cost table")
        observations = measurement.observations
        fit = fitted(_starting_table(observations[FITTED[0]]), [observations[load] for load in FITTED])
        fitting = predictions(fit.machine, [observations[load] for load in FITTED])
        checking = predictions(fit.machine, [observations[load] for load in CHECKED])
    typical, large = median_and_95th([one.error for one in checking])
    machine = measurement.machine
    today = datetime.datetime.now(datetime.timezone.utc).date()
    remarks = [
        f"Measured by blklab calibrate --processor on {today}: {len(FITTED)} loads in",
        f"{measurement.rounds} rounds on a loop device in memory, Linux {platform.release()}, seed {seed}.",
        f"Ratios to none of {len(CHECKED)} loads that were not fitted are off by",
        f"{100 * typical:.1f} % in the median, {100 * large:.1f} % at the 95th percentile.",
        "Behind each figure: its 95 % interval.",
    ]
    write_text(
        str(destination),
        table_text(fit, summary=f"{machine.cpu}, {os.cpu_count()} CPUs", remarks=remarks),
    )
    for title, found in (("fitted", fitting), ("not fitted", checking)):
        console.print(f"Ratios to none, {title}:", markup=False)
        for one in found:
            console.print(
                f"  {one.load.name:15} {one.scheduler:12} measured {one.measured:.2f} ± "
                f"{1.96 * one.measured * one.measured_error:.2f}, predicted {one.predicted:.2f}",
                markup=False,
                highlight=False,
            )
    console.print(" ".join(remarks[2:4]), markup=False, highlight=False)
    console.print(f"table: {destination}", markup=False, soft_wrap=True)
    if output_file is None:
        console.print("use it: blklab compare sim:DEVICE --machine this", markup=False)


def _starting_table(observation: Observation) -> Machine:
    """The figures of an ordinary machine, with this one's processors and schedulers.

    The slice is EEVDF's base slice (``update_sysctl`` of kernel/sched/fair.c, Linux 6.18).
    """
    cpus = os.cpu_count() or 1
    slice_ns = _BASE_SLICE_NS * min(cpus, _MOST_CPUS_OF_SLICE).bit_length()
    start = load_machine(_START)
    schedulers = {name: start.schedulers[name] for name in observation.ratios if name in start.schedulers}
    return start.model_copy(
        update={
            "name": THIS,
            "source": THIS,
            "cpus": cpus,
            "slice_ns": slice_ns,
            "schedulers": schedulers,
        }
    )
