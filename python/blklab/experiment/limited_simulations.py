"""Simulations within a budget of events, so that a question that is asked on the side cannot take for ever.

Events are counted, not seconds: whether the budget suffices depends on the question alone, on every machine.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from blklab.backends.workers import STOPPED, GuestRuns, Simulations, SimulatorAnswer, simulate
from blklab.errors import RunFailedError, SimulationError
from blklab.guests.boot import Boot
from blklab.linux.machine.processors import usable_processors


class BudgetExceededError(Exception):
    """The budget does not suffice; the message says which part of it."""


class LimitedSimulations:
    """This machine's simulations, within a budget. Implements `blklab.backends.workers.Workers`.

    Args:
        most_events: Of all simulations together; a machine handles some 5 to 10 million a second.
        most_events_of_a_run: Of each of them.
        deadline_ns: Of `time.monotonic_ns`, for machines on which that takes too long nevertheless.
    """

    def __init__(self, *, most_events: int, most_events_of_a_run: int, deadline_ns: int) -> None:
        self.parallel = usable_processors()
        self._most_events = most_events
        self._most_events_of_a_run = most_events_of_a_run
        self._deadline_ns = deadline_ns
        self._events = 0
        self._mutex = threading.Lock()
        self._stopped = False

    @contextmanager
    def simulations(self) -> Iterator[Simulations]:
        """Simulations on threads of this process, all of one budget."""
        yield self

    @contextmanager
    def guests(self, boot: Boot) -> Iterator[GuestRuns]:
        """No guests.

        Raises:
            BudgetExceededError: always, as guests have no events to be counted.
        """
        del boot
        raise BudgetExceededError("it takes a guest, which has no events to be counted")
        yield  # what makes it a context manager

    def run(self, request: str) -> SimulatorAnswer:
        """Runs one.

        Raises:
            BudgetExceededError: if it does not fit into what is left.
            BlklabError: as for `Simulations.run`.
        """
        if self._gives_up():
            raise self._given_up()
        limited = json.loads(request)
        limited["limits"]["events"] = self._most_events_of_a_run
        try:
            answer = simulate(json.dumps(limited), self._gives_up)
        except SimulationError as error:
            raise BudgetExceededError(f"a run of it cannot be finished: {error.message}") from error
        if answer is None:
            raise self._given_up()
        with self._mutex:
            self._events += int(json.loads(answer[0])["engine"]["events"])
            if self._events > self._most_events:
                raise BudgetExceededError(f"it takes more than {self._most_events:,} simulated events")
        return answer

    def stop(self) -> None:
        """Aborts the simulations of other threads, and lets none begin."""
        self._stopped = True

    def _given_up(self) -> Exception:
        if self._stopped:
            return RunFailedError(STOPPED)
        return BudgetExceededError("it takes too long on this machine")

    def _gives_up(self) -> bool:
        return self._stopped or time.monotonic_ns() > self._deadline_ns
