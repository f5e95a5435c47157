"""Cost tables in guests: which guests can take one, and the part of it that a guest has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blklab.errors import BlklabError, RequirementError, UsageError
from blklab.guests.kernels.kernel_build import PROCESSOR_TIME, KernelBuild
from blklab.quantities.notes import as_notes
from blklab.spec.guest import GuestOptions
from blklab.spec.machines import Machine


def check_processor_time(
    kernels: Sequence[KernelBuild], machine: Machine | None, guest: GuestOptions
) -> None:
    """Makes sure that the guests can take the cost table, if it costs anything.

    Raises:
        UsageError: if the guests run in the host's time.
        RequirementError: if a kernel cannot take it.
    """
    reason = without_costs(kernels, guest)
    if is_costly(machine) and reason is not None:
        raise reason


def without_costs(kernels: Sequence[KernelBuild], guest: GuestOptions) -> BlklabError | None:
    """The reason why computing costs nothing in these guests; None if they take a cost table."""
    if guest.time != "virtual":
        return UsageError(
            "in the host's time computing takes the host's own time, so guests take no cost table",
            hint="leave out --machine or --time host",
        )
    for kernel in kernels:
        if PROCESSOR_TIME not in kernel.instruments:
            return RequirementError(
                f"the kernel {kernel.name} was built without the instrument {PROCESSOR_TIME}, so computing "
                "takes no time in it",
                hint=f"build it anew (blklab kernel build {kernel.name}), or take --machine zero-cpu-time",
            )
        if not kernel.has_ublk:
            return RequirementError(
                f"the kernel {kernel.name} ({kernel.version}) has no ublk, which cost tables need",
                hint="Linux 6.0 and later have it; or take --machine zero-cpu-time",
            )
    return None


def is_costly(machine: Machine | None) -> bool:
    """Whether computing takes time."""
    return machine is not None and not machine.on_one_processor().is_free


def processors_request(machine: Machine | None, kernel: KernelBuild) -> dict[str, Any] | None:
    """The table as a guest of that kernel takes it: without schedulers that the kernel lacks."""
    if machine is None:
        return None
    own = {name: costs for name, costs in machine.schedulers.items() if name in kernel.schedulers}
    return machine.on_one_processor().model_copy(update={"schedulers": own}).request()


def processor_notes(
    machine: Machine | None, kernels: Sequence[KernelBuild], guest: GuestOptions
) -> list[str]:
    """Notes on the part of the table that guests do not have, and on computing that takes no time."""
    if not is_costly(machine):
        reason = without_costs(kernels, guest)
        return [] if reason is None or guest.time != "virtual" else as_notes([str(reason)])
    if machine is None or machine.cpus == 1:
        return []
    note = (
        f"guests have one processor, not the {machine.cpus} of the cost table {machine.source}: its costs "
        "apply, but nothing computes at the same time and no lock is waited for"
    )
    return as_notes([note])
