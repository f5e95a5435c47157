"""What every task reads and writes: counters of /proc/PID/task/TID, and rates between two looks.

``read_bytes`` and ``write_bytes`` (Documentation/filesystems/proc.rst) count what a task caused to be
fetched from, or sent to, the storage layer. A buffered write counts when the page is made dirty, for the
task that did so; when and by whom it is written is another matter.
"""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from blklab.errors import RequirementError
from blklab.linux.processes.io_priority import IoPriority, priority_of

# Fields of /proc/PID/stat behind the name, counted from the state (proc(5): fields 19, 22, 41, 42).
_NICE, _START, _POLICY, _DELAY = 16, 19, 38, 39
_TICK_NS = 1_000_000_000 // (os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100)


@dataclass(frozen=True)
class TaskCounters:
    """One thread at one moment."""

    task: int
    process: int
    start_ticks: int
    """With `task`, what tells a thread from a later one of the same number."""
    nice: int
    policy: int
    read_bytes: int
    write_bytes: int
    io_delay_ns: int
    """Time spent waiting for block I/O; stays 0 unless kernel.task_delayacct is on."""


@dataclass(frozen=True)
class TaskSnapshot:
    """All tasks at one moment."""

    moment_ns: int
    tasks: dict[tuple[int, int], TaskCounters]
    hidden: int
    """Processes whose counters this user may not read."""


@dataclass(frozen=True)
class TaskRate:
    """What a thread, or a process with all its threads, did between two looks."""

    task: int
    process: int
    user: str
    command: str
    priority: IoPriority | None
    """Nothing if the task ended, or if the threads of a process differ."""
    read_bytes_per_second: float
    write_bytes_per_second: float
    io_delay_fraction: float
    """Part of the time that was spent waiting for I/O."""

    @property
    def bytes_per_second(self) -> float:
        """Both directions."""
        return self.read_bytes_per_second + self.write_bytes_per_second


@dataclass(frozen=True)
class TaskReader:
    """Reads counters; `proc` is another folder in tests only."""

    proc: Path = field(default=Path("/proc"))

    def read(self) -> TaskSnapshot:
        """Reads all tasks' counters.

        Raises:
            RequirementError: if this kernel does not count I/O by task.
        """
        if not (self.proc / "self" / "io").exists():
            raise RequirementError(
                "this kernel does not count I/O by process",
                hint="it needs CONFIG_TASK_IO_ACCOUNTING, which distributions' kernels have",
            )
        tasks: dict[tuple[int, int], TaskCounters] = {}
        hidden = 0
        for process in self._processes():
            try:
                folders = sorted((process / "task").iterdir())
                read = [self._task(int(process.name), folder) for folder in folders]
            except PermissionError:
                hidden += 1
                continue
            except OSError:
                continue  # it ended meanwhile
            tasks.update({(entry.task, entry.start_ticks): entry for entry in read if entry is not None})
        return TaskSnapshot(time.monotonic_ns(), tasks, hidden)

    def _processes(self) -> Iterator[Path]:
        return (folder for folder in self.proc.iterdir() if folder.name.isdecimal())

    @staticmethod
    def _task(process: int, folder: Path) -> TaskCounters | None:
        try:
            stat = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            counters = dict(line.split(": ") for line in (folder / "io").read_text().splitlines())
        except (FileNotFoundError, ProcessLookupError):
            return None
        return TaskCounters(
            task=int(folder.name),
            process=process,
            start_ticks=int(stat[_START]),
            nice=int(stat[_NICE]),
            policy=int(stat[_POLICY]),
            read_bytes=int(counters["read_bytes"]),
            # What was dirtied and then thrown away (a file removed in time) never reaches a disk.
            write_bytes=int(counters["write_bytes"]) - int(counters["cancelled_write_bytes"]),
            io_delay_ns=int(stat[_DELAY]) * _TICK_NS,
        )

    def describe(self, process: int, task: int) -> tuple[str, str]:
        """User and command line of a task; its short name if it is a kernel thread."""
        folder = self.proc / str(process)
        try:
            uid = folder.stat().st_uid
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").split()
            name = (folder / "task" / str(task) / "comm").read_text(errors="replace").strip()
        except OSError:
            return "", "(ended)"
        try:
            user = pwd.getpwuid(uid).pw_name
        except KeyError:
            user = str(uid)
        return user, " ".join(words) or f"[{name}]"


def rates(before: TaskSnapshot, after: TaskSnapshot, reader: TaskReader) -> list[TaskRate]:
    """What each thread did between two looks, the busiest first; those that did nothing are left out.

    A thread that appeared in between counts from zero: all it did, it did since.
    """
    seconds = (after.moment_ns - before.moment_ns) / 1e9
    found = []
    for key, now in after.tasks.items():
        then = before.tasks.get(key)
        read = now.read_bytes - (then.read_bytes if then else 0)
        written = now.write_bytes - (then.write_bytes if then else 0)
        delay_ns = now.io_delay_ns - (then.io_delay_ns if then else 0)
        if read == 0 and written == 0 and delay_ns == 0:
            continue
        user, command = reader.describe(now.process, now.task)
        found.append(
            TaskRate(
                task=now.task,
                process=now.process,
                user=user,
                command=command,
                priority=priority_of(now.task, nice=now.nice, policy=now.policy),
                read_bytes_per_second=read / seconds,
                write_bytes_per_second=written / seconds,
                io_delay_fraction=min(1.0, delay_ns / 1e9 / seconds),
            )
        )
    return sorted(found, key=_busiest_first)


def by_process(threads: list[TaskRate]) -> list[TaskRate]:
    """Adds up the threads of each process; a priority is kept where all of them have it."""
    groups: dict[int, list[TaskRate]] = {}
    for thread in threads:
        groups.setdefault(thread.process, []).append(thread)
    summed = [
        TaskRate(
            task=process,
            process=process,
            user=members[0].user,
            command=members[0].command,
            priority=members[0].priority if len({member.priority for member in members}) == 1 else None,
            read_bytes_per_second=sum(member.read_bytes_per_second for member in members),
            write_bytes_per_second=sum(member.write_bytes_per_second for member in members),
            io_delay_fraction=max(member.io_delay_fraction for member in members),
        )
        for process, members in groups.items()
    ]
    return sorted(summed, key=_busiest_first)


def _busiest_first(rate: TaskRate) -> tuple[float, float, int]:
    return (-rate.bytes_per_second, -rate.io_delay_fraction, rate.task)
