"""Reads recordings and other programs' traces as NumPy columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from blklab import _core
from blklab.errors import DataError, FormatError, UnknownNameError, UsageError
from blklab.quantities.formatting import count_of
from blklab.recordings.facts import Facts, Tally

Columns = dict[str, NDArray[Any]]
"""One array per column, all of the same length."""

NEVER: Final = 2**64 - 1
"""A time of something that did not happen, or that the trace does not tell."""
UNKNOWN_TASK: Final = 2**32 - 1
UNKNOWN_IOPRIO: Final = 2**16 - 1
UNKNOWN_PROCESSOR: Final = 2**16 - 1
UNKNOWN_SEGMENTS: Final = 0

IO_COLUMNS: Final[dict[str, str]] = {
    "queued_ns": "<u8",
    "split_ns": "<u8",
    "merged_ns": "<u8",
    "inserted_ns": "<u8",
    "issued_ns": "<u8",
    "completed_ns": "<u8",
    "sector": "<u8",
    "bytes": "<u8",
    "operation": "u1",
    "flags": "<u2",
    "ioprio": "<u2",
    "error": "<u2",
    "tgid": "<u4",
    "tid": "<u4",
    "command": "<u4",
    "cgroup": "<u4",
    "processor": "<u2",
    "segments": "<u2",
    "device": "<u4",
}
"""Columns of I/Os and their types. Times count from the start of the recording; sectors have 512 bytes."""

TASK_COLUMNS: Final[dict[str, str]] = {
    "at_ns": "<u8",
    "kind": "u1",
    "tid": "<u4",
    "parent": "<u4",
    "command": "<u4",
}
"""Columns of task events; ``kind`` is 0 for a fork and 1 for an exit."""


_KEPT_BYTES: Final = 2 * sum(np.dtype(dtype).itemsize for dtype in IO_COLUMNS.values())
"""Of each I/O in a `Trace`: the batches, and the columns that they are joined to."""


@dataclass(frozen=True)
class Trace:
    """A whole recording in memory."""

    facts: Facts
    tally: Tally
    names: list[str]
    """Commands and control groups; the columns ``command`` and ``cgroup`` are indices. The first is empty and
    means unknown."""
    ios: Columns
    """In the order of completion, or in that of the trace if it has no completions."""
    tasks: Columns
    warnings: list[str]
    """Parts that were skipped, each with its place."""


class TraceReader:
    """A recording that is read batch by batch, so that its size does not matter."""

    def __init__(
        self, path: str | Path, format_name: str | None = None, *, kept_bytes: int | None = None
    ) -> None:
        """Opens a trace: a regular file or a pipe.

        Args:
            path: The file; for blktrace any of its files, or their common beginning.
            format_name: Name of a format (`trace_formats`); None recognises it.
            kept_bytes: Bytes that the caller keeps of each I/O. A trace that is larger than the free memory
                is refused while it is read. None if nothing is kept.

        Raises:
            FormatError: if the file is in no known format, or damaged from the start.
            UnknownNameError: if there is no such file or format.
        """
        if format_name is not None and format_name not in trace_formats():
            raise UnknownNameError(
                f"unknown trace format {format_name}", hint=f"known: {', '.join(trace_formats())}"
            )
        self.path = Path(path)
        self._names: list[str] = []
        try:
            self._reader = _core.open_record(str(path), format_name, kept_bytes)
        except _core.RecordError as error:
            raise translated(error) from error
        except ValueError as error:  # a NUL byte
            raise UsageError(f"{str(path)!r} is not a file's name") from error

    @property
    def facts(self) -> Facts:
        """The conditions; formats without a header learn their devices while they are read."""
        return Facts.model_validate_json(self._reader.facts())

    @property
    def tally(self) -> Tally:
        """The counts so far; complete after the last batch."""
        return Tally.model_validate_json(self._reader.tally())

    @property
    def names(self) -> list[str]:
        """Commands and control groups so far."""
        self._names += self._reader.names(len(self._names))
        return self._names

    def warnings(self) -> list[str]:
        """Parts that were skipped so far; the last line counts what is not listed."""
        first, count = self._reader.warnings()
        more = [count_of(count - len(first), "more warning")] if count > len(first) else []
        return first + more

    def batches(self) -> Iterator[tuple[Columns, Columns]]:
        """The I/Os and the task events, some thousand at a time.

        Raises:
            DataError: if the file cannot be read on.
        """
        while True:
            try:
                batch = self._reader.read()
            except _core.RecordError as error:
                raise translated(error) from error
            if batch is None:
                return
            yield _as_arrays(batch[0], IO_COLUMNS), _as_arrays(batch[1], TASK_COLUMNS)


def read_trace(path: str | Path, format_name: str | None = None) -> Trace:
    """Reads a whole recording into memory: some 80 bytes per I/O, and twice that while it is put together.

    Raises:
        FormatError: if the file is in no known format, or damaged from the start.
        UnknownNameError: if there is no such file or format.
        DataError: if the file cannot be read on, or is larger than the free memory.
    """
    reader = TraceReader(path, format_name, kept_bytes=_KEPT_BYTES)
    ios: list[Columns] = []
    tasks: list[Columns] = []
    for io_batch, task_batch in reader.batches():
        ios.append(io_batch)
        tasks.append(task_batch)
    return Trace(
        facts=reader.facts,
        tally=reader.tally,
        names=reader.names,
        ios=_joined(ios, IO_COLUMNS),
        tasks=_joined(tasks, TASK_COLUMNS),
        warnings=reader.warnings(),
    )


def trace_formats() -> dict[str, str]:
    """The formats that can be read: name and summary."""
    return dict(_core.record_formats())


def operation_names() -> list[str]:
    """Names of the numbers in the column ``operation``."""
    return _core.record_codes()[0]


def flag_names() -> dict[int, str]:
    """Names of the bits in the column ``flags``."""
    return dict(_core.record_codes()[1])


def translated(error: _core.RecordError) -> DataError | UnknownNameError:
    """The package's own error for one of the core."""
    if error.kind == "unknown_format":
        return FormatError(str(error), hint=f"formats that are known: {', '.join(trace_formats())}")
    if error.kind == "system" and "(os error 2)" in str(error):
        return UnknownNameError(
            str(error).replace("No such file or directory (os error 2)", "no such file or directory"),
            hint="blklab record DIRECTORY -o FILE records one",
        )
    if error.kind == "too_large":
        return FormatError(str(error), hint="record for less time, or fewer disks")
    return FormatError(str(error))


def _as_arrays(columns: dict[str, bytes], types: dict[str, str]) -> Columns:
    return {name: np.frombuffer(columns[name], dtype) for name, dtype in types.items()}


def _joined(batches: list[Columns], types: dict[str, str]) -> Columns:
    return {
        name: np.concatenate([batch[name] for batch in batches]) if batches else np.empty(0, dtype)
        for name, dtype in types.items()
    }
