"""Monitors the machine during a run: pressure, steal, frequency, temperature, others' I/O, the kernel's log.

It reads a dozen small files before and after the load, and none during it. It reads frequency and temperature
only after the load, because some sensors query the hardware and are slow. The kernel keeps its log meanwhile.
"""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from blklab.linux.machine.disk_trouble import names_of, troubles_in
from blklab.linux.machine.kernel_files import text_or_empty
from blklab.linux.machine.kernel_log import KernelLog
from blklab.quantities.units import NS_PER_US
from blklab.records.machine_events import MOST_KERNEL_MESSAGES, DiskTraffic, MachineEvents

_SECTOR_BYTES = 512
_RUSAGE_BLOCK_BYTES = 512
"""Unit of ru_inblock and ru_oublock: task_io_get_inblock, include/linux/task_io_accounting_ops.h."""
_MOST_SENSORS = 16
_STEAL = 7
_JIFFIES = slice(0, 8)
"""user, nice, system, idle, iowait, irq, softirq, steal; guest time is part of user: proc(5)."""


@dataclass(frozen=True)
class _Reading:
    """Counters at one moment."""

    monotonic_ns: int
    pressure_us: dict[str, int]
    jiffies: list[int]
    disk_bytes: tuple[int, int] | None
    own_bytes: tuple[int, int]


class MachineMonitor:
    """Monitors this machine and the disks beneath a target.

    Args:
        disks: The disks' directories in sysfs; empty if the target is on no disk of this machine.
        proc: Mount point of procfs.
        sys: Mount point of sysfs.
        open_log: Opens the kernel's log at its end; may raise an OSError.
    """

    def __init__(
        self,
        disks: Sequence[Path],
        *,
        proc: Path = Path("/proc"),
        sys: Path = Path("/sys"),
        open_log: Callable[[], KernelLog] = KernelLog,
    ) -> None:
        self._disks = list(disks)
        self._open_log = open_log
        self._proc = proc
        self._sys = sys
        self.events: MachineEvents | None = None
        """The events of the last monitoring; None while it is under way."""

    @contextmanager
    def monitoring(self, asked_ns: int | None = None) -> Iterator[None]:
        """Monitors while the context is open.

        Args:
            asked_ns: The length that the load is to have; None if it has none.
        """
        self.events = None
        log = self._opened_log()
        with nullcontext() if log is None else closing(log):
            # Names may change from run to run: a device that is reset can come back under another one.
            names = names_of(self._disks)
            before = self._read()
            yield
            events = self._events(before, self._read())
            messages = [] if log is None else troubles_in(log.new_lines(), names)
        self.events = events.model_copy(
            update={
                "asked_ns": asked_ns,
                "kernel_log_read": log is not None,
                "kernel_messages": messages[:MOST_KERNEL_MESSAGES],
                "nr_kernel_messages": len(messages),
            }
        )

    def _opened_log(self) -> KernelLog | None:
        try:
            return self._open_log()
        except OSError:
            return None

    def _read(self) -> _Reading:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        own = (usage.ru_inblock * _RUSAGE_BLOCK_BYTES, usage.ru_oublock * _RUSAGE_BLOCK_BYTES)
        return _Reading(
            time.monotonic_ns(), self._pressure_us(), self._all_jiffies(), self._disk_bytes(), own
        )

    def _events(self, before: _Reading, after: _Reading) -> MachineEvents:
        spent = [later - earlier for earlier, later in zip(before.jiffies, after.jiffies, strict=False)]
        total = sum(spent[_JIFFIES])
        traffic = None
        if before.disk_bytes is not None and after.disk_bytes is not None:
            read, written = (b - a for a, b in zip(before.disk_bytes, after.disk_bytes, strict=True))
            own_read, own_written = (b - a for a, b in zip(before.own_bytes, after.own_bytes, strict=True))
            # A replaced device starts counting at zero, so the earlier traffic is unknown.
            if min(read, written) >= 0:
                traffic = DiskTraffic(
                    read_bytes=read,
                    written_bytes=written,
                    own_read_bytes=own_read,
                    own_written_bytes=own_written,
                )
        return MachineEvents(
            duration_ns=after.monotonic_ns - before.monotonic_ns,
            pressure_ns={
                kind: (value - before.pressure_us[kind]) * NS_PER_US
                for kind, value in after.pressure_us.items()
                if kind in before.pressure_us
            },
            steal_fraction=max(0, spent[_STEAL]) / total if len(spent) > _STEAL and total > 0 else None,
            frequency_mhz=self._frequency_mhz(),
            temperature_celsius=self._temperature_celsius(),
            traffic=traffic,
        )

    def _pressure_us(self) -> dict[str, int]:
        """Totals (µs) of /proc/pressure, as in ``some avg10=0.00 avg60=0.00 avg300=0.00 total=12345``."""
        totals = {}
        for kind in ("io", "cpu", "memory"):
            for line in text_or_empty(self._proc / "pressure" / kind).splitlines():
                which, _, fields = line.partition(" ")
                with suppress(ValueError):
                    totals[f"{kind}_{which}"] = int(fields.rpartition("total=")[2])
        return totals

    def _all_jiffies(self) -> list[int]:
        words = text_or_empty(self._proc / "stat").partition("\n")[0].split()
        return [int(word) for word in words[1:] if word.isdigit()] if words[:1] == ["cpu"] else []

    def _disk_bytes(self) -> tuple[int, int] | None:
        """Bytes read from and written to all disks: fields 3 and 7 of Documentation/block/stat.rst."""
        if not self._disks:
            return None
        read = written = 0
        for disk in self._disks:
            fields = text_or_empty(disk / "stat").split()
            if len(fields) < 7:
                return None
            read += int(fields[2]) * _SECTOR_BYTES
            written += int(fields[6]) * _SECTOR_BYTES
        return read, written

    def _frequency_mhz(self) -> float | None:
        folder = self._sys / "devices" / "system" / "cpu" / "cpufreq"
        found = _numbers(sorted(folder.glob("policy*/scaling_cur_freq"))[:_MOST_SENSORS])
        return statistics.fmean(found) / 1000 if found else None

    def _temperature_celsius(self) -> float | None:
        sensors = sorted((self._sys / "class" / "hwmon").glob("hwmon*/temp*_input"))
        sensors = sensors or sorted((self._sys / "class" / "thermal").glob("thermal_zone*/temp"))
        found = _numbers(sensors[:_MOST_SENSORS])
        return max(found) / 1000 if found else None


def _numbers(files: Sequence[Path]) -> list[int]:
    found = []
    for file in files:
        with suppress(ValueError):
            found.append(int(text_or_empty(file)))
    return found
