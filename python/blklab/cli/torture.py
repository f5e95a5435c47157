"""`blklab kernel torture`: does a scheduler keep every request, its data and its time?"""

from __future__ import annotations

import time

import click

from blklab.backends import Workers
from blklab.cli.commands import described_command
from blklab.cli.options import cluster_option, json_option, quiet_option
from blklab.cli.output import require_writable, write_text
from blklab.errors import ExitCode, UsageError
from blklab.guests.kernels.source import DEBIAN
from blklab.labs.torture.building import TORTURED, build_with_checks
from blklab.labs.torture.document import TortureDocument
from blklab.labs.torture.torture import CHECKS, TortureRequest, torture
from blklab.progress.build import BuildDisplay
from blklab.progress.line import ProgressLine
from blklab.quantities.units import format_duration, parse_duration_ns
from blklab.report.terminal import console_out

_SEEDS = 100

_KINDS = {
    "corruption": "wrong data",
    "completed_twice": "an I/O that was reported twice",
    "stuck": "an I/O that waits for ever",
    "idle": "an idle disk although requests wait",
    "leak": "a request that is never given back",
    "unflushed": "syncs that did not reach the disk",
    "error": "an I/O that failed",
    "complaint": "a warning of the kernel",
    "crash": "the kernel's end",
    "hang": "a kernel that hangs",
}


class _TortureDisplay(ProgressLine):
    def __init__(self, *, quiet: bool) -> None:
        super().__init__(quiet=quiet)
        self._begun_ns = time.monotonic_ns()

    def ended(self, scheduler: str, seed: int, done: int, total: int, mistakes: int) -> None:
        remaining_ns = (time.monotonic_ns() - self._begun_ns) * (total - done) // max(done, 1)
        found = "no mistake yet" if not mistakes else f"{mistakes} with a mistake"
        state = f"{done}/{total} runs, {found}, {format_duration(remaining_ns)} left"
        self.show(f"{scheduler}, seed {seed}", state)
        self.move(done, total)
        self.log_now_and_then(f"{scheduler}, seed {seed}: {state}")


@described_command(
    name="torture",
    examples=(
        (
            "a patch: the kernel is built with its own checks first",
            "blklab kernel torture --patch my-idea.patch",
        ),
        ("a scheduler that is one file", "blklab kernel torture --scheduler-file my-sched.c -s my-sched"),
        ("one seed again, on a kernel that is there", "blklab kernel torture tortured -s kyber --seed 17"),
    ),
)
@click.argument("name", required=False)
@click.option(
    "--patch",
    "patches",
    metavar="FILE",
    multiple=True,
    help="Build NAME (tortured) with this patch, mailbox or folder of patches first. Repeatable.",
)
@click.option(
    "--scheduler-file",
    "scheduler_files",
    metavar="FILE.c",
    multiple=True,
    help="Build NAME with this scheduler, which is one file, first. Repeatable.",
)
@click.option("--source", metavar="debian|DIR|ARCHIVE", help="Build NAME from this source first.")
@click.option("--release", metavar="X.Y", help="Build NAME from the source of this release first.")
@click.option(
    "-s",
    "--scheduler",
    "schedulers",
    metavar="NAME",
    multiple=True,
    help="Scheduler to torture. Repeatable. Default: all of the kernel.",
)
@click.option("--seeds", type=click.IntRange(min=1), help=f"Number of runs. Default: {_SEEDS}.")
@click.option("--seed", type=click.IntRange(min=0), help="Only this one, to see its mistake again.")
@click.option(
    "--duration",
    metavar="TIME",
    default="1s",
    show_default=True,
    help="How long each run begins I/Os, in the guest's time.",
)
@click.option("--keep-going", is_flag=True, help="Go on after the first mistake.")
@cluster_option
@json_option
@quiet_option
def command(
    *,
    name: str | None,
    patches: tuple[str, ...],
    scheduler_files: tuple[str, ...],
    source: str | None,
    release: str | None,
    schedulers: tuple[str, ...],
    seeds: int | None,
    seed: int | None,
    duration: str,
    keep_going: bool,
    workers: Workers,
    json_file: str | None,
    quiet: bool,
) -> int:
    """Torture the schedulers of the guest kernel NAME, and name the seed that shows a mistake.

    Tasks read and write a disk and check all that they read, while schedulers, depths and tunables change at
    random, tasks exit with I/O in flight, control groups vanish, and the disk hands requests back or lets
    them time out. Without NAME, or with a patch, file, source or release, a kernel that checks itself
    (lockdep, KASAN, fault injection) is built first. Exits with 8 if a mistake was found.
    """
    require_writable(json_file)
    if seed is not None and seeds is not None:
        raise UsageError("--seed cannot be combined with --seeds", hint="--seed shows one run again")
    duration_ns = parse_duration_ns(duration)
    if duration_ns < 1_000_000:
        raise UsageError(f"a run of {duration} has no I/O", hint="--duration 1s is the usual one")
    if name is None or patches or scheduler_files or source is not None or release is not None:
        with BuildDisplay(quiet=quiet) as display:
            name = build_with_checks(
                name or TORTURED,
                display,
                patches=patches,
                scheduler_files=scheduler_files,
                source=source or DEBIAN,
                release=release,
            )
    first, number = (1, seeds or _SEEDS) if seed is None else (seed, 1)
    request = TortureRequest(name, schedulers, first, number, duration_ns, keep_going)
    with _TortureDisplay(quiet=quiet) as progress:
        document = torture(request, progress, workers)
    if json_file is not None:
        write_text(json_file, document.model_dump_json(by_alias=True, indent=1) + "\n")
    if json_file != "-":
        _print(document, name)
    return ExitCode.SLOWER if document.mistakes else ExitCode.OK


def _print(document: TortureDocument, name: str) -> None:
    console = console_out()
    for mistake in document.mistakes:
        console.lines(f"{mistake.scheduler}, seed {mistake.seed}: {_KINDS[mistake.kind]}")
        for line in mistake.message.splitlines():
            console.lines(f"  {line}")
        console.lines(
            f"  again: blklab kernel torture {name} --scheduler {mistake.scheduler} --seed {mistake.seed}"
        )
    broken = {mistake.scheduler for mistake in document.mistakes}
    for part in document.schedulers:
        if part.scheduler not in broken:
            console.lines(
                f"{part.scheduler}: no mistake in {part.seeds} runs, {part.ios:,} I/Os,"
                f" {part.switches:,} switches"
            )
    missing = [check for check in CHECKS.values() if check not in document.checks]
    console.lines(f"Linux {document.version}; its own checks: {', '.join(document.checks) or 'not built in'}")
    if missing and document.checks:
        console.lines(f"without {', '.join(missing)}")
