"""Signals as exceptions, so that every context manager on the way gets to restore what it changed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from blklab.errors import InterruptedRunError

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _State:
    """Signals are a matter of the process, hence one state for all."""

    shield_depth = 0
    pending: int | None = None
    raised = False


def _on_signal(number: int, frame: FrameType | None) -> None:
    del frame
    if _State.raised:
        return  # one is enough: a second Ctrl-C must not break off the restoring that the first one began
    if _State.shield_depth:
        _State.pending = _State.pending or number
        return
    _State.raised = True
    raise InterruptedRunError(number, f"interrupted by {signal.Signals(number).name}")


@contextmanager
def signals_as_exceptions() -> Iterator[None]:
    """Within it the first SIGINT, SIGTERM or SIGHUP raises `InterruptedRunError` in the main thread.

    Later ones do nothing, so that what the exception sets going (restoring above all) runs to its end.
    A signal that was being ignored (as under ``nohup``) stays ignored. Outside the main thread it does
    nothing, since Python delivers signals to the main thread only.
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
    """Within it the ending signals wait: for the writes that put settings back.

    The first signal that came meanwhile is raised at the end, unless an exception is under way already.
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
