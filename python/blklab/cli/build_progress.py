"""Progress of a kernel's build on standard error: a bar with an ETA on a terminal, lines in a log."""

from __future__ import annotations

import time
from types import TracebackType

from rich.progress import BarColumn, Progress, TaskID, TextColumn

from blklab.cli.output import console_err
from blklab.units import format_duration

LOG_INTERVAL_NS = 10_000_000_000


class BuildDisplay:
    """An observer of a build that a person watches."""

    def __init__(self, *, quiet: bool) -> None:
        self._console = console_err()
        self._quiet = quiet
        self._stage = ""
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

    def __enter__(self) -> BuildDisplay:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def announce(self, line: str) -> None:
        """A stage begins."""
        self._stage = line
        self._bar.update(self._task, description=line, total=None, completed=0, state="")
        if not self._quiet and not self._console.is_terminal:
            self._print(line)

    def progressed(self, steps_done: int, steps_expected: int | None, remaining_ns: int | None) -> None:
        """A step of the compilation ended.

        The expectation comes from another build, so a count past it only means that this one is larger.
        """
        if steps_expected is None or remaining_ns is None or steps_done > steps_expected:
            total, state = None, f"{steps_done} steps"
        else:
            total = steps_expected
            state = f"{steps_done}/{steps_expected}, {format_duration(remaining_ns)} left"
        self._bar.update(self._task, total=total, completed=steps_done, state=state)
        now_ns = time.monotonic_ns()
        if (
            not self._quiet
            and not self._console.is_terminal
            and now_ns - self._last_line_ns >= LOG_INTERVAL_NS
        ):
            self._print(f"{self._stage}: {state}")

    def _print(self, line: str) -> None:
        self._last_line_ns = time.monotonic_ns()
        self._console.print(line, soft_wrap=True, markup=False)
