"""`blklab calibrate`: measure on this machine what models need to know of it."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path

import click

from blklab.cli.calibrate_disk import DiskRequest, calibrate_disk
from blklab.cli.host_fidelity import print_host_fidelity
from blklab.cli.options import file_size_option, json_option, repetitions_option
from blklab.cli.output import console_out, require_writable, write_text
from blklab.cli.progress import ProgressDisplay
from blklab.errors import SpaceError, UsageError, reason_of
from blklab.execution.calibration.fit import fitted
from blklab.execution.calibration.host_fidelity import host_fidelity
from blklab.execution.calibration.loads import CHECKED, FITTED
from blklab.execution.calibration.measuring import memory_device
from blklab.execution.calibration.table_file import table_text
from blklab.quantities.units import parse_duration_ns, parse_size_bytes
from blklab.spec.experiment import DEFAULT_SEED
from blklab.spec.machines import THIS, Machine, calibrated_machine, load_machine

_START = "ordinary"
_BASE_SLICE_NS = 700_000
_MOST_CPUS_OF_SLICE = 8
_PUNT_NS = 3_000
"""An assumption: a call given up, and the I/O handed to a worker, which pays for its own part."""


@click.command(name="calibrate")
@click.argument("target", metavar="[TARGET]", required=False)
@click.option("--profile", metavar="FILE", help="Write the disk's profile to FILE (.toml).")
@click.option(
    "--budget",
    metavar="TIME",
    default="10m",
    show_default=True,
    help="Time for measuring the disk; two rounds of all loads are made in any case.",
)
@file_size_option
@click.option(
    "--machine",
    metavar="NAME|FILE",
    help="Cost table with which the profile will be used. Default: this if it was measured, else ordinary.",
)
@click.option("--fresh", is_flag=True, help="Drop what an interrupted calibration has measured.")
@click.option(
    "--until-steady",
    is_flag=True,
    help="Write to the disk's test file first until its speed is steady by SNIA's rule; minutes more.",
)
@json_option
@click.option("--processor", is_flag=True, help="Measure what computing costs on this machine (root).")
@repetitions_option
@click.option("--seed", type=click.IntRange(min=0), default=DEFAULT_SEED, show_default=True, help="Seed.")
@click.option(
    "--output", "output_file", metavar="FILE", help="Write the table to FILE. Default: for --machine this."
)
@click.option("--dry-run", is_flag=True, help="Print the commands of a load, and change nothing.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def command(
    *,
    target: str | None,
    profile: str | None,
    budget: str,
    file_size: str | None,
    machine: str | None,
    fresh: bool,
    until_steady: bool,
    json_file: str | None,
    processor: bool,
    repetitions: int,
    seed: int,
    output_file: str | None,
    dry_run: bool,
    quiet: bool,
) -> None:
    """Measure a disk for the simulator, or with --processor what computing costs on this machine.

    Of a disk (a directory on it, loop:SIZE, a block device, which is only read, or a model) it measures short
    loads in random order and fits a device profile to them, for sim:FILE and uml:FILE. Each figure has an
    interval. Some of the loads are not fitted; the error on these is printed and written into the profile. An
    interrupted calibration continues when it is called again.

    With --processor it runs small random I/O on a scratch loop device in memory, under every scheduler that
    it offers, and fits a cost table to the rates, for --machine this.
    """
    if (target is None) != processor:
        raise UsageError(
            "say what to measure, a disk or the processor",
            hint="blklab calibrate DIRECTORY --profile my-disk.toml, or blklab calibrate --processor",
        )
    if target is not None:
        if profile is None:
            raise UsageError("the profile needs a file", hint="--profile my-disk.toml")
        calibrate_disk(
            DiskRequest(
                target=target,
                profile=profile,
                budget_ns=parse_duration_ns(budget),
                file_bytes=None if file_size is None else parse_size_bytes(file_size),
                machine=machine,
                seed=seed,
                fresh=fresh,
                until_steady=until_steady,
                dry_run=dry_run,
                quiet=quiet,
                json_file=json_file,
            )
        )
        return
    _calibrate_processor(
        repetitions=repetitions, seed=seed, output_file=output_file, dry_run=dry_run, quiet=quiet
    )


def _calibrate_processor(
    *, repetitions: int, seed: int, output_file: str | None, dry_run: bool, quiet: bool
) -> None:
    loads = [*FITTED, *CHECKED]
    console = console_out()
    if dry_run:
        with memory_device(loads, seed=seed, dry_run=True) as device:
            console.print(*device.commands(), sep="\n", soft_wrap=True)
        return
    destination = calibrated_machine() if output_file is None else Path(output_file)
    if output_file is None:
        _make_folder(destination.parent)
    require_writable(str(destination))
    with ProgressDisplay(quiet=quiet) as display:
        with memory_device(loads, seed=seed) as device:
            measurement = device.measure(repetitions, display.announce)
        display.announce("fitting the cost table")
        start = _starting_table(measurement.machine.cpus, measurement.schedulers(FITTED[0]))
        fit = fitted(start, [measurement.observations[load] for load in FITTED])
        document = host_fidelity(measurement, fit.machine)
    typical, large = document.median_and_95th(fitted=False)
    machine = measurement.machine
    today = datetime.datetime.now(datetime.timezone.utc).date()
    remarks = [
        f"Measured by blklab calibrate --processor on {today}: {len(FITTED)} loads in",
        f"{measurement.rounds} rounds on a loop device in memory, Linux {machine.kernel}, seed {seed}.",
        f"Ratios to none of {len(CHECKED)} loads that were not fitted are off by",
        f"{100 * typical:.1f} % in the median, {100 * large:.1f} % at the 95th percentile.",
        "Behind each figure: its 95 % interval.",
    ]
    write_text(
        str(destination), table_text(fit, summary=f"{machine.cpu}, {machine.cpus} CPUs", remarks=remarks)
    )
    print_host_fidelity(document, console)
    console.print(f"table: {destination}", soft_wrap=True)
    if output_file is None:
        console.print("use it: blklab compare sim:DEVICE --machine this")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpaceError(f"{folder}: cannot be created: {reason_of(error)}") from error


def _starting_table(cpus: int, schedulers: Sequence[str]) -> Machine:
    """The figures of an ordinary machine, with this one's processors and schedulers.

    The slice is EEVDF's base slice (``update_sysctl`` of kernel/sched/fair.c, Linux 6.18).
    """
    start = load_machine(_START)
    return start.model_copy(
        update={
            "name": THIS,
            "source": THIS,
            "cpus": cpus,
            "slice_ns": _BASE_SLICE_NS * min(cpus, _MOST_CPUS_OF_SLICE).bit_length(),
            "punt_ns": _PUNT_NS,
            "schedulers": {name: costs for name, costs in start.schedulers.items() if name in schedulers},
        }
    )
