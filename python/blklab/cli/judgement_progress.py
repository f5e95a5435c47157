"""Progress of a judgement on standard error: a bar with an ETA on a terminal, lines in a log."""

from __future__ import annotations

import time

from blklab.progress.line import ProgressLine
from blklab.quantities.units import format_duration


class JudgementDisplay(ProgressLine):
    """Shows the progress of a judgement."""

    def __init__(self, *, quiet: bool) -> None:
        super().__init__(quiet=quiet)
        self._begun_ns = time.monotonic_ns()

    def progressed(self, what: str, done: int, expected: int) -> None:
        """Shows a question whose runs have ended."""
        remaining_ns = (time.monotonic_ns() - self._begun_ns) * (expected - done) // max(done, 1)
        state = f"{done}/{expected}, {format_duration(remaining_ns)} left"
        self.show(what, state)
        self.move(done, expected)
        self.log_now_and_then(f"{what}: {state}")
