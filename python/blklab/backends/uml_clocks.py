"""Whether guest kernels tell the time so that their figures can be compared."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.errors import RequirementError
from blklab.guests.kernels.kernel_build import GuestClock, KernelBuild
from blklab.spec.guest import GuestOptions


def check_clocks(kernels: Sequence[KernelBuild], guest: GuestOptions) -> None:
    """Makes sure that every kernel has the time that was asked for, and all of them the same clock.

    Raises:
        RequirementError: if a kernel has no virtual time, or two tell the time differently and that was not
            allowed.
    """
    for kernel in kernels:
        if guest.time == "virtual" and not kernel.has_time_travel:
            raise RequirementError(
                f"the kernel {kernel.name} ({kernel.version}) has no virtual time",
                hint="sources from Linux 5.2 on have it; --time host runs this one on this machine's clock",
            )
    if guest.clocks == "same" and (difference := _difference(kernels, guest)) is not None:
        raise RequirementError(
            f"{difference}: the same scheduler gets different figures on them, so that a comparison would be "
            "one of clocks",
            hint="build both with the same instruments and the same CONFIG_HZ (see `blklab kernel show`), or "
            "compare them all the same with --clocks any",
        )


def warnings_about(kernels: Sequence[KernelBuild], guest: GuestOptions) -> list[str]:
    """What has to be said of kernels whose clocks were allowed to differ."""
    difference = _difference(kernels, guest)
    if difference is None:
        return []
    return [f"{difference}: what differs between the kernels may be the clocks' doing"]


def warning_about_bfq(kernel: KernelBuild, guest: GuestOptions) -> str | None:
    """What has to be said of bfq on a rotational disk: it may not wait for sequential readers.

    block/bfq-iosched.c, Linux 6.1: `bfq_init_bfqq` puts the end of a new queue's last request one nanosecond
    ahead, and where no time passes until `bfq_update_io_intensity` looks at it, the difference wraps round.
    """
    if guest.time != "virtual" or kernel.clock.exact is None:
        return None
    return (
        f"bfq on rotational disks under the kernel {kernel.name}: where computing takes no time at all, bfq "
        "takes its queues for idle and may not wait for sequential readers as it does on real machines; "
        "docs/appendix/fidelity.md has the reason, --time host and sim: do not have this"
    )


def _difference(kernels: Sequence[KernelBuild], guest: GuestOptions) -> str | None:
    """In what the clocks of the first two kernels with different ones differ."""
    for other in kernels[1:]:
        first = kernels[0]
        if _as_used(first.clock, guest) == _as_used(other.clock, guest):
            continue
        if str(first.clock) == str(other.clock):
            return f"the kernels {first.name} and {other.name} have different versions of the exact clock"
        return f"the kernel {first.name} has {first.clock}, the kernel {other.name} has {other.clock}"
    return None


def _as_used(clock: GuestClock, guest: GuestOptions) -> GuestClock:
    """In this machine's time an exact clock only has finer steps."""
    return clock if guest.time == "virtual" else GuestClock(None, clock.ticks_per_second)
