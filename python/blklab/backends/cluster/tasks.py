"""The tasks that a worker of the cluster runs; they return a refusal as data, which survives the way back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from distributed import get_worker

import blklab
from blklab.backends.cluster.contents import ImageContents
from blklab.backends.cluster.release import on_release, released
from blklab.backends.workers import STOPPED, SimulatorAnswer, simulate
from blklab.errors import BlklabError, RequirementError, RunFailedError
from blklab.guests.boot import Boot
from blklab.guests.guest import GuestResult, Guests
from blklab.guests.scratch import choose_scratch, remove_stale_folders

Result = TypeVar("Result")


@dataclass(frozen=True)
class Refusal:
    """An error of blklab on a worker, returned: Dask calls a task that raises failed, and logs a trace."""

    error: BlklabError


def version() -> str:
    """The worker's version of blklab."""
    return blklab.__version__


def run_simulation(wanted_version: str, request: str) -> SimulatorAnswer | Refusal:
    """Runs a simulation."""

    def simulated() -> SimulatorAnswer:
        answer = simulate(request, released())
        if answer is None:
            raise RunFailedError(STOPPED)
        return answer

    return _checked(wanted_version, simulated)


def run_guest(
    wanted_version: str,
    boot: Boot,
    image: ImageContents,
    files: Mapping[str, bytes],
    request: Mapping[str, Any],
    texts: Mapping[str, str],
    wanted: tuple[str, ...],
) -> GuestResult | Refusal:
    """Runs a guest in a scratch directory of its own."""

    def answered() -> GuestResult:
        # Dask removes a worker's own directory when the worker ends, and those of killed ones later.
        found = image.written(files, Path(get_worker().local_directory) / "blklab")
        scratch, _ = choose_scratch(boot.memory_bytes)
        remove_stale_folders(scratch)
        with Guests(scratch, boot, parallel=1) as guests, on_release(guests.stop):
            return guests.run(found, request, texts, wanted)

    return _checked(wanted_version, answered)


def _checked(wanted_version: str, work: Callable[[], Result]) -> Result | Refusal:
    """Does the work if the versions agree; a worker may have joined after the client looked."""
    try:
        if wanted_version != blklab.__version__:
            worker = get_worker().address
            raise RequirementError(
                f"the worker {worker} has blklab {blklab.__version__}, not {wanted_version}"
            )
        return work()
    except BlklabError as error:
        return Refusal(error)
