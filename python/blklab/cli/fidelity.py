"""`blklab fidelity`: compare the simulator with a kernel."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

import click
from click.core import ParameterSource
from pydantic import ValidationError
from rich import box
from rich.table import Table

import blklab
from blklab.backends import Workers
from blklab.cli.commands import described_command
from blklab.cli.host_fidelity import compare_with_host, print_host_fidelity
from blklab.cli.options import cluster_option, json_option, quiet_option, repetitions_option
from blklab.cli.output import require_writable, write_text
from blklab.errors import ExitCode, StoreError, UsageError
from blklab.guests.kernels.names import kernel_names
from blklab.guests.kernels.store import find
from blklab.labs.calibration.loads import MATRIX
from blklab.labs.fidelity.cells import FidelityCell, selected
from blklab.labs.fidelity.early_blk_mq import early_blk_mq_matrix
from blklab.labs.fidelity.guest_kernel import open_kernel
from blklab.labs.fidelity.legacy_matrix import legacy_matrix
from blklab.labs.fidelity.matrix import matrix
from blklab.labs.fidelity.measured import CellResult
from blklab.labs.fidelity.page import filled_page
from blklab.labs.fidelity.random_cells import random_cells
from blklab.labs.fidelity.report import (
    FidelityDocument,
    changed_rows,
    error_text,
    moved_cells,
    outside_rows,
    spread_rows,
)
from blklab.labs.fidelity.running import run_cells
from blklab.named_files import MOST_RESULT_BYTES, read_text
from blklab.quantities.formatting import count_of
from blklab.quantities.units import format_duration
from blklab.report.terminal import Terminal, console_err, console_out, print_note
from blklab.simulator.core import MODELLED_RELEASES
from blklab.spec.machines import THIS, load_machine

_OF_GUESTS = ("random_number", "kernel", "blk_mq", "jobs", "workers", "against", "page")
"""Parameters that have no meaning with ``--host``."""
_MOST_MOVED = 8
_LOG_INTERVAL_S = 10


@described_command(
    name="fidelity",
    examples=(
        ("every cell, on the guest kernel stock", "blklab fidelity"),
        ("the names of the cells", "blklab fidelity --list"),
        (
            "some cells, and what changed since an earlier result",
            "blklab fidelity --cells 'bfq*' --against before.json",
        ),
    ),
)
@click.option(
    "--cells",
    "patterns",
    multiple=True,
    metavar="PATTERN",
    help="Run only cells whose name matches. Repeatable.",
)
@click.option(
    "--random",
    "random_number",
    type=click.IntRange(min=1),
    help="Run this many randomly drawn cells instead.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Seed of the drawn cells."
)
@click.option("--list", "list_only", is_flag=True, help="Print the names of the cells and exit.")
@click.option(
    "--kernel",
    default="stock",
    show_default=True,
    help="Guest kernel to compare with; `blklab kernel list` shows them.",
)
@click.option(
    "--blk-mq",
    "blk_mq",
    is_flag=True,
    help="On a kernel with cfq, deadline and noop: compare none, mq-deadline, kyber and bfq instead.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="Parallel guests. Default and most: one on each processor.",
)
@cluster_option
@click.option("--host", is_flag=True, help="Compare with this machine's own kernel instead (root).")
@click.option(
    "--machine",
    metavar="NAME|FILE",
    help="Cost table of the simulator and of guests, which have one processor. Default: computing takes no "
    "time; with --host, this machine's own table.",
)
@repetitions_option
@click.option("--against", metavar="FILE", help="Show changes since this earlier --json result.")
@click.option("--page", metavar="FILE", help="Fill the tables of this page (docs/appendix/fidelity.md).")
@json_option
@quiet_option
def command(
    *,
    patterns: tuple[str, ...],
    random_number: int | None,
    seed: int,
    list_only: bool,
    kernel: str,
    blk_mq: bool,
    jobs: int | None,
    workers: Workers,
    host: bool,
    machine: str | None,
    repetitions: int,
    against: str | None,
    page: str | None,
    json_file: str | None,
    quiet: bool,
) -> int:
    """Run a matrix of cells on the simulator and on a kernel in virtual time, and show how far they differ.

    The device model and all random choices are the same in both. Results of kernels are cached, so that after
    a change to the simulator only the simulator runs again. Exits with 5 if a difference exceeds its limit.
    """
    console = console_out()
    if host:
        _refuse_options_of_guests()
    if blk_mq and random_number:
        raise UsageError("--blk-mq cannot be combined with --random", hint="it chooses the matrix")
    loads = selected(MATRIX, patterns) if host else []
    drawn = random_cells(random_number, seed) if random_number else _matrix_for(kernel, blk_mq=blk_mq)
    cells = [] if host else _simulated_as(kernel, selected(drawn, patterns))
    if machine is not None and not host:
        table = load_machine(machine).on_one_processor()
        cells = [dataclasses.replace(cell, machine=table) for cell in cells]
    if list_only:
        for name in [load.name for load in loads] + [cell.name for cell in cells]:
            console.print(name, soft_wrap=True)
        return ExitCode.OK
    if host:
        require_writable(json_file)
        found = compare_with_host(loads, machine or THIS, repetitions=repetitions, seed=seed, quiet=quiet)
        if json_file != "-":
            print_host_fidelity(found, console)
        if json_file is not None:
            write_text(json_file, found.model_dump_json(by_alias=True, indent=1))
        return ExitCode.OK if found.holds else ExitCode.RUN_FAILED
    earlier = _read(against) if against else None
    page_text = _text_of(page) if page else ""
    require_writable(json_file, page)
    progress = _Progress(len(cells), quiet=quiet)
    with open_kernel(kernel, workers) as real:
        at_once = min(jobs or real.parallel, real.parallel)
        results = run_cells(cells, real, workers=at_once, done=progress.done)
        document = FidelityDocument.of(results, kernel=real.title, simulator=blklab.__version__)
    if json_file != "-":
        _print(document, console)
        if earlier is not None:
            _print_changes(document, earlier, console)
    if json_file is not None:
        write_text(json_file, document.model_dump_json(by_alias=True, indent=1))
    if page is not None:
        write_text(page, filled_page(page_text, document))
    return ExitCode.OK if document.holds else ExitCode.RUN_FAILED


def _matrix_for(kernel: str, *, blk_mq: bool) -> list[FidelityCell]:
    """The cells for a kernel: with the legacy block layer those of its schedulers, unless told otherwise."""
    if not (kernel in kernel_names() and "cfq" in find(kernel).schedulers):
        return matrix()
    return early_blk_mq_matrix() if blk_mq else legacy_matrix()


def _simulated_as(kernel: str, cells: list[FidelityCell]) -> list[FidelityCell]:
    """The cells with the newest release that the simulator follows and the kernel has reached."""
    if kernel not in kernel_names():
        return cells
    reached = [release for release in MODELLED_RELEASES if release <= find(kernel).release]
    text = ".".join(str(part) for part in max(reached, default=MODELLED_RELEASES[0]))
    return [dataclasses.replace(cell, simulated_release=text) for cell in cells]


def _refuse_options_of_guests() -> None:
    """Refuses options that are given and do not belong to a comparison with this machine's kernel."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        if name in _OF_GUESTS and context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            raise UsageError(f"{parameter.opts[0]} cannot be combined with --host")


def _read(name: str) -> FidelityDocument:
    try:
        return FidelityDocument.model_validate_json(_text_of(name))
    except ValidationError as error:
        raise StoreError(f"{name}: is not a result of `blklab fidelity --json`") from error


def _text_of(name: str) -> str:
    try:
        return read_text(Path(name), MOST_RESULT_BYTES)
    except OSError as error:
        raise UsageError(f"{name}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{name}: is not UTF-8 text") from error


class _Progress:
    """Progress and remaining time on standard error."""

    def __init__(self, cells: int, *, quiet: bool) -> None:
        self._cells, self._quiet = cells, quiet
        self._done = 0
        self._begun = self._said = time.monotonic()

    def done(self, result: CellResult) -> None:
        """Counts a cell that has ended."""
        self._done += 1
        if result.failure is not None:
            print_note(f"{result.cell}: {result.failure}")
        now = time.monotonic()
        if self._quiet or (now - self._said < _LOG_INTERVAL_S and self._done < self._cells):
            return
        self._said = now
        left_ns = (now - self._begun) / self._done * (self._cells - self._done) * 1e9
        console_err().print(f"{self._done} of {self._cells} cells, {format_duration(round(left_ns))} left")


def _print(document: FidelityDocument, console: Terminal) -> None:
    console.print(f"{count_of(len(document.results), 'cell')} on {document.kernel}")
    _table(console, ("error of", "of", "median", "95 %", "worst", "cell", "limits"), spread_rows(document))
    beyond = outside_rows(document.results)
    if beyond:
        console.print(f"{count_of(len(beyond), 'cell')} outside the 95th-percentile limits:")
        for cell, text in beyond:
            console.print(f"  {cell}: {text}", soft_wrap=True)
    for result in document.failures:
        console.print(f"  failed: {result.cell}: {result.failure}", soft_wrap=True)


def _print_changes(document: FidelityDocument, earlier: FidelityDocument, console: Terminal) -> None:
    console.print("since the earlier result:")
    _table(console, ("error of", "median", "95 %", "worst"), changed_rows(document, earlier))
    for cell, before, now in moved_cells(document, earlier, "throughput")[:_MOST_MOVED]:
        old, new = (error_text("throughput", error, signed=True) for error in (before, now))
        console.print(f"  {cell}: throughput {old} → {new}", soft_wrap=True)


def _table(console: Terminal, headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    table = Table(*headings, box=box.SIMPLE_HEAD)
    for row in rows:
        table.add_row(*row)
    console.print(table)
