"""Events on the machine during a run, other than the run itself: a part of its sample.

Every field is optional, because a kernel, a virtual machine or a container may lack it. Events are only
recorded here; `blklab.analysis.disturbance` interprets them.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


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

    def pressure(self, kind: str) -> float | None:
        """Share of the time under a kind of pressure, 0 to 1; None if unknown."""
        stalled_ns = self.pressure_ns.get(kind)
        return None if stalled_ns is None or not self.duration_ns else stalled_ns / self.duration_ns
