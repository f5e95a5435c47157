"""Runs the simulations and guests of a session on this machine; a cluster has the same interface.

A run depends only on its request, so it gives the same bits wherever it runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from blklab import _core
from blklab.errors import RunFailedError
from blklab.guests.boot import Boot
from blklab.guests.guest import GuestImage, GuestResult, Guests
from blklab.guests.scratch import choose_scratch, remove_stale_folders
from blklab.linux.machine.processors import usable_processors
from blklab.simulator.core import call_core

SimulatorAnswer = tuple[str, tuple[bytes, bytes] | None]
"""The answer in JSON and, if the request asks for a timeline, the rows of its two tables."""
STOPPED = "the session was stopped before the run had ended"


class Simulations(Protocol):
    """The simulations of one session; up to `parallel` threads may call `run` at once."""

    @property
    def parallel(self) -> int:
        """Number of simulations that run at once."""

    def run(self, request: str) -> SimulatorAnswer:
        """Runs one.

        Args:
            request: In JSON, for the compiled core.

        Raises:
            SimulationError: if it fails.
            BlklabError: if the request is refused, or the session was stopped.
        """

    def stop(self) -> None:
        """Aborts the simulations of other threads, and lets none begin."""


class GuestRuns(Protocol):
    """The guests of one session; up to `parallel` threads may call `run` at once."""

    @property
    def parallel(self) -> int:
        """Number of guests that run at once."""

    def run(
        self,
        image: GuestImage,
        request: Mapping[str, Any],
        texts: Mapping[str, str],
        wanted: tuple[str, ...] = (),
    ) -> GuestResult:
        """See `blklab.guests.guest.Guests.run`."""

    def stop(self) -> None:
        """Kills all guests, and lets none begin."""


class Workers(Protocol):
    """Machines that run the simulations and guests of sessions."""

    def simulations(self) -> AbstractContextManager[Simulations]:
        """Simulations of one session.

        Raises:
            RequirementError: if the machines cannot be reached, or lack something.
        """

    def guests(self, boot: Boot) -> AbstractContextManager[GuestRuns]:
        """Guests of one session.

        Raises:
            BlklabError: likewise.
        """


class ThisMachine:
    """Runs everything here, one simulation or guest on each processor."""

    @contextmanager
    def simulations(self) -> Iterator[Simulations]:
        """Simulations on threads of this process."""
        yield _SimulationsHere()

    @contextmanager
    def guests(self, boot: Boot) -> Iterator[GuestRuns]:
        """Guests in scratch directories, which are removed at the end.

        Raises:
            SpaceError: if not even one guest fits.
            RequirementError: if no directory is writable.
        """
        folder, room = choose_scratch(boot.memory_bytes)
        remove_stale_folders(folder)
        # In host time the processor's time is part of the result, so guests must not compete for it.
        parallel = min(usable_processors(), room) if boot.virtual_time else 1
        with Guests(folder, boot, parallel=parallel) as guests:
            yield guests


THIS_MACHINE = ThisMachine()


class _SimulationsHere:
    def __init__(self) -> None:
        self.parallel = usable_processors()
        self._stopped = threading.Event()

    def run(self, request: str) -> SimulatorAnswer:
        answer = simulate(request, self._stopped.is_set)
        if answer is None:
            raise RunFailedError(STOPPED)
        return answer

    def stop(self) -> None:
        self._stopped.set()


def simulate(request: str, stopped: Callable[[], bool]) -> SimulatorAnswer | None:
    """Runs a simulation.

    Args:
        request: In JSON.
        stopped: Asked every few milliseconds, on the calling thread, whether to give up.

    Returns:
        The answer; None if it was given up.

    Raises:
        BlklabError: if the core refuses the request or fails.
    """
    answer: SimulatorAnswer | None = call_core(lambda text: _core.simulate_recorded(text, stopped), request)
    return answer
