"""Turns signals into exceptions, so that every context manager can restore what it changed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from blklab.errors import InterruptedRunError

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _State:
    """The state of signal handling, which is one per process."""

    shield_depth = 0
    pending: int | None = None
    raised = False


def _on_signal(number: int, frame: FrameType | None) -> None:
    del frame
    if _State.raised:
        return  # a second Ctrl-C must not interrupt the restore that the first one began
    if _State.shield_depth:
        _State.pending = _State.pending or number
        return
    _State.raised = True
    raise InterruptedRunError(number, f"interrupted by {signal.Signals(number).name}")


@contextmanager
def signals_as_exceptions() -> Iterator[None]:
    """Makes the first SIGINT, SIGTERM or SIGHUP raise `InterruptedRunError` in the main thread.

    Later signals are ignored, so that the cleanup that the exception starts (above all the restore)
    completes. A signal that was ignored before (as under ``nohup``) stays ignored. Outside the main thread
    this has no effect, because Python delivers signals only to the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = {number: signal.getsignal(number) for number in ENDING_SIGNALS}
    _State.raised, _State.pending = False, None
    try:
        for number, handler in former.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, _on_signal)
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


@contextmanager
def shielded() -> Iterator[None]:
    """Delays SIGINT, SIGTERM and SIGHUP, so that they do not interrupt the writes that restore settings.

    The first one that arrived is raised on exit, unless another exception is propagating already.
    """
    _State.shield_depth += 1
    try:
        yield
    except BaseException:
        _State.shield_depth -= 1
        if not _State.shield_depth:
            _State.pending = None
        raise
    _State.shield_depth -= 1
    if not _State.shield_depth and _State.pending is not None:
        number, _State.pending = _State.pending, None
        _State.raised = True
        raise InterruptedRunError(number, f"interrupted by {signal.Signals(number).name}")
