"""Signals become exceptions that nothing in between mistakes for an error, drops or waits on for ever."""

from __future__ import annotations

import os
import signal
import threading
from typing import Annotated

import pytest
from pydantic import BaseModel, PlainSerializer, PlainValidator

from blklab.errors import InterruptedRunError, RestoreError, RunFailedError, SpecError
from blklab.linux.processes import signals
from blklab.linux.processes.signals import interrupted, signals_as_exceptions
from waiting import wait_until


def _send(value: int) -> int:
    if value:
        os.kill(os.getpid(), signal.SIGTERM)
    return value


class _Sending(BaseModel):
    """Sends a signal in the midst of pydantic's compiled code."""

    read: Annotated[int, PlainValidator(_send)] = 0
    written: Annotated[int, PlainSerializer(_send)] = 0


def test_within_a_serialiser() -> None:
    with pytest.raises(InterruptedRunError) as caught, signals_as_exceptions():
        _Sending(written=1).model_dump_json()
    assert caught.value.signal_number == signal.SIGTERM


def test_within_a_validator() -> None:
    with pytest.raises(InterruptedRunError), signals_as_exceptions():
        _Sending.model_validate_json('{"read": 1}')


def test_what_handles_errors_does_not_take_it_for_one() -> None:
    with pytest.raises(InterruptedRunError), signals_as_exceptions():
        try:
            _send(1)
        except Exception:
            pytest.fail("an interruption was handled as an error")


def test_whatever_it_is_turned_into() -> None:
    with pytest.raises(InterruptedRunError), signals_as_exceptions():
        try:
            _send(1)
        except InterruptedRunError as error:
            raise RunFailedError("a worker failed") from error
    with pytest.raises(InterruptedRunError), signals_as_exceptions():
        try:
            _send(1)
        finally:
            raise SpecError("not as expected")


def test_a_restoration_that_fails_is_the_news() -> None:
    with pytest.raises(RestoreError), signals_as_exceptions():
        try:
            _send(1)
        finally:
            raise RestoreError("nr_requests is 64, was 128")


def test_errors_without_a_signal_are_left_alone() -> None:
    with pytest.raises(SpecError), signals_as_exceptions():
        raise SpecError("not as expected")
    assert not interrupted()


class _Finalised:
    def __del__(self) -> None:
        _send(1)


def test_an_exception_that_python_drops_is_raised_again() -> None:
    """Python prints and drops exceptions in finalisers."""
    with pytest.raises(InterruptedRunError), signals_as_exceptions():
        _Finalised()
        wait_until(lambda: False, "the signal is raised again")


def test_a_second_signal_leaves_the_cleanup_alone() -> None:
    cleaned = False
    with pytest.raises(InterruptedRunError), signals_as_exceptions():
        try:
            _send(1)
        finally:
            _send(1)
            cleaned = True
    assert cleaned


def test_a_cleanup_that_hangs_can_be_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first signal came while a lock was held that nothing releases any more."""
    monkeypatch.setattr(signals, "STUCK_AFTER_S", 0.0)
    lock = threading.Lock()
    lock.acquire()
    main_thread = threading.get_ident()
    again = threading.Timer(0.05, lambda: signal.pthread_kill(main_thread, signal.SIGTERM))
    with pytest.raises(InterruptedRunError), signals_as_exceptions():
        try:
            _send(1)
        finally:
            again.start()
            lock.acquire()
    again.join()
