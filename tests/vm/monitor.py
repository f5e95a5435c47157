"""QEMU's monitor: the cable, the plug and the reset button of the machine."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from waiting import PATIENCE_SECONDS


class MonitorError(Exception):
    """QEMU refused a command."""


class Monitor:
    """A connection to QEMU's monitor (QMP, the QEMU Machine Protocol specification in QEMU's tree)."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(PATIENCE_SECONDS)
        self._socket.connect(str(path))
        self._lines = self._socket.makefile("r", encoding="utf-8")
        self._lines.readline()  # the greeting
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

    def close(self) -> None:
        """Hangs up."""
        self._lines.close()
        self._socket.close()
