"""The process that makes a run, so that a run whose process is dead can be told from one under way.

A process is known by its boot, its PID namespace, its PID and the moment of its start: PIDs are used again. A
store may be shared between machines and containers, whose processes cannot be seen from here; of those,
nothing is said.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_MACHINE_ID = Path("/etc/machine-id")
_START_TIME = 19
"""Index of ``starttime`` among the fields after the command's name, in parentheses: proc_pid_stat(5)."""


@dataclass(frozen=True)
class RunningProcess:
    """A process, as far as it can be found again. Fields that the system does not tell are empty."""

    host: str
    machine: str
    """machine-id(5) of its system."""
    boot: str
    pid_namespace: str
    pid: int
    start_ticks: str

    @property
    def is_complete(self) -> bool:
        """Whether it can be judged at all."""
        return bool(self.boot and self.pid_namespace and self.start_ticks)


def this_process(proc: Path = _PROC, machine_id: Path = _MACHINE_ID) -> RunningProcess:
    """The calling process."""
    return RunningProcess(
        host=platform.node(),
        machine=_text(machine_id),
        boot=_text(proc / "sys" / "kernel" / "random" / "boot_id"),
        pid_namespace=_link(proc / "self" / "ns" / "pid"),
        pid=os.getpid(),
        start_ticks=_start_ticks(proc, os.getpid()),
    )


def is_alive(process: RunningProcess, proc: Path = _PROC, machine_id: Path = _MACHINE_ID) -> bool | None:
    """Tells whether a process still runs; None if that cannot be seen from here."""
    here = this_process(proc, machine_id)
    if not process.is_complete or not here.is_complete:
        return None
    if process.boot != here.boot:
        # Another boot of this machine has ended; another machine has a boot of its own.
        same_machine = bool(here.machine) and (process.machine, process.host) == (here.machine, here.host)
        return False if same_machine else None
    if process.pid_namespace != here.pid_namespace:
        return None
    return _start_ticks(proc, process.pid) == process.start_ticks


def _start_ticks(proc: Path, pid: int) -> str:
    fields = _text(proc / str(pid) / "stat").rpartition(")")[2].split()
    return fields[_START_TIME] if len(fields) > _START_TIME else ""


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""
