"""Waits of I/Os as they happen, without a file."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from blklab import _core
from blklab.linux.disks.resolution import Resolution
from blklab.linux.recording.recorder import translated
from blklab.linux.recording.request import capture_request
from blklab.recordings.waits import Waits

_POLL_SECONDS = 0.02
"""The kernel's buffers hold many times this."""


@dataclass(frozen=True)
class LiveWaits:
    """A capture under way."""

    capture: _core.LiveCapture

    def window(self, length_ns: int) -> Waits:
        """The waits of the I/Os that complete in the next `length_ns`.

        Raises:
            RequirementError: if the kernel's buffers cannot be read.
        """
        end_s = time.monotonic() + length_ns / 1e9
        try:
            while (left_s := end_s - time.monotonic()) > 0:
                self.capture.poll()
                time.sleep(min(_POLL_SECONDS, left_s))
            return Waits.model_validate_json(self.capture.window())
        except _core.CaptureError as error:
            raise translated(error) from error


@contextmanager
def live_waits(resolution: Resolution) -> Iterator[tuple[LiveWaits, list[str]]]:
    """Captures the I/Os of a target's disks; gives the capture, and facts that it lacks.

    Raises:
        NotRootError: if root is missing.
        RequirementError: if this kernel cannot record.
    """
    try:
        capture = _core.LiveCapture(capture_request(resolution))
    except _core.CaptureError as error:
        raise translated(error) from error
    try:
        yield LiveWaits(capture), capture.missing
    finally:
        with suppress(_core.CaptureError):
            capture.finish()
