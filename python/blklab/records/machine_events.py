"""Events on the machine during a run, other than the run itself: a part of its sample.

Every field is optional, because a kernel, a virtual machine or a container may lack it. Events are only
recorded here; `blklab.analysis.disturbance` interprets them.
"""

from __future__ import annotations

from collections import Counter

from pydantic import BaseModel, ConfigDict

MOST_KERNEL_MESSAGES = 20
"""A dying disk can fill the log; a run keeps no more lines than this."""
_FREE_OVERRUN_NS = 5_000_000_000


class DiskTraffic(BaseModel):
    """Traffic of the disks beneath the target during a run, and the load's own part of it.

    Own reads are those that the kernel accounts to the load's processes when it sends them to a disk; own
    writes count when pages are dirtied or direct writes begin (``/proc/PID/io``, Linux
    include/linux/task_io_accounting_ops.h). A file system's journal is written by a kernel thread and so
    counts as foreign traffic.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    read_bytes: int
    written_bytes: int
    own_read_bytes: int
    own_written_bytes: int


class KernelMessage(BaseModel):
    """A line of the kernel's log that tells of trouble with a disk of the target."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str
    """In words: ``timeout``, ``reset``, ``I/O error`` …: the table in `blklab.linux.machine.disk_trouble`."""
    text: str
    """The line as the kernel wrote it, without its time."""


class MachineEvents(BaseModel):
    """From just before the load began until just after it ended."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    duration_ns: int
    pressure_ns: dict[str, int] = {}
    """Time in which tasks were stalled, machine-wide, the load's own included: ``io_some``, ``io_full``,
    ``cpu_some``, ``memory_some``, ``memory_full`` (/proc/pressure)."""
    steal_fraction: float | None = None
    """Share of CPU time that the hypervisor gave to other guests (/proc/stat)."""
    frequency_mhz: float | None = None
    """Mean over the CPUs' policies just after the load (cpufreq)."""
    temperature_celsius: float | None = None
    """Hottest sensor just after the load (hwmon, else thermal zones)."""
    traffic: DiskTraffic | None = None
    """None if the I/O cannot be attributed."""
    asked_ns: int | None = None
    """The length that the load was to have; None if it has none, or in runs of older versions."""
    kernel_log_read: bool | None = None
    """Whether the kernel's log could be read during the run; None in runs of older versions."""
    kernel_messages: list[KernelMessage] = []
    """The first `MOST_KERNEL_MESSAGES` of those that concern a disk of the target."""
    nr_kernel_messages: int = 0
    """All of them."""

    @property
    def trouble(self) -> str | None:
        """The trouble in the kernel's log, such as ``timeout (2), reset: "nvme nvme0: …"``."""
        if not self.kernel_messages:
            return None
        counts = Counter(message.kind for message in self.kernel_messages)
        kinds = ", ".join(kind if count == 1 else f"{kind} ({count})" for kind, count in counts.items())
        more = self.nr_kernel_messages - len(self.kernel_messages)
        rest = f" and {more} more" if more else ""
        return f'{kinds}{rest}: "{self.kernel_messages[0].text}"'

    @property
    def overrun_ns(self) -> int:
        """Time that the load took beyond what is usual; 0 within it.

        Starting a load generator and its last I/Os take a while, so that a tenth of the time asked for, and
        at least 5 s, are free.
        """
        if self.asked_ns is None:
            return 0
        over_ns = self.duration_ns - self.asked_ns
        return over_ns if over_ns > max(_FREE_OVERRUN_NS, self.asked_ns // 10) else 0

    def pressure(self, kind: str) -> float | None:
        """Share of the time under a kind of pressure, 0 to 1; None if unknown."""
        stalled_ns = self.pressure_ns.get(kind)
        return None if stalled_ns is None or not self.duration_ns else stalled_ns / self.duration_ns
