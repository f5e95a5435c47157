"""The kernel that the simulator is held against: a build of `blklab kernel`, in virtual time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from blklab.backends.uml_requirements import require_guest_program
from blklab.errors import RequirementError, RunFailedError
from blklab.execution.fidelity.kernel_runs import KernelRuns, cache_folder
from blklab.guests.boot import Boot
from blklab.guests.guest import GuestImage, Guests
from blklab.guests.kernels.store import find
from blklab.guests.scratch import choose_scratch, remove_stale_folders
from blklab.linux.machine.requirements import require_linux
from blklab.simulator.core import core_error
from blklab.spec.guest import DEFAULT_MEMORY_BYTES

_GUEST = {"driver": "ublk", "generator": "blkguest", "filesystem": None, "time": "virtual"}
"""How a guest runs every cell."""


@dataclass(frozen=True)
class RealKernel:
    """A kernel that can run cells."""

    title: str
    """For people."""
    runs: KernelRuns
    room: int
    """Guests for which this machine has memory."""


@contextmanager
def open_kernel(name: str) -> Iterator[RealKernel]:
    """Makes a kernel ready; what its guests need goes away afterwards.

    Raises:
        BlklabError: if there is no such kernel, or it or this machine lacks what is needed.
    """
    require_linux("running guest kernels")
    kernel = find(name)
    if not (kernel.has_time_travel and kernel.has_ublk):
        raise RequirementError(
            f"the kernel {kernel.name} ({kernel.version}) has no virtual time or no ublk",
            hint="sources from Linux 6.0 on have both",
        )
    program = require_guest_program()
    boot = Boot(DEFAULT_MEMORY_BYTES, virtual_time=True)
    image = GuestImage(kernel.linux, kernel.build_id, program, {})
    place, room = choose_scratch(DEFAULT_MEMORY_BYTES)
    remove_stale_folders(place)
    with Guests(place, boot) as guests:

        def run(request: dict[str, Any]) -> dict[str, Any]:
            end = guests.run(image, request | {"guest": _GUEST}, {})
            if end.answer is None:
                raise RunFailedError(end.error or "the guest gave no answer")
            if refused := end.answer.get("error"):
                raise core_error(refused)
            return end.answer

        digest = hashlib.sha256(program.read_bytes()).hexdigest()
        runs = KernelRuns(f"{kernel.build_id} {digest}", run, cache_folder())
        yield RealKernel(f"{kernel.name} (Linux {kernel.version})", runs, room)
