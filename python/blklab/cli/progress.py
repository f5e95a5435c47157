"""Progress on standard error: a bar with an ETA on a terminal, a line now and then in a log."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.cli.output import print_note
from blklab.cli.progress_line import ProgressLine
from blklab.execution.blocks import Progress as RunProgress
from blklab.execution.outlook import Outlook, Shortage
from blklab.execution.racing import OpenQuestion
from blklab.quantities.formatting import TIMES, count_of
from blklab.quantities.notes import split
from blklab.quantities.sample_units import BLOCKS, rough_budget, rough_duration
from blklab.quantities.units import format_duration
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import SLOW_SWITCH, RunSample

MOST_BLOCKS_TOLD = 99
"""Larger estimates are too uncertain to print."""


class ProgressDisplay(ProgressLine):
    """Shows the pipeline's progress on standard error."""

    def __init__(self, *, quiet: bool) -> None:
        super().__init__(quiet=quiet)
        self._failed = 0
        self._in_stretch = False
        """Whether a stretch of slots is under way."""
        self._last_failure: tuple[str, int, str | None] | None = None
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
            self._console.print(f"run {record.run_id}: {record.target.summary}", soft_wrap=True)
            # Notes are in the report, once.
            for warning in split(record.warnings)[0]:
                print_note(warning)

    def planned(self, outlook: Outlook) -> None:
        """Prints what will be done, and for how long at most."""
        if self._quiet:
            return
        self._console.print(plan_text(outlook), soft_wrap=True)
        if outlook.shortage is not None:
            print_note(shortage_text(outlook.shortage, outlook.schedulers))

    def progressed(self, progress: RunProgress) -> None:
        """Shows a run or a stretch of slots that begins."""
        self._in_stretch = progress.unit != BLOCKS
        self._last_failure = None
        planned = "" if progress.runs_planned is None else f"/{progress.runs_planned}"
        state = f"{progress.runs_done + 1}{planned}{_time_left(progress)}"
        if self._failed:
            state += f", {self._failed} failed"
        if progress.open:
            state += f"; open: {open_questions(progress.open)}"
        where = f"{progress.unit.name} {progress.block + 1}"
        self.show(f"{where}: {progress.current}", state)
        self.move(progress.runs_done, progress.runs_planned)
        self.log_now_and_then(f"{where}, {progress.unit.part} {state}")

    def measured(self, sample: RunSample) -> None:
        """Reports a run that failed; of slots that failed together, the first."""
        if sample.status != "failed" or sample.error == SLOW_SWITCH:
            return
        self._failed += 1
        # Slots of a load share its seed.
        failure = (sample.cell.workload, sample.cell.seed, sample.error)
        if failure != self._last_failure or not self._in_stretch:
            self._last_failure = failure
            print_note(f"{sample.cell.workload} under {sample.cell.scheduler} failed: {sample.error}")


def plan_text(outlook: Outlook) -> str:
    """The size, the limit, and that waiting for the end is not needed."""
    size = f"{count_of(outlook.schedulers, 'scheduler')} {TIMES} {count_of(outlook.workloads, 'load')}"
    parts = [size]
    if outlook.budget_ns is not None:
        parts.append(f"at most {rough_duration(outlook.budget_ns)}")
    if outlook.blocks is not None:
        most = "at most " if outlook.ends_when_settled else ""
        parts.append(f"{most}{count_of(outlook.blocks, 'repetition')}")
    if outlook.ends_when_settled:
        parts.append("ends as soon as it is settled")
    return f"{', '.join(parts)} (Ctrl-C keeps what is known)"


def shortage_text(shortage: Shortage, schedulers: int) -> str:
    """``90 s are enough for 2 repetitions of 4 schedulers; an answer needs 4: --budget 4m``."""
    return (
        f"{rough_duration(shortage.budget_ns)} are enough for {count_of(shortage.blocks, 'repetition')} of "
        f"{count_of(schedulers, 'scheduler')}; an answer needs {shortage.needed}: "
        f"--budget {rough_budget(shortage.enough_ns)}"
    )


def open_questions(questions: Sequence[OpenQuestion]) -> str:
    """``reads (none, bfq; about 3 more blocks), writes (none, kyber)``."""
    parts = []
    for question in questions:
        more, unit = question.more_blocks, question.unit
        need = "" if more is None else f"; about {unit.more(more, len(question.candidates))}"
        if more is not None and unit == BLOCKS and more > MOST_BLOCKS_TOLD:
            need = f"; over {MOST_BLOCKS_TOLD} more blocks"
        elif more is not None and not unit.within_reach(more, len(question.candidates)):
            need = ""
        parts.append(f"{question.workload} ({', '.join(question.candidates)}{need})")
    return ", ".join(parts)


def _time_left(progress: RunProgress) -> str:
    """The time left as the end of a sentence; empty if unknown."""
    if progress.remaining_ns is None:
        return ""
    if progress.remaining_ns <= 0:
        # Setting up takes part of a budget too, and the first block is made in any case.
        return f", the budget is used up: this {progress.unit.name} is the last"
    most = "at most " if progress.open else ""
    return f", {most}{format_duration(progress.remaining_ns)} left"
