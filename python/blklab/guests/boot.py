"""How a guest kernel is started: the same words for every run, so that nothing of this machine gets in.

The kernel finds its file system at its own working folder, its memory file goes there too (``TMPDIR=.``),
and the environment holds nothing else. Address-space randomisation is off: it would reach the guest through
the addresses of its stack. In virtual time the clock begins at a fixed moment and moves only while every
task sleeps (``time-travel=inf-cpu``, arch/um/kernel/time.c).
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

INIT = "blkguest"
"""The guest program, at the top of the guest's file system."""
KERNEL = "linux"
"""The kernel, at the same place."""

CLOCK_START_NS = 1_000_000_000_000_000_000
"""The wall clock of every guest in virtual time begins on 9 September 2001."""

_MIB = 1 << 20


@dataclass(frozen=True)
class Boot:
    """One guest's hardware, as it were."""

    memory_bytes: int
    virtual_time: bool = True

    def environment(self) -> list[str]:
        """All that the kernel's process finds in its environment, each as ``NAME=VALUE``."""
        return ["TMPDIR=."]

    def arguments(self) -> list[str]:
        """The kernel's command line, without its name."""
        clock = ["time-travel=inf-cpu", f"time-travel-start={CLOCK_START_NS}"] if self.virtual_time else []
        return [
            *clock,
            "root=/dev/root",
            "rootfstype=hostfs",
            "rootflags=/proc/self/cwd",
            "rw",
            f"init=/{INIT}",
            f"mem={self.memory_bytes // _MIB}M",
            "con=null",
            "con0=fd:0,fd:1",
            "uml_dir=.uml/",
            "umid=guest",
            "null_blk.nr_devices=0",
            "norandmaps",
            "quiet",
        ]

    def command(self) -> str:
        """A command that boots such a guest in the current folder, for people."""
        words = ["setarch", "-R", "env", "-i", *self.environment(), f"./{KERNEL}", *self.arguments()]
        return f"{shlex.join(words)} </dev/null"
