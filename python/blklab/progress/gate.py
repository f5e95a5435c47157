"""Progress of a gate on standard error."""

from __future__ import annotations

import time

from blklab.progress.build import BuildDisplay
from blklab.quantities.units import format_duration


class GateDisplay(BuildDisplay):
    """Shows the progress of a gate."""

    def __init__(self, *, quiet: bool) -> None:
        super().__init__(quiet=quiet)
        self._begun_ns = time.monotonic_ns()

    def announce(self, line: str) -> None:
        """Shows a stage that begins."""
        self._begun_ns = time.monotonic_ns()
        super().announce(line)

    def asked(self, question: str, done: int, expected: int) -> None:
        """Shows a question that was asked."""
        self._count(question, f"{done}/{expected} loads", done, expected)

    def ended(self, scheduler: str, seed: int, done: int, total: int, mistakes: int) -> None:
        """Shows a seed whose run has ended."""
        found = f", {mistakes} with a mistake" if mistakes else ""
        self._count(f"{scheduler}, seed {seed}", f"{done}/{total} seeds{found}", done, total)

    def _count(self, what: str, counted: str, done: int, expected: int) -> None:
        remaining_ns = (time.monotonic_ns() - self._begun_ns) * (expected - done) // max(done, 1)
        state = f"{counted}, {format_duration(remaining_ns)} left"
        self.show(what, state)
        self.move(done, expected)
        self.log_now_and_then(f"{what}: {state}")
