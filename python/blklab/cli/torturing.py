"""`blklab kernel torture`: builds the kernel, tortures its schedulers, and shows the mistakes."""

from __future__ import annotations

import time

from blklab.backends import Workers
from blklab.cli.output import require_writable, write_text
from blklab.errors import ExitCode, UsageError
from blklab.guests.kernels.source import DEBIAN
from blklab.labs.torture.building import TORTURED, build_with_checks
from blklab.labs.torture.document import TortureDocument
from blklab.labs.torture.seeds import SEEDS
from blklab.labs.torture.torture import CHECKS, TortureRequest, torture
from blklab.progress.build import BuildDisplay
from blklab.progress.line import ProgressLine
from blklab.quantities.units import format_duration, parse_duration_ns
from blklab.report.terminal import console_out

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


def torture_and_show(
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
    """Tortures the schedulers, and prints and writes the mistakes."""
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
    first, number = (1, seeds or SEEDS) if seed is None else (seed, 1)
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
