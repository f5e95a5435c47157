"""Turns signals into exceptions, so that every context manager can restore what it changed."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from blklab.errors import InterruptedRunError, RunFailedError

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_BEFORE_ANOTHER_ATTEMPT_S = 0.002
STUCK_AFTER_S = 10.0
"""Time after which another signal interrupts the cleanup that the first one began, if nothing shields it."""


class _State:
    """The state of signal handling, which is one per process."""

    shield_depth = 0
    pending: int | None = None
    raised: int | None = None
    """The signal that has been raised as an exception."""
    raised_at_s = 0.0


def _interruption(number: int) -> InterruptedRunError:
    return InterruptedRunError(number, f"interrupted by {signal.Signals(number).name}")


def _on_signal(number: int, frame: FrameType | None) -> None:
    del frame
    # A second Ctrl-C must not interrupt the cleanup that the first one began, unless that waits for ever, as
    # it may for a lock that the first one left locked.
    if _State.raised is not None and time.monotonic() - _State.raised_at_s < STUCK_AFTER_S:
        return
    if _State.shield_depth:
        _State.pending = _State.pending or number
        return
    _raise(number)


def _raise(number: int) -> NoReturn:
    _State.raised, _State.raised_at_s = number, time.monotonic()
    raise _interruption(number)


def interrupted() -> bool:
    """Tells whether a signal has been raised within `signals_as_exceptions`.

    Any exception that propagates then may be its consequence, whatever its type is.
    """
    return _State.raised is not None


@contextmanager
def signals_as_exceptions() -> Iterator[None]:
    """Makes the first SIGINT, SIGTERM or SIGHUP raise `InterruptedRunError` in the main thread.

    Later signals are ignored for `STUCK_AFTER_S`, so that the cleanup that the exception starts completes
    (above all the restore, which is shielded). A signal that was ignored before (as under ``nohup``) stays
    ignored. Outside the main thread this has no effect, because Python delivers signals only to the main
    thread.

    Compiled code may call Python, get the exception from there and raise one of its own (pydantic's
    serialisers do). So whatever exception leaves this context after a signal becomes an
    `InterruptedRunError`, except a `RunFailedError` of the cleanup: that something could not be restored is
    the more important news. Where Python drops exceptions (finalisers, callbacks of weak references), the
    signal is raised again a moment later.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = {number: signal.getsignal(number) for number in ENDING_SIGNALS}
    former_hook = sys.unraisablehook
    _State.raised, _State.pending = None, None
    try:
        sys.unraisablehook = _raising_again(former_hook)
        for number, handler in former.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, _on_signal)
        yield
    except (InterruptedRunError, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        if _State.raised is None or _is_news_of_the_cleanup(error):
            raise
        raise _interruption(_State.raised) from error
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
        sys.unraisablehook = former_hook


def _is_news_of_the_cleanup(error: BaseException) -> bool:
    """Tells a failure while cleaning up from an error that only wraps the interruption."""
    if not isinstance(error, RunFailedError):
        return False
    cause = error.__cause__
    while cause is not None:
        if isinstance(cause, InterruptedRunError):
            return False
        cause = cause.__cause__
    return True


def _raising_again(former: Callable[[UnraisableHookArgs], object]) -> Callable[[UnraisableHookArgs], object]:
    """A hook for dropped exceptions that sends a dropped interruption's signal again."""
    main_thread = threading.get_ident()

    def send(number: int) -> None:
        time.sleep(_BEFORE_ANOTHER_ATTEMPT_S)  # until the code that drops exceptions is left
        signal.pthread_kill(main_thread, number)

    def hook(dropped: UnraisableHookArgs) -> None:
        if not issubclass(dropped.exc_type, InterruptedRunError) or _State.raised is None:
            former(dropped)
            return
        number, _State.raised = _State.raised, None
        # Not `threading.Thread`: the interrupted code may hold that module's locks.
        _thread.start_new_thread(send, (number,))

    return hook


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
        _raise(number)
