"""Lines of the kernel's log that tell of a mistake in its code: warnings, oopses, hung tasks.

A module that made one is not to be trusted with another I/O.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from blklab.errors import RunFailedError
from blklab.linux.machine.kernel_log import KMSG, KernelLog, LogLine

_MISTAKES = re.compile(
    r"WARNING: (?:CPU: |possible |suspicious |inconsistent )|\bBUG: |kernel BUG at |Oops: |Oops\[|"
    r"general protection fault|Unable to handle kernel|INFO: task .+ blocked for more than|"
    r"watchdog: .*lockup|rcu: INFO: .* detected stall|list_(?:add|del) corruption|"
    r"refcount_t: |UBSAN: |scheduling while atomic"
)
"""As kernel/panic.c, kernel/hung_task.c, kernel/rcu, mm/kasan and lib print them, Linux 6.1 to 6.12."""


def mistakes_in(lines: Sequence[LogLine]) -> list[str]:
    """The lines that tell of a mistake in the kernel's code, in their order."""
    return [line.text for line in lines if _MISTAKES.search(line.text)]


class MistakeWatch:
    """The kernel's log since modules were loaded; without permission to read it, nothing is noticed."""

    def __init__(self, path: Path = KMSG) -> None:
        self._log: KernelLog | None = None
        with suppress(OSError):
            self._log = KernelLog(path)

    def raise_for_mistakes(self, modules: Sequence[str]) -> None:
        """Ends the run if the kernel has reported a mistake since the last call.

        Args:
            modules: The modules that were loaded, for the message.

        Raises:
            RunFailedError: with the first line.
        """
        found = [] if self._log is None else mistakes_in(self._log.new_lines())
        if found:
            raise RunFailedError(
                f"the kernel reported a mistake while the module {' or '.join(modules)} was loaded: "
                f"{found[0]}",
                hint="the disks are back on their own schedulers; save the kernel's log (dmesg), and restart "
                "the machine before you trust it again",
            )

    def close(self) -> None:
        """Closes the log."""
        if self._log is not None:
            self._log.close()
