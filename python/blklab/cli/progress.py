"""Progress on standard error: a bar with an ETA on a terminal, a line now and then in a log."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.cli.output import print_note
from blklab.cli.progress_line import ProgressLine
from blklab.execution.blocks import Progress as RunProgress
from blklab.execution.racing import OpenQuestion
from blklab.quantities.units import format_duration
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import RunSample

MOST_BLOCKS_TOLD = 99
"""Larger estimates are too uncertain to print."""


class ProgressDisplay(ProgressLine):
    """Shows the pipeline's progress on standard error."""

    def __init__(self, *, quiet: bool) -> None:
        super().__init__(quiet=quiet)
        self._failed = 0
        self.run_id: str | None = None
        """The experiment's name; None until it has passed its checks."""

    def announce(self, line: str) -> None:
        """Shows a step that is not a run, such as laying out files."""
        self.show(line)
        self.log_now_and_then(line)

    def begun(self, record: ExperimentRecord) -> None:
        """Prints the experiment's name, which `--resume` takes."""
        self.run_id = record.run_id
        if not self._quiet:
            self._console.print(f"run {record.run_id}: {record.target.summary}", soft_wrap=True, markup=False)
            for warning in record.warnings:
                print_note(warning)

    def progressed(self, progress: RunProgress) -> None:
        """Shows a run that begins."""
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
        self.show(f"block {progress.block + 1}: {progress.current}", state)
        self.move(progress.runs_done, progress.runs_planned)
        self.log_now_and_then(f"block {progress.block + 1}, run {state}")

    def measured(self, sample: RunSample) -> None:
        """Reports a run that failed."""
        if sample.status == "failed":
            self._failed += 1
            print_note(f"{sample.cell.workload} under {sample.cell.scheduler} failed: {sample.error}")


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
