"""``elevator=`` on the kernel's command line, which chose every disk's scheduler until Linux 4.20.

It belonged to the block layer without hardware queues, which Linux 5.0 removed; since 5.4 the kernel says at
boot that it has no effect (block/elevator.c: ``elevator_setup``).
"""

from __future__ import annotations

import platform
import re
from pathlib import Path

from blklab.linux.doctor.finding import Finding
from blklab.linux.machine.kernel_files import text_or_empty

_FIRST_WITHOUT = 5


def check(proc: Path = Path("/proc"), release: str | None = None) -> list[Finding]:
    """Looks at the command line of the running kernel."""
    asked = [
        word.partition("=")[2]
        for word in text_or_empty(proc / "cmdline").split()
        if word.startswith("elevator=")
    ]
    major = re.match(r"\d+", release or platform.release())
    if not asked or major is None or int(major[0]) < _FIRST_WITHOUT:
        return []
    return [
        Finding(
            "kernel's command line",
            "lacking",
            f"elevator={asked[-1]} has had no effect since Linux 5.0",
            f"blklab apply {asked[-1]} DISK sets a scheduler at every boot, by a udev rule; "
            "take elevator= out of the boot loader's configuration",
        )
    ]
