"""Progress on standard error: a bar with an ETA on a terminal, a line now and then in a log."""

from __future__ import annotations

import time
from collections.abc import Sequence

from blklab.experiment.blocks import Progress as RunProgress
from blklab.experiment.outlook import Outlook, Shortage
from blklab.experiment.racing import OpenQuestion
from blklab.progress.line import ProgressLine
from blklab.quantities.formatting import TIMES, count_of, percent_text, scheduler_text
from blklab.quantities.notes import split
from blklab.quantities.sample_units import BLOCKS, rough_budget, rough_duration
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import SLOW_SWITCH, RunSample

_STEPS = 1000
"""Of the bar."""
_NOTICEABLE_LEAD = 0.005
_MANY_TIMES = 9.0


class ProgressDisplay(ProgressLine):
    """Shows the pipeline's progress on standard error."""

    def __init__(self, *, quiet: bool, tells_plan: bool = True, names_runs: bool = True) -> None:
        """Begins to show.

        Args:
            quiet: Whether to show only what fails.
            tells_plan: Whether to print the plan before the first run, unless another has printed it.
            names_runs: Whether to print each experiment's name; one of many in a study needs none.
        """
        super().__init__(quiet=quiet)
        self._failed = 0
        self._begun_ns = time.monotonic_ns()
        self._plans = tells_plan
        self._names_runs = names_runs
        self._named_budget_ns = 0
        """A budget that the plan called enough for an answer."""
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
        self._begun_ns = time.monotonic_ns()
        if not self._quiet:
            if self._names_runs:
                self._console.prose(f"run {record.run_id}: {record.target.summary}")
            # Notes are in the report, once.
            for warning in split(record.warnings)[0]:
                self.note(warning)

    def planned(self, outlook: Outlook) -> None:
        """Prints what will be done, and for how long at most."""
        if outlook.shortage is not None:
            self._named_budget_ns = outlook.shortage.enough_ns
        if self._quiet or not self._plans:
            return
        self._console.prose(plan_text(outlook))
        if outlook.shortage is not None:
            self.note(shortage_text(outlook.shortage, outlook.schedulers))

    def falls_short(self, shortage: Shortage, schedulers: int) -> None:
        """Says, unless all is quiet, that an answer needs a longer budget than the plan named, and which."""
        if not self._quiet and shortage.enough_ns > self._named_budget_ns:
            self.note(shortage_text(shortage, schedulers))

    def progressed(self, progress: RunProgress) -> None:
        """Shows a run or a stretch of slots that begins."""
        self._in_stretch = progress.unit != BLOCKS
        self._last_failure = None
        done = self._fraction(progress)
        states = [
            "" if done is None else percent_text(done),
            _time_left(progress),
            standing(progress.open),
            f"{self._failed} failed" if self._failed else "",
        ]
        self.show(progress.current, *states)
        self.move(0 if done is None else round(_STEPS * done), None if done is None else _STEPS)
        where = f"repetition {progress.block + 1}: {progress.current}"
        self.log_now_and_then(", ".join(part for part in (*states, where) if part))

    def _fraction(self, progress: RunProgress) -> float | None:
        """The part that is done, of the plan or of the longest time; None if unknown."""
        if progress.runs_planned:
            return progress.runs_done / progress.runs_planned
        if progress.remaining_ns is None:
            return None
        elapsed_ns = time.monotonic_ns() - self._begun_ns
        return elapsed_ns / max(1, elapsed_ns + max(0, progress.remaining_ns))

    def measured(self, sample: RunSample) -> None:
        """Reports a run that failed; of slots that failed together, the first."""
        if sample.status != "failed" or sample.error == SLOW_SWITCH:
            return
        self._failed += 1
        # Slots of a load share its seed.
        failure = (sample.cell.workload, sample.cell.seed, sample.error)
        if failure != self._last_failure or not self._in_stretch:
            self._last_failure = failure
            self.note(f"{sample.cell.workload} under {sample.cell.scheduler} failed: {sample.error}")


def plan_text(outlook: Outlook) -> str:
    """The size, the limit, and that waiting for the end is not needed."""
    size = f"{count_of(outlook.schedulers, 'scheduler')} {TIMES} {count_of(outlook.workloads, 'load')}"
    parts = [size]
    if outlook.budget_ns is not None:
        short = outlook.shortage is not None and outlook.shortage.blocks == 0
        longer = " or as long as the first repetition takes, which is always made whole" if short else ""
        parts.append(f"at most {rough_duration(outlook.budget_ns)}{longer}")
    if outlook.blocks is not None:
        most = "at most " if outlook.ends_when_settled else ""
        about = "" if outlook.longest_ns is None else f" (about {rough_duration(outlook.longest_ns)})"
        parts.append(f"{most}{count_of(outlook.blocks, 'repetition')}{about}")
    if outlook.ends_when_settled:
        parts.append("ends as soon as it is settled")
    return f"{', '.join(parts)} (Ctrl-C keeps what is known)"


def shortage_text(shortage: Shortage, schedulers: int) -> str:
    """``90 s are enough for 2 repetitions of 4 schedulers; an answer needs 4: --budget 4m``."""
    budget = rough_duration(shortage.budget_ns)
    enough = f"{budget} are enough for {count_of(shortage.blocks, 'repetition')}"
    if shortage.blocks == 0:
        enough = f"{budget} are too short for one repetition"
    return (
        f"{enough} of {count_of(schedulers, 'scheduler')}; an answer needs {shortage.needed}: "
        f"--budget {rough_budget(shortage.enough_ns)}"
    )


def standing(questions: Sequence[OpenQuestion]) -> str:
    """The state so far: ``kyber ahead by 7 %``, ``kyber ahead in 3 open loads``, ``3 loads open``."""
    if not questions:
        return ""
    leaders = {question.leader for question in questions}
    leader = next(iter(leaders)) if len(leaders) == 1 else None
    if len(questions) > 1:
        loads = f"{len(questions)} open loads"
        return loads if leader is None else f"{scheduler_text(leader)} ahead in {loads}"
    lead = questions[0].lead
    if leader is None or lead is None:
        return ""
    if lead < _NOTICEABLE_LEAD:
        return f"{scheduler_text(leader)} hardly ahead"
    places = 1 if lead < _MANY_TIMES else 0
    ahead = f"{100 * lead:.0f} %" if lead < 1 else f"{1 + lead:.{places}f} {TIMES}"
    return f"{scheduler_text(leader)} ahead by {ahead}"


def _time_left(progress: RunProgress) -> str:
    """The time left; empty if unknown."""
    if progress.remaining_ns is None:
        return ""
    if progress.remaining_ns <= 0:
        # Setting up takes part of a budget too, and the first repetition is made in any case.
        return "the budget is used up: this repetition is the last"
    most = "at most " if progress.open else ""
    return f"{most}{rough_duration(progress.remaining_ns)} left"
