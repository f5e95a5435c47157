"""Waits of the tasks that end, from the kernel's taskstats (Documentation/accounting/taskstats.rst).

The kernel sends the counters of every task on the machine as it ends. They stay in the socket's buffer until
they are read, so that nothing of blklab runs while a load is measured.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

DELAY_ACCOUNTING = Path("/proc/sys/kernel/task_delayacct")
"""Since Linux 5.14 off by default; tasks that start while it is on are accounted."""

# linux/genetlink.h and linux/taskstats.h
_NETLINK_GENERIC, _GENL_ID_CTRL = 16, 16
_CTRL_CMD_GETFAMILY, _CTRL_ATTR_FAMILY_ID, _CTRL_ATTR_FAMILY_NAME = 3, 1, 2
_TASKSTATS_CMD_GET, _ATTR_REGISTER_CPUMASK = 1, 3
_TYPE_STATS, _TYPE_AGGR_PID = 3, 4
_BLKIO_DELAY_OFFSET, _PID_OFFSET, _PARENT_OFFSET = 40, 128, 132
"""In `struct taskstats`, whose beginning is the same in all versions since 2."""
_NLM_F_REQUEST, _NLM_F_ACK, _NLMSG_ERROR = 1, 4, 2
_NLMSG = struct.Struct("=IHHII")
_GENL_BYTES = 4
_ATTRIBUTE = struct.Struct("=HH")
_TYPE_MASK = 0x3FFF
_SO_RCVBUFFORCE = 33
_BUFFER_BYTES = 64 << 20
_MESSAGE_BYTES = 65536


@dataclass(frozen=True)
class EndedTask:
    """The last counters of a task."""

    task: int
    parent: int
    """Its process's parent."""
    io_delay_ns: int


class ExitAccounting:
    """A listener to the ends of tasks; a context manager."""

    def __init__(self) -> None:
        self._socket = socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_GENERIC
        )
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
            self._socket.bind((0, 0))
            family = self._family()
            processors = f"0-{(os.cpu_count() or 1) - 1}".encode() + b"\0"
            self._ask(family, _TASKSTATS_CMD_GET, _packed(_ATTR_REGISTER_CPUMASK, processors), _NLM_F_ACK)
            self._acknowledged()
        except OSError:
            self._socket.close()
            raise
        self._socket.settimeout(0)

    @staticmethod
    def opened() -> ExitAccounting | None:
        """A listener; None if the kernel has no such accounting, or it is off or not permitted."""
        if not delays_are_accounted():
            return None
        try:
            return ExitAccounting()
        except OSError:
            return None

    def __enter__(self) -> ExitAccounting:
        """Already listens."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stops listening."""
        self._socket.close()

    def ended_tasks(self) -> list[EndedTask] | None:
        """The tasks that have ended since the last call; None if some were lost."""
        found: list[EndedTask] = []
        lost = False
        while True:
            try:
                message = self._socket.recv(_MESSAGE_BYTES)
            except BlockingIOError:
                return None if lost else found
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                lost = True
                continue
            found += _ended_in(message)

    def _family(self) -> int:
        self._ask(_GENL_ID_CTRL, _CTRL_CMD_GETFAMILY, _packed(_CTRL_ATTR_FAMILY_NAME, b"TASKSTATS\0"), 0)
        answer = self._socket.recv(_MESSAGE_BYTES)
        for kind, content in _attributes(answer[_NLMSG.size + _GENL_BYTES :]):
            if kind == _CTRL_ATTR_FAMILY_ID:
                return int.from_bytes(content[:2], "little" if struct.pack("=H", 1)[0] else "big")
        raise OSError(errno.ENOENT, "the kernel has no taskstats")

    def _ask(self, family: int, command: int, attributes: bytes, flags: int) -> None:
        content = struct.pack("=BBH", command, 1, 0) + attributes
        header = _NLMSG.pack(_NLMSG.size + len(content), family, _NLM_F_REQUEST | flags, 1, 0)
        self._socket.send(header + content)

    def _acknowledged(self) -> None:
        answer = self._socket.recv(_MESSAGE_BYTES)
        if _NLMSG.unpack_from(answer)[1] == _NLMSG_ERROR:
            (code,) = struct.unpack_from("=i", answer, _NLMSG.size)
            if code:
                raise OSError(-code, os.strerror(-code))


def delays_are_accounted(control: Path = DELAY_ACCOUNTING) -> bool:
    """Whether the kernel accounts the delays of new tasks now."""
    with suppress(OSError):
        return control.read_text().strip() == "1"
    return False


def io_delay_of_descendants(tasks: list[EndedTask], process: int, *, within_ns: int) -> int | None:
    """Time that the descendants of a process waited for block I/O, of those that ended, in nanoseconds.

    Args:
        tasks: That ended.
        process: The PID of their common ancestor.
        within_ns: Time in which all of them lived.

    Returns:
        None if a task waited longer than it lived: some kernels at times count a wait from the machine's
        start (seen with 6.18).
    """
    children: dict[int, list[EndedTask]] = {}
    for task in tasks:
        children.setdefault(task.parent, []).append(task)
    waited_ns = 0
    pending = [process]
    while pending:
        for task in children.pop(pending.pop(), []):
            if task.io_delay_ns > within_ns:
                return None
            waited_ns += task.io_delay_ns
            pending.append(task.task)
    return waited_ns


def _ended_in(message: bytes) -> Iterator[EndedTask]:
    """The tasks in the messages of one datagram."""
    while len(message) >= _NLMSG.size:
        length = _NLMSG.unpack_from(message)[0]
        for kind, content in _attributes(message[_NLMSG.size + _GENL_BYTES : length]):
            if kind == _TYPE_AGGR_PID:
                for inner, stats in _attributes(content):
                    if inner == _TYPE_STATS and len(stats) >= _PARENT_OFFSET + 4:
                        (delay_ns,) = struct.unpack_from("=Q", stats, _BLKIO_DELAY_OFFSET)
                        task, parent = struct.unpack_from("=II", stats, _PID_OFFSET)
                        yield EndedTask(task, parent, delay_ns)
        message = message[(max(length, _NLMSG.size) + 3) & ~3 :]


def _attributes(content: bytes) -> Iterator[tuple[int, bytes]]:
    while len(content) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(content)
        if length < _ATTRIBUTE.size:
            return
        yield kind & _TYPE_MASK, content[_ATTRIBUTE.size : length]
        content = content[(length + 3) & ~3 :]


def _packed(kind: int, content: bytes) -> bytes:
    length = _ATTRIBUTE.size + len(content)
    return _ATTRIBUTE.pack(length, kind) + content + bytes(-length % 4)
