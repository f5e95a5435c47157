"""What happened on the machine while a run was made, besides the run: a part of its sample.

Everything is optional: a kernel, a virtual machine or a container may lack any of it. What was seen is only
recorded here; `blklab.analysis.disturbance` decides what it means.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class DiskTraffic(BaseModel):
    """What the disks beneath the target moved during a run, and how much of it was the load's own.

    Own reads are those that the kernel accounted to the load's processes when they were sent to a disk; own
    writes are counted when pages are dirtied or direct writes begin (``/proc/PID/io``, Linux
    include/linux/task_io_accounting_ops.h). A file system's journal is written by a kernel thread and so
    counts as somebody else's.
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
    """Share of CPU time that a hypervisor gave to others (/proc/stat)."""
    frequency_mhz: float | None = None
    """Mean over the CPUs' policies just after the load (cpufreq)."""
    temperature_celsius: float | None = None
    """Hottest sensor just after the load (hwmon, else thermal zones)."""
    traffic: DiskTraffic | None = None
    """Nothing where it cannot be told whose the I/O was."""

    def pressure(self, kind: str) -> float | None:
        """Share of the time under a kind of pressure, 0 to 1."""
        stalled_ns = self.pressure_ns.get(kind)
        return None if stalled_ns is None or not self.duration_ns else stalled_ns / self.duration_ns
