"""Progress on standard error: a bar with an ETA on a terminal, a line now and then in a log."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType

from rich.progress import BarColumn, Progress, TaskID, TextColumn

from blklab.cli.output import console_err, print_note
from blklab.experiment import ExperimentRecord
from blklab.pipeline import Progress as RunProgress
from blklab.race import OpenQuestion
from blklab.samples import RunSample
from blklab.units import format_duration

LOG_INTERVAL_NS = 10_000_000_000
MOST_BLOCKS_TOLD = 99
"""Estimates beyond that say little but that there is no end in sight."""


class ProgressDisplay:
    """An observer of the pipeline that a person watches."""

    def __init__(self, *, quiet: bool) -> None:
        self._console = console_err()
        self._quiet = quiet
        self._failed = 0
        self.run_id: str | None = None
        """Name of the experiment, once it passed its checks."""
        self._last_line_ns = time.monotonic_ns()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[state]}"),
            console=self._console,
            transient=True,
            disable=quiet or not self._console.is_terminal,
        )
        self._task: TaskID = self._bar.add_task("starting", total=None, state="")

    def __enter__(self) -> ProgressDisplay:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def announce(self, line: str) -> None:
        """A step that is not a run."""
        self._bar.update(self._task, description=line, state="")
        self._log(line)

    def begun(self, record: ExperimentRecord) -> None:
        """The experiment has its name: the person needs it to resume."""
        self.run_id = record.run_id
        if not self._quiet:
            self._console.print(f"run {record.run_id}: {record.target.summary}", soft_wrap=True, markup=False)
            for warning in record.warnings:
                print_note(warning)

    def progressed(self, progress: RunProgress) -> None:
        """A run begins."""
        planned = "" if progress.runs_planned is None else f"/{progress.runs_planned}"
        most = "at most " if progress.open else ""
        left = (
            "" if progress.remaining_ns is None else f", {most}{format_duration(progress.remaining_ns)} left"
        )
        state = f"{progress.runs_done + 1}{planned}{left}"
        if self._failed:
            state += f", {self._failed} failed"
        if progress.open:
            state += f"; open: {open_questions(progress.open)}"
        self._bar.update(
            self._task,
            description=f"block {progress.block + 1}: {progress.current}",
            total=progress.runs_planned,
            completed=progress.runs_done,
            state=state,
        )
        self._log(f"block {progress.block + 1}, run {state}")

    def measured(self, sample: RunSample) -> None:
        """A run ended."""
        if sample.status == "failed":
            self._failed += 1
            print_note(f"{sample.cell.workload} under {sample.cell.scheduler} failed: {sample.error}")

    def _log(self, line: str) -> None:
        """In a log, one line every few seconds is enough."""
        now_ns = time.monotonic_ns()
        if self._quiet or self._console.is_terminal or now_ns - self._last_line_ns < LOG_INTERVAL_NS:
            return
        self._last_line_ns = now_ns
        self._console.print(line, soft_wrap=True, markup=False)


def open_questions(questions: Sequence[OpenQuestion]) -> str:
    """``reads (none, bfq; about 3 blocks), writes (none, kyber)``."""
    parts = []
    for question in questions:
        blocks = question.more_blocks
        need = "" if blocks is None else f"; about {blocks} more block{'' if blocks == 1 else 's'}"
        if blocks is not None and blocks > MOST_BLOCKS_TOLD:
            need = f"; over {MOST_BLOCKS_TOLD} more blocks"
        parts.append(f"{question.workload} ({', '.join(question.candidates)}{need})")
    return ", ".join(parts)
