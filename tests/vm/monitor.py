"""QEMU's monitor: the cable, the plug and the reset button of the machine."""

from __future__ import annotations

import json
import re
import socket
from typing import Any

from waiting import PATIENCE_SECONDS


class MonitorError(Exception):
    """QEMU refused a command."""


class Monitor:
    """A connection to QEMU's monitor (QMP, the QEMU Machine Protocol specification in QEMU's tree).

    QEMU gets the other end of a pair of sockets when it starts: a path can be seen before QEMU takes
    connections on it.
    """

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._socket.settimeout(PATIENCE_SECONDS)
        self._lines = self._socket.makefile("r", encoding="utf-8")
        if not self._lines.readline():  # the greeting
            raise MonitorError("QEMU ended before it greeted")
        self.do("qmp_capabilities")

    def do(self, command: str, **arguments: Any) -> Any:
        """One command; events that arrive meanwhile are passed over."""
        self._socket.sendall(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
        for line in self._lines:
            answer = json.loads(line)
            if "error" in answer:
                raise MonitorError(f"{command} {arguments}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]
        raise MonitorError(f"{command}: QEMU ended")

    def type(self, line: str) -> str:
        """A line as a person would type it."""
        return str(self.do("human-monitor-command", **{"command-line": line}))

    def forwarded_port(self) -> int:
        """The port of this machine that leads to ssh in the virtual one; QEMU chose a free one."""
        connections = self.type("info usernet")
        found = re.search(r"HOST_FORWARD\]\s+\d+\s+127\.0\.0\.1\s+(\d+)\s", connections)
        if found is None:
            raise MonitorError(f"no forwarded port: {connections}")
        return int(found[1])

    def close(self) -> None:
        """Hangs up."""
        self._lines.close()
        self._socket.close()
