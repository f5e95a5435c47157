"""Checks that guest kernels keep time alike, so that their measurements are comparable."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.errors import RequirementError
from blklab.guests.kernels.kernel_build import GuestClock, KernelBuild
from blklab.spec.guest import GuestOptions


def check_clocks(kernels: Sequence[KernelBuild], guest: GuestOptions) -> None:
    """Makes sure that every kernel has the requested kind of time, and that all have the same clock.

    Raises:
        RequirementError: if a kernel has no virtual time, or if two clocks differ and that was not allowed.
    """
    for kernel in kernels:
        if guest.time == "virtual" and not kernel.has_time_travel:
            raise RequirementError(
                f"the kernel {kernel.name} ({kernel.version}) has no virtual time",
                hint="Linux 5.2 and later have it; --time host runs this kernel on this machine's clock",
            )
    if guest.clocks == "same" and (difference := _difference(kernels, guest)) is not None:
        raise RequirementError(
            f"{difference}: the same scheduler measures differently on them, so this would compare clocks",
            hint="build both with the same instruments and the same CONFIG_HZ (see `blklab kernel show`), or "
            "compare them anyway with --clocks any",
        )


def clock_warnings(kernels: Sequence[KernelBuild], guest: GuestOptions) -> list[str]:
    """Warnings about kernels whose clocks were allowed to differ."""
    difference = _difference(kernels, guest)
    if difference is None:
        return []
    return [f"{difference}: differences between the kernels may come from their clocks"]


def bfq_idling_warning(kernel: KernelBuild, guest: GuestOptions) -> str | None:
    """The warning that bfq may not idle for sequential readers on a rotational disk.

    block/bfq-iosched.c, Linux 6.1: `bfq_init_bfqq` sets the end of a new queue's last request one nanosecond
    into the future. If no time passes until `bfq_update_io_intensity` reads it, the difference wraps around.
    """
    if guest.time != "virtual" or kernel.clock.exact is None:
        return None
    return (
        f"bfq on rotational disks under the kernel {kernel.name}: because computing takes no virtual time, "
        "bfq mistakes its queues for idle and may not wait for sequential readers as on real machines; "
        "docs/appendix/fidelity.md gives the reason; --machine ordinary, --time host and sim: are not "
        "affected"
    )


def _difference(kernels: Sequence[KernelBuild], guest: GuestOptions) -> str | None:
    """Describes how the clocks of the first two differing kernels differ; None if all agree."""
    for other in kernels[1:]:
        first = kernels[0]
        if _as_used(first.clock, guest) == _as_used(other.clock, guest):
            continue
        if str(first.clock) == str(other.clock):
            return f"the kernels {first.name} and {other.name} have different versions of the exact clock"
        return f"the kernel {first.name} has {first.clock}, the kernel {other.name} has {other.clock}"
    return None


def _as_used(clock: GuestClock, guest: GuestOptions) -> GuestClock:
    """The clock as the run uses it: in host time, an exact clock differs only in its finer steps."""
    return clock if guest.time == "virtual" else GuestClock(None, clock.ticks_per_second)
