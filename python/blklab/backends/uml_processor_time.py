"""Cost tables in guests: which kernels can take one, and the part of it that a guest has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blklab.backends.protocol import SessionOptions
from blklab.errors import RequirementError, UsageError
from blklab.guests.kernels.kernel_build import PROCESSOR_TIME, KernelBuild
from blklab.spec.machines import Machine


def check_processor_time(kernels: Sequence[KernelBuild], options: SessionOptions) -> None:
    """Makes sure that the guests can take the cost table, if there is one.

    Raises:
        UsageError: if the guests run in the host's time.
        RequirementError: if a kernel cannot take it.
    """
    if options.machine is None:
        return
    if options.guest.time != "virtual":
        raise UsageError(
            "in the host's time computing takes the host's own time, so guests take no cost table",
            hint="leave out --machine or --time host",
        )
    for kernel in kernels:
        if PROCESSOR_TIME not in kernel.instruments:
            raise RequirementError(
                f"the kernel {kernel.name} was built without the instrument {PROCESSOR_TIME}, so computing "
                "takes no time in it",
                hint=f"build it anew: blklab kernel build {kernel.name}",
            )
        if not kernel.has_ublk:
            raise RequirementError(
                f"the kernel {kernel.name} ({kernel.version}) has no ublk, which cost tables need",
                hint="Linux 6.0 and later have it",
            )


def processors_request(machine: Machine | None) -> dict[str, Any] | None:
    """The table as the guest takes it."""
    return None if machine is None else machine.on_one_processor().request()


def processor_notes(machine: Machine | None) -> list[str]:
    """A note on the part of the table that guests do not have."""
    if machine is None or machine.cpus == 1:
        return []
    note = (
        f"guests have one processor, not the {machine.cpus} of the cost table {machine.source}: its costs "
        "apply, but nothing computes at the same time and no lock is waited for"
    )
    return [note]
