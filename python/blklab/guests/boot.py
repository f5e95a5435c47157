"""The command line of a guest kernel: identical for every run, so that no property of this machine leaks in.

The kernel's root file system is its working directory, which also holds its memory file (``TMPDIR=.``). The
environment has no other variables. Address-space randomisation is off, because the guest would see it in its
stack addresses. In virtual time the clock starts at a fixed moment and advances only while every task sleeps
(``time-travel=inf-cpu``, arch/um/kernel/time.c).
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

INIT = "blkguest"
"""The guest program, in the root directory of the guest."""
KERNEL = "linux"
"""The kernel, in the same directory."""

CLOCK_START_NS = 1_000_000_000_000_000_000
"""Wall clock of every guest at boot in virtual time: 9 September 2001."""

_MIB = 1 << 20


@dataclass(frozen=True)
class Boot:
    """The boot parameters of a guest."""

    memory_bytes: int
    virtual_time: bool = True

    def environment(self) -> list[str]:
        """The whole environment of the kernel's process, as ``NAME=VALUE`` strings."""
        return ["TMPDIR=."]

    def arguments(self, of_kernel: Sequence[str] = ()) -> list[str]:
        """The kernel's command line without the program.

        Args:
            of_kernel: Parameters that only some kernels know.
        """
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
            *of_kernel,
        ]

    def command(self, of_kernel: Sequence[str] = ()) -> str:
        """A shell command that boots such a guest in the current directory, for people."""
        words = ["setarch", "-R", "env", "-i", *self.environment(), f"./{KERNEL}", *self.arguments(of_kernel)]
        return f"{shlex.join(words)} </dev/null"
