"""dm-crypt's threads, which write in place of the tasks.

Unless a mapping has the option ``no_write_workqueue``, its threads encrypt a write into pages and a bio of
their own and submit that (drivers/md/dm-crypt.c: ``crypt_alloc_buffer``, ``dmcrypt_write``). The scheduler
then sees the threads, not the task, its group or its priority. Reads are clones of the task's own bios
(``kcryptd_io_read``) and keep all three.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

from blklab.linux.disks.disk import Roots
from blklab.linux.disks.stack import all_disks
from blklab.linux.doctor.finding import Finding
from blklab.linux.machine.kernel_files import text_or_empty
from blklab.linux.machine.stacked_devices import devices_above
from blklab.linux.processes.programs import find_program

_TIMEOUT_S = 10
_OPTION = "no_write_workqueue"


def check(roots: Roots | None = None, table: str | None = None) -> list[Finding]:
    """Looks at all mappings on this machine's disks.

    Args:
        roots: Where the kernel's file systems are.
        table: The mappings as ``dmsetup table`` prints them; None asks it.
    """
    disks = [disk.sys_path for disk in all_disks(roots)]
    names = hiding_mappings(disks, table)
    if not names:
        return []
    return [
        Finding(
            "encryption",
            "lacking",
            f"writes through {', '.join(names)} come from dm-crypt's threads, so that weights of groups and "
            "I/O priorities of tasks do not apply to them",
            f"cryptsetup refresh --perf-{_OPTION} NAME, with --persistent for LUKS2",
        )
    ]


def hiding_mappings(disks: Iterable[Path], table: str | None = None) -> list[str]:
    """Names of the mappings on some disks whose writes come from dm-crypt's threads.

    Empty where the mappings' options cannot be read: without root, or without dmsetup.
    """
    devices = {device for disk in disks for device in devices_above(disk)}
    crypts = sorted(
        text_or_empty(device / "dm" / "name")
        for device in devices
        if text_or_empty(device / "dm" / "uuid").startswith("CRYPT-")
    )
    if not crypts:
        return []
    options = _options_of(_table() if table is None else table)
    return [name for name in crypts if name in options and _OPTION not in options[name]]


def _options_of(table: str) -> dict[str, set[str]]:
    """Options by name: ``NAME: START LENGTH crypt CIPHER KEY OFFSET DEVICE OFFSET [COUNT OPTION …]``."""
    found = {}
    for line in table.splitlines():
        name, separator, rest = line.partition(": ")
        words = rest.split()
        if separator and len(words) > 2 and words[2] == "crypt":
            found[name] = set(words[8:])
    return found


def _table() -> str:
    program = find_program("dmsetup")
    if program is None:
        return ""
    try:
        answer = subprocess.run(
            [program, "table", "--target", "crypt"],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout if answer.returncode == 0 else ""
