"""Lines of the kernel's log that tell of a mistake in its code: warnings, oopses, hung tasks.

A module that made one is not to be trusted with another I/O.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from blklab.errors import KernelMistakeError
from blklab.linux.machine.kernel_log import KMSG, KernelLog, LogLine
from blklab.quantities.visible import visible_lines

_LOOK_EVERY_S = 0.25
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
        self._found: list[str] = []
        self._mutex = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, ends_loads: Callable[[], None]) -> None:
        """Watches from now on, beside the runs.

        Args:
            ends_loads: Called in another thread as soon as the kernel reports a mistake, so that the run
                under way does not continue to its end on a damaged kernel.
        """
        if self._log is not None and self._thread is None:
            self._thread = threading.Thread(target=self._look_on, args=(ends_loads,), daemon=True)
            self._thread.start()

    def _look_on(self, ends_loads: Callable[[], None]) -> None:
        told = False
        while not self._ended.wait(_LOOK_EVERY_S):
            if found := self._look():
                if not told:
                    # Before anything else: the next step may end this process or never return.
                    _tell(found[0])
                    told = True
                # Again and again: the next load may have begun before anybody has asked.
                ends_loads()

    def _look(self) -> list[str]:
        """All mistakes so far."""
        with self._mutex:
            if self._log is not None:
                self._found += mistakes_in(self._log.new_lines())
            return list(self._found)

    def first(self) -> str | None:
        """The first line that tells of a mistake; None if there is none so far."""
        return next(iter(self._look()), None)

    def raise_for_mistakes(self, modules: Sequence[str]) -> None:
        """Ends the experiment if the kernel has reported a mistake.

        Args:
            modules: The modules that were loaded, for the message.

        Raises:
            KernelMistakeError: with the first line.
        """
        if first := self.first():
            raise KernelMistakeError(
                f"the kernel reported a mistake while the module {' or '.join(modules)} was loaded: {first}",
                hint="the disks are back on their own schedulers, unless an error says otherwise; save the "
                "kernel's log (dmesg), and restart the machine before you trust it again",
            )

    def close(self) -> None:
        """Ends the watch."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        with self._mutex:
            if self._log is not None:
                self._log.close()
                self._log = None


def _tell(line: str) -> None:
    sys.stderr.write(
        visible_lines(
            f"\nerror: the kernel reported a mistake: {line}\n"
            "ending the load and restoring the disks; a task that hangs in the kernel can hold this up\n"
        )
    )
    sys.stderr.flush()
