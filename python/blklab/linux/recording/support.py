"""Ways of recording that this machine allows, and what killed recordings left in the kernel."""

from __future__ import annotations

from dataclasses import dataclass

from blklab import _core
from blklab.shipped import bpf_programs


@dataclass(frozen=True)
class Way:
    """One way of recording."""

    name: str
    """``bpf`` or ``tracefs``."""
    reason: str | None
    """Why it cannot be used; None if it can."""


@dataclass(frozen=True)
class LeftOver:
    """A tracefs instance whose recorder is gone."""

    name: str
    """``blklab-PROCESS-START-NUMBER``."""
    error: str | None
    """Why it could not be removed; None if it was, or if nothing was tried."""


def ways_of_recording() -> list[Way]:
    """Asks the kernel, the best way first. The BPF programs are checked and not run."""
    return [Way(name, reason) for name, reason in _core.capture_support(bpf_programs())]


def left_over(*, remove: bool) -> list[LeftOver]:
    """The tracefs instances that killed recordings left; root only.

    Other programs' instances and those of living recorders are left alone. Where there is no tracefs, or it
    cannot be looked into, nothing was left either: the list is empty.

    Args:
        remove: Whether to remove them.
    """
    try:
        return [LeftOver(name, error) for name, error in _core.left_over_instances(remove)]
    except _core.CaptureError:
        return []
