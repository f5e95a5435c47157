"""`blklab top`: tasks that do I/O now, and the waits of their I/Os."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator

import click

from blklab.cli.commands import described_command
from blklab.cli.top_screen import ScreenSample, print_each, show_live, write_lines
from blklab.cli.top_tasks import task_samples
from blklab.cli.top_waits import waits_samples
from blklab.errors import InterruptedRunError, UsageError
from blklab.linux.machine.requirements import require_root
from blklab.quantities.units import parse_duration_ns
from blklab.report.terminal import console_out
from blklab.spec.targets import PathTarget, parse_target


@described_command(
    name="top",
    examples=(
        ("all disks, as root", "blklab top"),
        ("the disks beneath a directory", "blklab top /srv"),
        ("two tables of five seconds each, for a file", "blklab top --batch --delay 5s -n 2"),
    ),
)
@click.argument("target", required=False)
@click.option("-b", "--batch", is_flag=True, help="Print one sample after another instead of a live screen.")
@click.option("-n", "--samples", type=click.IntRange(min=1), help="Stop after this many samples.")
@click.option("-d", "--delay", default="1s", metavar="TIME", help="Length of a sample. Default: 1s.")
@click.option("-P", "--processes", is_flag=True, help="Without TARGET: add up the threads of each process.")
@click.option(
    "--json",
    "json_file",
    metavar="FILE",
    is_flag=False,
    flag_value="-",
    help="Write one line of JSON per sample to FILE, or to standard output for -.",
)
def command(
    *,
    target: str | None,
    batch: bool,
    samples: int | None,
    delay: str,
    processes: bool,
    json_file: str | None,
) -> None:
    """Show which tasks do I/O, in which priority class and at which level (be/0 is served before be/7).

    Priorities in brackets follow from the nice value. A buffered write counts for the task that made it, at
    the time of the call; a kernel thread writes it out later, under its own priority. Without root it shows
    your own processes only.

    With TARGET, a directory or a block device, it shows the I/Os that reach the disks beneath (as root): how
    long those of each process and control group waited in the queue and in the device, and who held the
    device meanwhile. q or Ctrl-C ends it, c shows control groups; the last line of the screen has the keys
    that sort.
    """
    delay_ns = parse_duration_ns(delay)
    with _ends_on_ctrl_c():
        if target is None:
            _show(task_samples(delay_ns, samples, processes=processes), batch=batch, json_file=json_file)
            return
        if processes:
            raise UsageError(
                "with a target, I/Os are shown by process as it is", hint="leave out --processes"
            )
        place = parse_target(target)
        if not isinstance(place, PathTarget):
            raise UsageError(
                f"{target} is no path of this machine", hint="name a directory or a block device"
            )
        require_root("recording I/O")
        from blklab.linux.disks.resolution import resolve  # noqa: PLC0415 - needs Linux

        with waits_samples(resolve(place.path), delay_ns, samples) as stream:
            _show(stream, batch=batch, json_file=json_file)


def _show(stream: Iterator[ScreenSample], *, batch: bool, json_file: str | None) -> None:
    if json_file is not None:
        write_lines(stream, json_file)
    elif batch or not console_out().is_terminal:
        print_each(stream)
    else:
        show_live(stream)


@contextlib.contextmanager
def _ends_on_ctrl_c() -> Iterator[None]:
    try:
        yield
    except InterruptedRunError as error:
        if error.signal_number != signal.SIGINT:
            raise
