"""I/O of every task: counters in /proc/PID/task/TID, and rates between two snapshots of them.

``read_bytes`` and ``write_bytes`` (Documentation/filesystems/proc.rst) count the bytes that a task caused to
be fetched from or sent to the storage layer. A buffered write counts when a task dirties the page, and for
that task; a kernel worker may write the page back later.
"""

from __future__ import annotations

import functools
import os
import pwd
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from blklab.errors import RequirementError
from blklab.linux.processes.io_priority import IoPriority, priority_of

# Fields of /proc/PID/stat after the name, counted from the state (proc(5): fields 19, 22, 41, 42).
_NICE, _START, _POLICY, _DELAY = 16, 19, 38, 39
_COLONS = 2
_TICK_NS = 1_000_000_000 // (os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100)


@dataclass(frozen=True)
class TaskCounters:
    """One thread at one moment."""

    task: int
    process: int
    start_ticks: int
    """Start time; with `task` it identifies a thread, because the kernel reuses thread IDs."""
    nice: int
    policy: int
    read_bytes: int
    write_bytes: int
    io_delay_ns: int
    """Time spent waiting for block I/O; always 0 unless kernel.task_delayacct is on."""


@dataclass(frozen=True)
class TaskSnapshot:
    """The counters of all tasks at one moment."""

    moment_ns: int
    tasks: dict[tuple[int, int], TaskCounters]
    hidden: int
    """Number of processes whose counters this user may not read."""


@dataclass(frozen=True)
class TaskRate:
    """The I/O rate of a thread, or of a process with all its threads, between two snapshots."""

    task: int
    process: int
    user: str
    command: str
    priority: IoPriority | None
    """None if the task has ended, or if the threads of a process differ."""
    read_bytes_per_second: float
    write_bytes_per_second: float
    io_delay_fraction: float
    """Fraction of the time spent waiting for I/O."""
    cgroup: str = ""
    """Path of its control group; empty if it has ended."""

    @property
    def bytes_per_second(self) -> float:
        """Reads and writes together."""
        return self.read_bytes_per_second + self.write_bytes_per_second


@dataclass(frozen=True)
class TaskReader:
    """Reads counters from procfs; only tests change `proc`."""

    proc: Path = field(default=Path("/proc"))

    def read(self) -> TaskSnapshot:
        """Reads the counters of all tasks.

        Raises:
            RequirementError: if this kernel does not count I/O per task.
        """
        if not (self.proc / "self" / "io").exists():
            raise RequirementError(
                "this kernel does not count I/O per process",
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
                continue  # it has ended
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
            # Dirty pages that are discarded (their file was removed) never reach a disk.
            write_bytes=int(counters["write_bytes"]) - int(counters["cancelled_write_bytes"]),
            io_delay_ns=int(stat[_DELAY]) * _TICK_NS,
        )

    def describe(self, process: int, task: int) -> tuple[str, str]:
        """User and command line of a task; for a kernel thread, its name in brackets."""
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

    def group_of(self, process: int) -> str:
        """Path of a process's control group, where I/O is controlled; empty if it has ended."""
        try:
            text = (self.proc / str(process) / "cgroup").read_text(errors="replace")
        except OSError:
            return ""
        # cgroups(7): hierarchy, controllers, path. Version 2 has no controllers.
        entries = [line.split(":", 2) for line in text.splitlines() if line.count(":") >= _COLONS]
        by_controllers = {controllers: path for _, controllers, path in entries}
        of_io = (path for names, path in by_controllers.items() if "blkio" in names.split(","))
        return next(of_io, by_controllers.get("", ""))


def rates(before: TaskSnapshot, after: TaskSnapshot, reader: TaskReader) -> list[TaskRate]:
    """The rates of all threads between two snapshots, busiest first, without idle threads.

    A thread that started in between counts from zero.
    """
    seconds = (after.moment_ns - before.moment_ns) / 1e9
    group_of = functools.cache(reader.group_of)
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
                cgroup=group_of(now.process),
            )
        )
    return sorted(found, key=_busiest_first)


def by_process(threads: list[TaskRate]) -> list[TaskRate]:
    """Sums the threads of each process; keeps the priority if all of them share it."""
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
            cgroup=members[0].cgroup,
        )
        for process, members in groups.items()
    ]
    return sorted(summed, key=_busiest_first)


def _busiest_first(rate: TaskRate) -> tuple[float, float, int]:
    return (-rate.bytes_per_second, -rate.io_delay_fraction, rate.task)
