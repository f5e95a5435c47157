"""`blklab calibrate disk`: measure a disk and write a device profile."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import click

from blklab.cli.commands import described_command
from blklab.cli.options import (
    dry_run_option,
    file_size_option,
    json_option,
    output_option,
    quiet_option,
    seed_option,
)
from blklab.cli.output import require_writable, write_text
from blklab.cli.tables import plain_table
from blklab.errors import InterruptedRunError, UsageError
from blklab.labs.calibration.disk.calibrate import calibrated
from blklab.labs.calibration.disk.document import DiskCalibration
from blklab.labs.calibration.disk.figure_units import printed_interval, printed_value
from blklab.labs.calibration.disk.ground import SessionGround, opened_ground
from blklab.labs.calibration.disk.lengths import PROBE_RUNTIME_US
from blklab.labs.calibration.disk.loads import REFERENCE, CalibrationLoad
from blklab.labs.calibration.disk.profile_file import mixed_lines, profile_text
from blklab.labs.calibration.disk.saved import SavedDesign, SavedMeasurements, saved_measurements
from blklab.labs.calibration.disk.submission import Way, submission_of, submission_text
from blklab.linux.disks.disk import firmware_of, read_disk
from blklab.linux.machine.description import describe_machine
from blklab.progress.line import ProgressLine
from blklab.quantities.formatting import count_of
from blklab.quantities.sample_units import rough_duration
from blklab.quantities.units import parse_budget_ns, parse_size_bytes
from blklab.report.terminal import Terminal, console_out, print_note
from blklab.spec.machines import DEFAULT_MACHINE, THIS, Machine, calibrated_machine, load_machine
from blklab.spec.targets import LoopTarget, ModelTarget, Target, parse_target

_UNSAFE_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class DiskRequest:
    """The arguments of the command."""

    target: str
    profile: str
    budget_ns: int
    file_bytes: int | None
    machine: str | None
    seed: int
    fresh: bool
    until_steady: bool
    dry_run: bool
    quiet: bool
    json_file: str | None
    send_in: str | None


class _Display(ProgressLine):
    """Progress with the time left."""

    def announce(self, line: str) -> None:
        """A step that is not a measurement."""
        self.show(line)
        self.move(0, None)
        self.log(line)

    def measuring(self, load: CalibrationLoad, *, done: int, planned: int, left_ns: int) -> None:
        """A measurement begins."""
        left = f"at most {rough_duration(left_ns)} left" if left_ns else "a little left"
        self.show(f"run {done + 1}: {load.name}", left)
        self.move(done, planned)
        self.log_now_and_then(f"run {done + 1} of at most {planned}, {load.name}, {left}")


@described_command(
    name="disk",
    examples=(
        ("the disk beneath a directory, as root", "blklab calibrate disk /srv -o my-disk.toml"),
        ("a block device, which is only read", "blklab calibrate disk /dev/sdb -o sdb.toml --budget 20m"),
        ("a model, to see how well it is found", "blklab calibrate disk sim:ssd-sata -o found.toml"),
    ),
)
@click.argument("target", metavar="TARGET")
@output_option("Write the disk's profile to FILE (.toml).")
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
@seed_option
@json_option
@click.option(
    "--send-in",
    metavar="FILE",
    help="Write drive, measurements and profile to FILE, without host names and serial numbers.",
)
@dry_run_option("Print the commands of a load, and change nothing.")
@quiet_option
def command(
    *,
    target: str,
    output: str | None,
    budget: str,
    file_size: str | None,
    machine: str | None,
    fresh: bool,
    until_steady: bool,
    seed: int,
    json_file: str | None,
    send_in: str | None,
    dry_run: bool,
    quiet: bool,
) -> None:
    """Measure a disk and write a device profile of it, for sim:FILE and uml:FILE.

    On a disk (a directory on it, loop:SIZE, a block device, which is only read, or a model) it measures short
    loads in random order and fits a profile to them. Each figure has an interval. Some of the loads are not
    fitted; the error on these is printed and written into the profile. An interrupted calibration continues
    when it is called again.
    """
    if output is None:
        raise UsageError("the profile needs a file", hint="-o my-disk.toml")
    calibrate_disk(
        DiskRequest(
            target=target,
            profile=output,
            budget_ns=parse_budget_ns(budget),
            file_bytes=None if file_size is None else parse_size_bytes(file_size),
            machine=machine,
            seed=seed,
            fresh=fresh,
            until_steady=until_steady,
            dry_run=dry_run,
            quiet=quiet,
            json_file=json_file,
            send_in=send_in,
        )
    )


def calibrate_disk(request: DiskRequest) -> None:
    """Carries out the command.

    Raises:
        BlklabError: if the disk cannot be measured or the profile cannot be written.
    """
    profile = Path(request.profile)
    if profile.suffix != ".toml":
        raise UsageError(f"{profile} must end in .toml, so that sim:{profile} finds it")
    machine = _machine(request.machine)
    target = parse_target(request.target)
    console = console_out()
    if request.dry_run:
        with opened_ground(
            target, seed=request.seed, machine=machine, file_bytes=request.file_bytes, dry_run=True
        ) as ground:
            lines = ground.commands(REFERENCE, runtime_us=PROBE_RUNTIME_US)
            console.print(*lines, sep="\n", soft_wrap=True)
        return
    # Measurements are kept beside the profile from the first one on.
    if not profile.parent.is_dir():
        raise UsageError(
            f"{profile}: there is no directory {profile.parent}", hint="make it, or name another one"
        )
    require_writable(request.profile, request.json_file, request.send_in)
    with _Display(quiet=request.quiet) as display:
        with opened_ground(
            target, seed=request.seed, machine=machine, file_bytes=request.file_bytes
        ) as ground:
            saved = saved_measurements(profile, _design(request, ground, machine), fresh=request.fresh)
            if not saved.is_new and not request.quiet:
                before = count_of(len(saved.measurements), "measurement")
                print_note(f"continuing after {before} of an earlier calibration")
            found = _calibrated(ground, saved, request, machine, display)
        text = profile_text(found, name=_UNSAFE_IN_NAMES.sub("-", profile.stem) or "disk")
        write_text(request.profile, text)
        if request.send_in is not None:
            write_text(request.send_in, _sent(found, ground, target, saved))
        saved.remove()
    if request.json_file is not None:
        write_text(request.json_file, found.model_dump_json(by_alias=True, indent=2))
    if "-" not in {request.json_file, request.send_in}:
        print_calibration(found, request.profile, console)
        if request.send_in is not None:
            console.print(f"send in: {request.send_in}", soft_wrap=True)


def _calibrated(
    ground: SessionGround,
    saved: SavedMeasurements,
    request: DiskRequest,
    machine: Machine,
    display: _Display,
) -> DiskCalibration:
    try:
        return calibrated(
            ground,
            saved,
            budget_ns=request.budget_ns,
            seed=request.seed,
            machine=machine,
            observer=display,
            until_steady=request.until_steady,
        )
    except InterruptedRunError:
        if saved.measurements:
            number = len(saved.measurements)
            kept = f"{count_of(number, 'measurement')} {'is' if number == 1 else 'are'} kept"
            print_note(f"{kept}; the same command continues from {'it' if number == 1 else 'them'}")
        raise


def _sent(found: DiskCalibration, ground: SessionGround, target: Target, saved: SavedMeasurements) -> str:
    """The file to send in. What identifies this machine or this drive is kept out of its texts."""
    if isinstance(target, ModelTarget):
        way: Way = "model"
    elif isinstance(target, LoopTarget):
        way = "loop device"
    else:
        way = "block device" if ground.target.details.get("kind") == "block" else "directory"
    folder = Path("/sys/class/block") / ground.facts.name
    disk = None if way == "model" else read_disk(folder)
    submission = submission_of(
        found,
        ground.facts,
        saved.measurements,
        way=way,
        firmware="" if disk is None else firmware_of(folder),
        private=[describe_machine().host, *([] if disk is None else [disk.serial, disk.wwid])],
    )
    return submission_text(submission)


def _machine(name: str | None) -> Machine:
    """The cost table of this machine if it was measured, else the one that models run on by default."""
    if name is None:
        name = THIS if calibrated_machine().is_file() else DEFAULT_MACHINE
    return load_machine(name)


def _design(request: DiskRequest, ground: SessionGround, machine: Machine) -> SavedDesign:
    facts = ground.facts
    return SavedDesign(
        target=request.target,
        disk=facts.model if request.target.startswith("loop:") else f"{facts.name} {facts.model}".strip(),
        capacity_bytes=facts.capacity_bytes,
        space_bytes=facts.space_bytes,
        budget_ns=request.budget_ns,
        seed=request.seed,
        machine=machine.source,
        until_steady=request.until_steady,
    )


def print_calibration(found: DiskCalibration, profile: str, console: Terminal) -> None:
    """Prints the figures, how well they predict, and what to know of them."""
    table = plain_table(("figure", "value", "95 % interval, or how it was found"))
    for figure in [*found.figures, *found.derived]:
        table.add_row(figure.key, printed_value(figure, figure.value), printed_interval(figure))
    console.print(table)
    typical, large = found.errors()
    tail, large_tail = found.tail_errors()
    tested = [load for load in found.loads if not load.fitted]
    nearest = found.nearest
    console.print()
    lines = [
        f"Errors on {len(tested)} loads that were not fitted, median and 95th percentile:",
        f"  {100 * typical:.1f} and {100 * large:.1f} % of rates",
        f"  {100 * tail:.1f} and {100 * large_tail:.1f} % of 99th percentiles of latency",
        f"  with {nearest.profile}, the nearest that ships: {100 * nearest.rate_error_median:.0f} % (median)",
        *mixed_lines(found),
        *(f"Note: {remark}." for remark in found.all_remarks),
        f"Not covered: {found.not_covered}.",
        f"{count_of(found.runs, 'run')} in {rough_duration(1e9 * found.measured_s)}; the fit took the rest.",
        f"profile: {profile}",
    ]
    for line in lines:
        console.prose(line)
    costs = "" if found.machine == DEFAULT_MACHINE else f" --machine {found.machine}"
    console.print(f"use it: blklab compare sim:{profile}{costs}", soft_wrap=True)
