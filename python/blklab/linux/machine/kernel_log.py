"""Reads the kernel's log from a moment on (``/dev/kmsg``, Documentation/ABI/testing/dev-kmsg)."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from blklab.errors import reason_of

KMSG = Path("/dev/kmsg")
KERNEL = 0
"""Facility of the kernel's own lines (LOG_KERN); those that programs write to ``/dev/kmsg`` have others."""
_KMSG_NUMBER = os.makedev(1, 11)
_RECORD_BYTES = 8192
"""A read returns one record, and fails if the buffer is smaller (PRINTK_MESSAGE_MAX is 2048)."""
_FACILITY_SHIFT = 3
_ESCAPED = re.compile(r"\\x([0-9a-f]{2})")


@dataclass(frozen=True)
class LogLine:
    """A record of the kernel's log."""

    text: str
    device: str = ""
    """The device that the kernel attributes it to: ``b8:0``, ``c240:0``, ``+scsi:2:0:0:0``; often empty."""


def parse_record(record: str) -> tuple[int, LogLine] | None:
    """The facility and the line of a record; None if it is malformed.

    A record is ``PRIORITY,SEQUENCE,TIME,FLAGS[,…];TEXT``, followed by lines of properties that begin with a
    space.
    """
    first, *properties = record.split("\n")
    prefix, separator, text = first.partition(";")
    priority = prefix.partition(",")[0]
    if not separator or not priority.isdigit():
        return None
    named = dict(line.strip().partition("=")[::2] for line in properties if line.startswith(" "))
    return int(priority) >> _FACILITY_SHIFT, LogLine(_unescape(text), named.get("DEVICE", ""))


class KernelLog:
    """The kernel's log from now on.

    Args:
        path: The log's device node.
        facilities: Whose lines to return.

    Raises:
        OSError: if it cannot be read: no permission (``kernel.dmesg_restrict``), or no such device in a
            container.
    """

    def __init__(self, path: Path = KMSG, facilities: Collection[int] = (KERNEL,)) -> None:
        self._facilities = frozenset(facilities)
        self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = os.fstat(self._descriptor)
            # Containers put a link to a terminal there.
            if path == KMSG and not (stat.S_ISCHR(status.st_mode) and status.st_rdev == _KMSG_NUMBER):
                raise OSError(errno.ENODEV, f"{path} is another device here")
            os.lseek(self._descriptor, 0, os.SEEK_END)
        except OSError:
            self.close()
            raise

    def new_lines(self) -> list[LogLine]:
        """The lines since the last call, or since the log was opened."""
        lines: list[LogLine] = []
        while True:
            try:
                record = os.read(self._descriptor, _RECORD_BYTES)
            except BlockingIOError:
                return lines
            except OSError as error:
                if error.errno == errno.EPIPE:
                    continue  # older lines were overwritten; the next read goes on with the oldest left
                return lines
            if not record:
                return lines
            parsed = parse_record(record.decode("utf-8", errors="replace"))
            if parsed is not None and parsed[0] in self._facilities:
                lines.append(parsed[1])

    def close(self) -> None:
        """Releases the device."""
        os.close(self._descriptor)


def why_unreadable(path: Path = KMSG) -> str | None:
    """The reason why the log cannot be read, for people; None if it can."""
    try:
        KernelLog(path).close()
    except OSError as error:
        return reason_of(error)
    return None


def _unescape(text: str) -> str:
    """Decodes the kernel's escapes, and leaves no character that would move a terminal's cursor."""
    decoded = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
    return "".join(letter if letter.isprintable() else " " for letter in decoded)
