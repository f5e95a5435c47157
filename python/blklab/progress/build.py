"""Progress of a kernel's build on standard error: a bar with an ETA on a terminal, lines in a log."""

from __future__ import annotations

from blklab.progress.line import ProgressLine
from blklab.quantities.units import format_duration


class BuildDisplay(ProgressLine):
    """Shows the progress of a build."""

    _stage = ""

    def announce(self, line: str) -> None:
        """Shows a stage that begins."""
        self._stage = line
        self.show(line)
        self.move(0, None)
        self.log(line)

    def progressed(self, steps_done: int, steps_expected: int | None, remaining_ns: int | None) -> None:
        """Shows a step of the compilation that ended.

        The expectation comes from another build, so a count past it only means that this one is larger.
        """
        total, state = None, f"{steps_done} steps"
        if steps_expected is not None and remaining_ns is not None and steps_done <= steps_expected:
            total = steps_expected
            state = f"{steps_done}/{steps_expected}, {format_duration(remaining_ns)} left"
        self.show(self._stage, state)
        self.move(steps_done, total)
        self.log_now_and_then(f"{self._stage}: {state}")
