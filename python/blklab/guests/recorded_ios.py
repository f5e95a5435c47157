"""The I/Os of a guest's load: when its program asked for each, and when the disk had completed it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from blklab.errors import RunFailedError


@dataclass(frozen=True)
class RecordedIo:
    """A read or write. Times count from the start of the load."""

    process: int
    """Index among all processes of the load, in the order of the job file."""
    job: int
    """Index of its job in the job file."""
    is_write: bool
    offset: int
    """In bytes, on the disk."""
    bytes: int
    queued_ns: int
    submitted_ns: int
    """When an asynchronous I/O was submitted and its process could go on; otherwise as `queued_ns`."""
    completed_ns: int


def recorded_ios(answer: Mapping[str, Any]) -> list[RecordedIo]:
    """Reads the recording in a guest's answer, in the order in which the I/Os were asked for.

    Raises:
        RunFailedError: if there is none, or it is not as expected.
    """
    try:
        found = answer["recording"]
        jobs = found["jobs"]
        names = ("process", "is_write", "offset", "bytes", "queued_ns", "submitted_ns", "completed_ns")
        rows = zip(*(found[name] for name in names), strict=True)
        return [
            RecordedIo(process, jobs[process], bool(is_write), *rest) for process, is_write, *rest in rows
        ]
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise RunFailedError(f"the guest's recording is not as expected: {error!r}") from error
