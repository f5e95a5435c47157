"""Keys of the live screen of `blklab top`: read one by one while samples are taken."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
from types import TracebackType

QUIT = "q"
GROUPS = "c"
_LOOK_S = 0.2


class Keys:
    """A context in which keys arrive without Enter. q ends the command as Ctrl-C does.

    Without a terminal at standard input nothing is read.
    """

    def __init__(self) -> None:
        self.pressed: str | None = None
        """The last key."""
        self.by_group = False
        """Whether control groups are to be shown."""
        self._ended = threading.Event()
        self._restore = contextlib.ExitStack()

    def __enter__(self) -> Keys:
        if sys.stdin is not None and sys.stdin.isatty():
            import termios  # noqa: PLC0415 - needs Unix
            import tty  # noqa: PLC0415

            terminal = sys.stdin.fileno()
            self._restore.callback(
                termios.tcsetattr, terminal, termios.TCSADRAIN, termios.tcgetattr(terminal)
            )
            tty.setcbreak(terminal)
            reader = threading.Thread(target=self._read, args=(terminal,), daemon=True)
            reader.start()
            self._restore.callback(reader.join)
            self._restore.callback(self._ended.set)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore.close()

    def _read(self, terminal: int) -> None:
        while not self._ended.is_set():
            if not select.select([terminal], [], [], _LOOK_S)[0]:
                continue
            key = os.read(terminal, 1).decode("ascii", "ignore").lower()
            if key == QUIT:
                os.kill(os.getpid(), signal.SIGINT)
                return
            if key == GROUPS:
                self.by_group = not self.by_group
            else:
                self.pressed = key
