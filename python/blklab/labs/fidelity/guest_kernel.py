"""Opens the guest kernel, built by `blklab kernel`, with which the simulator is compared."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from blklab.backends import THIS_MACHINE, Workers
from blklab.errors import RequirementError, RunFailedError
from blklab.guests.boot import Boot
from blklab.guests.guest import GuestImage
from blklab.guests.kernels.cache import cache_folder
from blklab.guests.kernels.store import find
from blklab.labs.fidelity.kernel_runs import KernelRuns
from blklab.linux.machine.requirements import require_linux
from blklab.shipped import require_guest_program
from blklab.simulator.core import core_error
from blklab.spec.guest import DEFAULT_MEMORY_BYTES

_GUEST = {"generator": "blkguest", "filesystem": None, "time": "virtual"}
"""Options of every guest, beside the driver of its disks."""


@dataclass(frozen=True)
class GuestKernel:
    """A kernel that can run cells."""

    title: str
    """Display name."""
    runs: KernelRuns
    simulate: Callable[[str], str]
    """Runs the simulator on a request, where the guests run as well."""
    parallel: int
    """Number of guests that run at once."""


@contextmanager
def open_kernel(name: str, workers: Workers = THIS_MACHINE) -> Iterator[GuestKernel]:
    """Prepares a kernel, and removes its guests' files at the end.

    Args:
        name: Of the kernel.
        workers: Run guests and simulations.

    Raises:
        BlklabError: if there is no such kernel, or the kernel or this machine lacks a requirement.
    """
    require_linux("running guest kernels")
    kernel = find(name)
    if not (kernel.has_time_travel and kernel.has_models):
        raise RequirementError(
            f"the kernel {kernel.name} ({kernel.version}) has no virtual time or no modelled disks",
            hint="sources from Linux 6.0 on have both, and 4.19 with blklab's instruments",
        )
    program = require_guest_program()
    boot = Boot(DEFAULT_MEMORY_BYTES, virtual_time=True)
    image = GuestImage(kernel.linux, kernel.build_id, program, {}, kernel.boot_parameters)
    with workers.guests(boot) as guests, workers.simulations() as simulations:

        def run(request: dict[str, Any]) -> dict[str, Any]:
            end = guests.run(image, request | {"guest": _GUEST | {"driver": kernel.driver}}, {})
            if end.answer is None:
                raise RunFailedError(end.error or "the guest gave no answer")
            if refused := end.answer.get("error"):
                raise core_error(refused)
            return end.answer

        digest = hashlib.sha256(program.read_bytes()).hexdigest()
        runs = KernelRuns(f"{kernel.build_id} {digest}", run, cache_folder("fidelity"))
        yield GuestKernel(
            f"{kernel.name} (Linux {kernel.version})",
            runs,
            lambda text: simulations.run(text)[0],
            guests.parallel,
        )
