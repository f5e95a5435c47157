"""A processor for each guest, over all sessions of a machine.

A guest stays on one processor (see `blklab.guests.supervisor`). Two on the same one would take turns while
another idles, whether they belong to one session or, as on the workers of a cluster, to several.
"""

from __future__ import annotations

import os
import random
import socket


class ProcessorLease:
    """The right to a processor, until `end` or the end of this process.

    An abstract Unix socket stands for each processor: only one process can bind its name, and the kernel
    forgets the name with the process (unix(7)). It needs no file, and no user can keep it after dying.
    """

    number: int
    """The processor."""

    def __init__(self) -> None:
        ours = sorted(os.sched_getaffinity(0))
        random.shuffle(ours)
        self._held: socket.socket | None = None
        for number in ours:
            held = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                held.bind(f"\0blklab-processor-{number}")
            except OSError:
                held.close()
                continue
            self._held, self.number = held, number
            return
        self.number = ours[0]

    @property
    def alone(self) -> bool:
        """Whether no other lease has it; without a free processor they are shared."""
        return self._held is not None

    def end(self) -> None:
        """Gives the processor back."""
        if self._held is not None:
            self._held.close()
