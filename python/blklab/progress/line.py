"""Progress on standard error: a bar on a terminal, occasional lines in a log."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TypeVar

from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column

from blklab.quantities.visible import visible
from blklab.report.terminal import console_err, print_note

LOG_INTERVAL_NS = 10_000_000_000
_BAR_CELLS = 12
_SEPARATOR = " · "

_Line = TypeVar("_Line", bound="ProgressLine")


class ProgressLine:
    """One line of progress; a context in which the bar is shown."""

    def __init__(self, *, quiet: bool) -> None:
        self._console = console_err()
        self._quiet = quiet
        self._logs = not quiet and not self._console.is_terminal
        self._last_line_ns = time.monotonic_ns()
        # What counts most stands first, and the end is cut where the terminal ends.
        self._bar = Progress(
            BarColumn(bar_width=_BAR_CELLS, table_column=Column(width=_BAR_CELLS)),
            TextColumn(
                "{task.fields[line]}",
                markup=False,
                table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"),
            ),
            console=self._console,
            transient=True,
            expand=True,
            disable=quiet or not self._console.is_terminal,
        )
        self._task = self._bar.add_task("", total=None, line="starting")

    def __enter__(self: _Line) -> _Line:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def show(self, description: str, *states: str) -> None:
        """Changes the text; the bar stays where it is.

        Args:
            description: What is being done; the last, so that it is cut first.
            states: How far it is, the most important first; empty ones are left out.
        """
        line = _SEPARATOR.join(part for part in (*states, description) if part)
        self._bar.update(self._task, line=visible(line))

    def move(self, done: int, total: int | None) -> None:
        """Moves the bar; without a total it only shows activity."""
        self._bar.update(self._task, completed=done)
        # Updating the total to None would keep the old one.
        self._bar.tasks[0].total = total

    def note(self, message: str) -> None:
        """Prints a note above the line; printed past it, it would leave a copy of the line behind."""
        print_note(message, self._console)

    def log(self, line: str) -> None:
        """Writes a line to a log at once."""
        if self._logs:
            self._last_line_ns = time.monotonic_ns()
            self._console.print(line, soft_wrap=True)

    def log_now_and_then(self, line: str) -> None:
        """Writes a line to a log unless the last one is recent."""
        if time.monotonic_ns() - self._last_line_ns >= LOG_INTERVAL_NS:
            self.log(line)
