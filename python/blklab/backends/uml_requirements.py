"""Checks whether this machine has what guest kernels need. Read-only."""

from __future__ import annotations

from collections.abc import Callable

from blklab.errors import BlklabError
from blklab.guests.kernels.names import DEFAULT_NAME
from blklab.guests.kernels.store import find
from blklab.guests.scratch import choose_scratch
from blklab.linux.doctor.finding import Finding
from blklab.linux.machine.requirements import require_linux
from blklab.shipped import require_guest_program
from blklab.spec.guest import DEFAULT_MEMORY_BYTES


def guest_findings() -> list[Finding]:
    """The findings for `blklab doctor`; this machine's own disks need none of it."""
    return [
        _finding("guest kernel", lambda: f"{DEFAULT_NAME}: Linux {find().version}"),
        _finding("guest program", lambda: str(require_guest_program())),
        _finding("guests' memory", _room),
    ]


def guest_obstacle() -> str | None:
    """The reason why guest kernels cannot run here; None if they can."""
    try:
        require_linux("running guest kernels")
    except BlklabError as error:
        return error.message
    return next((finding.text for finding in guest_findings() if finding.state != "ok"), None)


def _room() -> str:
    folder, guests = choose_scratch(DEFAULT_MEMORY_BYTES)
    return f"room for {guests} at once in {folder}"


def _finding(subject: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(subject, "ok", look())
    except BlklabError as error:
        return Finding(subject, "lacking", error.message, error.hint)
