"""`blklab calibrate check`: check a file that was sent in."""

from __future__ import annotations

from pathlib import Path

import click

from blklab.cli.commands import described_command
from blklab.cli.options import output_option
from blklab.cli.output import write_text
from blklab.errors import UsageError
from blklab.labs.calibration.disk.profile_file import mixed_lines
from blklab.labs.calibration.disk.submission import Submission, read_submission, submitted_profile
from blklab.quantities.formatting import count_of
from blklab.quantities.units import format_bytes
from blklab.quantities.visible import visible
from blklab.report.terminal import console_out, print_note


@described_command(
    name="check",
    examples=(
        ("a file of somebody's drive", "blklab calibrate check drive.json"),
        ("the same, with its profile for sim:FILE", "blklab calibrate check drive.json -o drive.toml"),
        ("which scheduler that drive wants", "blklab compare sim:drive.toml -w many-readers"),
    ),
)
@click.argument("file", metavar="FILE")
@output_option("Write the drive's profile to FILE (.toml).")
def command(*, file: str, output: str | None) -> None:
    """Check a file that `blklab calibrate disk TARGET --send-in FILE` has written.

    Its fields must be those of its schema, agree with each other, and make a profile. A summary is printed.
    """
    if output is not None and Path(output).suffix != ".toml":
        raise UsageError(f"{output} must end in .toml, so that sim:{output} finds it")
    found = read_submission(Path(file))
    console_out().print(*_lines(found), sep="\n", soft_wrap=True)
    if found.way == "model":
        print_note("it is about a model, which nobody need be told of")
    if output is not None:
        write_text(output, submitted_profile(found, name=Path(output).stem))


def _lines(found: Submission) -> list[str]:
    drive, calibration = found.drive, found.calibration
    typical, large = calibration.errors()
    tested = sum(not load.fitted for load in calibration.loads)
    firmware = f", firmware {visible(drive.firmware)}" if drive.firmware else ""
    tools = f"Linux {visible(calibration.kernel)}, blklab {visible(found.blklab_version)}"
    of_rates = f"{100 * typical:.1f} % and {100 * large:.1f} %"
    return [
        f"drive: {visible(drive.model or 'a model')}{firmware}, {format_bytes(drive.capacity_bytes)}",
        f"measured: {visible(calibration.measured_on)}, {found.way}, {tools}",
        f"{count_of(len(found.measurements), 'measurement')}, a profile of kind {visible(calibration.kind)}",
        f"Errors of rates on {tested} loads that were not fitted, median and 95th percentile: {of_rates}",
        *mixed_lines(calibration),
        *(f"Note: {visible(remark)}." for remark in calibration.all_remarks),
        "complete: its fields agree, and its figures are a profile",
    ]
