"""`blklab calibrate processor`: measure what computing costs on this machine, and write a cost table."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path

from blklab.cli.commands import described_command
from blklab.cli.host_fidelity import print_host_fidelity
from blklab.cli.options import dry_run_option, output_option, quiet_option, repetitions_option, seed_option
from blklab.cli.output import require_writable, write_text
from blklab.errors import SpaceError, reason_of
from blklab.labs.calibration.fit import fitted
from blklab.labs.calibration.host_fidelity import host_fidelity
from blklab.labs.calibration.loads import CHECKED, FITTED
from blklab.labs.calibration.measuring import memory_device
from blklab.labs.calibration.table_file import table_text
from blklab.progress.experiment import ProgressDisplay
from blklab.report.terminal import console_out
from blklab.spec.machines import THIS, Machine, calibrated_machine, load_machine

_START = "ordinary"
_BASE_SLICE_NS = 700_000
_MOST_CPUS_OF_SLICE = 8
_PUNT_NS = 3_000
"""An assumption: a call given up, and the I/O handed to a worker, which pays for its own part."""


@described_command(
    name="processor",
    examples=(
        ("the table of this machine, for --machine this (as root)", "blklab calibrate processor"),
        ("into a file, for other machines", "blklab calibrate processor -o my-server.toml"),
        ("the commands of a load", "blklab calibrate processor --dry-run"),
    ),
)
@repetitions_option
@seed_option
@output_option("Write the table to FILE. Default: for --machine this.")
@dry_run_option("Print the commands of a load, and change nothing.")
@quiet_option
def command(*, repetitions: int, seed: int, output: str | None, dry_run: bool, quiet: bool) -> None:
    """Measure what computing costs on this machine (as root), for models of its disks.

    It runs small random I/O on a scratch loop device in memory, under every scheduler that the device
    offers, and fits a cost table to the rates, for --machine this.
    """
    loads = [*FITTED, *CHECKED]
    console = console_out()
    if dry_run:
        with memory_device(loads, seed=seed, dry_run=True) as device:
            console.print(*device.commands(), sep="\n", soft_wrap=True)
        return
    destination = calibrated_machine() if output is None else Path(output)
    if output is None:
        _make_folder(destination.parent)
    require_writable(str(destination))
    with ProgressDisplay(quiet=quiet) as display:
        with memory_device(loads, seed=seed) as device:
            measurement = device.measure(repetitions, display.announce)
        display.announce("fitting the cost table")
        start = _starting_table(measurement.machine.cpus, measurement.schedulers(FITTED[0]))
        fit = fitted(start, [measurement.observations[load] for load in FITTED])
        document = host_fidelity(measurement, fit.machine)
    machine = measurement.machine
    today = datetime.datetime.now(datetime.timezone.utc).date()
    remarks = [
        f"Measured by blklab calibrate processor on {today}: {len(FITTED)} loads in",
        f"{measurement.rounds} rounds on a loop device in memory, Linux {machine.kernel}, seed {seed}.",
        f"Ratios to none of {len(CHECKED)} loads that were not fitted are off by",
        *(
            f"{100 * checked.median_error:.1f} % in the median, {100 * checked.percentile_95_error:.1f} % "
            f"at the 95th percentile ({checked.block_kib} KiB)."
            for checked in document.summaries()
            if not checked.fitted
        ),
        "Behind each figure: its 95 % interval.",
    ]
    write_text(
        str(destination), table_text(fit, summary=f"{machine.cpu}, {machine.cpus} CPUs", remarks=remarks)
    )
    print_host_fidelity(document, console)
    console.print(f"table: {destination}", soft_wrap=True)
    if output is None:
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
