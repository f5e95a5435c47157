"""The figures of a flash drive, as the simulator's kind ``flash`` has them, and as a vector."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from blklab.labs.calibration.disk.ground import DiskFacts

Floats = NDArray[np.float64]

KIND = "flash"
Hold = Literal["nothing", "program", "all"]
PAGE_BYTES = 16 * 1024
_PAGES_OF_BLOCK = 768
USUAL_SPARE_PERMILLE = 70
USUAL_SUPERBLOCKS = 500
"""At least: a drive too small for so many has smaller blocks, so that the few kept free are a small part."""
_MOST_PLANES = 16
_KIB_NS = 1024 * 1_000_000_000
_LEAST_RATE, _MOST_RATE = 1_000_000, 1 << 40
_MOST_COMMAND_NS, _MOST_INTERFACE_NS = 1_000_000, 10_000_000
_MOST_CELL_NS = 100_000_000
_READ_KEYS = ("read_low", "read_middle", "read_high", "channel_rate", "link_read_rate", "suspend")
_WRITE_KEYS = (
    *("link_write_rate", "program", "slc_program", "slc_cache", "slc_fold_rate", "buffer"),
    *("spare_permille", "erase"),
)


@dataclass(frozen=True)
class FlashDrive:
    """All figures. Times in nanoseconds, those of link and channels for each KiB."""

    capacity_bytes: int
    queue_depth: int
    hw_queues: int
    max_sectors_kb: int
    flushes: bool
    """Whether the kernel sends flushes, which then empty the buffer."""
    dies: int
    unit_bytes: int
    """Written to a die at once: a page on each plane."""
    channels: int
    read_low: float
    read_middle: float
    read_high: float
    channel: float
    link_read: float
    link_write: float
    command: float
    interface: float
    program: float
    slc_program: float
    slc_bytes: float
    """0: there is no cache of fast cells."""
    fold_rate: float
    """Bytes a second that an idle drive moves out of it."""
    buffer_bytes: float
    suspend: float
    flush: float
    spare_permille: int
    """Physical space beyond the capacity, in thousandths of it."""
    erase: float
    """Of a block of the usual size; a smaller one takes as large a part of the time of programming it."""
    superblocks: int = USUAL_SUPERBLOCKS
    """Blocks of all dies together: at least so many."""
    slots: int = 0
    """Commands in the controller at a time; 0: any number."""
    arbitration_burst: int = 1
    """Commands that the controller fetches from a submission queue in its turn."""
    hold: Hold = "nothing"
    """Work of a die that reads wait for."""
    fetch: float = 0.0
    """Of the controller for each command, while the link carries the data of others."""

    @property
    def stripe_bytes(self) -> int:
        """A unit of every die."""
        return self.dies * self.unit_bytes

    @property
    def pages_of_block(self) -> int:
        """Units of an erase block: the usual number, unless the drive is too small for it."""
        return min(_PAGES_OF_BLOCK, max(1, self.capacity_bytes // (self.superblocks * self.stripe_bytes)))

    @property
    def erase_of_block(self) -> float:
        """The part of the time of erasure that a block of this size takes."""
        return self.pages_of_block / _PAGES_OF_BLOCK

    @property
    def planes(self) -> int:
        """Planes of the usual page, if the unit consists of such."""
        planes, rest = divmod(self.unit_bytes, PAGE_BYTES)
        return planes if not rest and 1 <= planes <= _MOST_PLANES else 1

    def parameters(self) -> dict[str, int | str]:
        """The profile's keys and values."""
        planes = self.planes
        found: dict[str, int | str] = {
            "capacity": self.capacity_bytes,
            "spare_permille": self.spare_permille,
            "queue_depth": self.queue_depth,
            "hw_queues": self.hw_queues,
            "max_sectors_kb": self.max_sectors_kb,
            "dies": self.dies,
            "planes": planes,
            "page": self.unit_bytes // planes,
            "erase_block": self.unit_bytes * self.pages_of_block,
            "erase": _duration(self.erase * self.erase_of_block, 10 * _MOST_CELL_NS),
            "channels": self.channels,
            "read_low": _duration(self.read_low, _MOST_CELL_NS),
            "read_middle": _duration(self.read_middle, _MOST_CELL_NS),
            "read_high": _duration(self.read_high, _MOST_CELL_NS),
            "channel_rate": rate_of(self.channel),
            "link_read_rate": rate_of(self.link_read),
            "link_write_rate": rate_of(self.link_write),
            "command": min(max(0, round(self.command)), _MOST_COMMAND_NS),
            "interface": min(max(0, round(self.interface)), _MOST_INTERFACE_NS),
            "program": _duration(self.program, 10 * _MOST_CELL_NS),
            "slc_program": _duration(self.slc_program, 10 * _MOST_CELL_NS),
            "slc_cache": max(0, round(self.slc_bytes)),
            "slc_fold_rate": min(_MOST_RATE, max(1, round(self.fold_rate))),
            "buffer": max(self.unit_bytes, 1 << 16, round(self.buffer_bytes)),
            "suspend": min(max(0, round(self.suspend)), _MOST_CELL_NS),
            "flush": min(max(0, round(self.flush)), 10 * _MOST_CELL_NS),
            "flush_drains": int(self.flushes),
        }
        # A drive without a front end has the simulator's defaults.
        if self.hold != "nothing":
            found["hold"] = self.hold
        if self.fetch:
            found["fetch"] = min(max(0, round(self.fetch)), _MOST_COMMAND_NS)
        if self.slots:
            found |= {"slots": self.slots, "arbitration_burst": self.arbitration_burst}
        return found

    def device(self, *, reads: bool = True, writes: bool = True, syncs: bool = True) -> str:
        """The drive as in a target, with what affects a load: what does not is left out.

        Args:
            reads: Whether the load reads.
            writes: Whether it writes.
            syncs: Whether it flushes.
        """
        parameters = self.parameters()
        unused = [
            *(() if reads else _READ_KEYS),
            *(() if writes else _WRITE_KEYS),
            *(() if reads and writes else ("suspend",)),
            *(() if syncs else ("flush",)),
        ]
        # A unit must fit into the default buffer, which it always does.
        kept = {key: value for key, value in parameters.items() if key not in unused}
        return ",".join([KIND, *(f"{key}={value}" for key, value in kept.items())])


def with_facts(facts: DiskFacts) -> FlashDrive:
    """A drive of which nothing is known but what the kernel says."""
    return FlashDrive(
        capacity_bytes=facts.capacity_bytes,
        queue_depth=facts.queues.depth,
        hw_queues=facts.queues.number,
        max_sectors_kb=facts.queues.max_sectors_kb,
        flushes=facts.queues.volatile_cache,
        dies=1,
        unit_bytes=PAGE_BYTES,
        channels=1,
        read_low=50_000,
        read_middle=50_000,
        read_high=50_000,
        channel=1000,
        link_read=300,
        link_write=300,
        command=500,
        interface=10_000,
        program=1_000_000,
        slc_program=300_000,
        slc_bytes=0,
        fold_rate=500_000_000,
        buffer_bytes=32 << 20,
        suspend=20_000,
        flush=0,
        spare_permille=USUAL_SPARE_PERMILLE,
        erase=3_000_000,
    )


def _duration(value_ns: float, most_ns: int) -> int:
    return min(max(1, round(value_ns)), most_ns)


def rate_of(kib_ns: float) -> int:
    """Bytes a second, if a KiB takes so long."""
    return min(_MOST_RATE, max(_LEAST_RATE, round(_KIB_NS / max(kib_ns, 1e-6))))


def kib_ns_of(rate: float) -> float:
    """Nanoseconds for each KiB at so many bytes a second."""
    return _KIB_NS / rate


_LOGARITHMIC_STEP = 0.01
_STEPS = {"buffer_bytes": 0.2, "slc_program": 0.03, "fold_rate": 0.03, "erase": 0.2}
"""The buffer is small beside what runs write, so less would be a part of an I/O, and so is all erasure. Fast
cells with nothing to program are emptied, by whole pages: less would be a part of one."""
_LINEAR_STEPS_NS = {"command": 100.0, "interface": 300.0, "suspend": 2000.0, "flush": 10_000.0}
_LINEAR_UNITS_NS = {"command": 1000.0, "interface": 1000.0, "suspend": 10_000.0, "flush": 100_000.0}
"""Entries that may be zero are searched on a linear scale."""
_LINEAR_PRIORS = {"command": 5.0, "interface": 50.0, "suspend": 5.0, "flush": 100.0}
_LOGARITHMIC_PRIOR = 1.0


@dataclass(frozen=True)
class FlashLayout:
    """The entries of a vector: fields of `FlashDrive`."""

    names: tuple[str, ...]

    def vector(self, drive: FlashDrive) -> Floats:
        """The drive's entries."""
        return np.array(
            [
                getattr(drive, name) / _LINEAR_UNITS_NS[name]
                if name in _LINEAR_UNITS_NS
                else math.log(max(getattr(drive, name), 1e-3))
                for name in self.names
            ]
        )

    def drive(self, vector: Floats, like: FlashDrive) -> FlashDrive:
        """The drive of a vector; what the vector lacks is as in another."""
        found: dict[str, Any] = {
            name: entry * _LINEAR_UNITS_NS[name] if name in _LINEAR_UNITS_NS else math.exp(entry)
            for name, entry in zip(self.names, vector.tolist(), strict=True)
        }
        return replace(like, **found)

    def bounds(self) -> tuple[Floats, Floats]:
        """The least and the largest entries."""
        low = [0.0 if name in _LINEAR_UNITS_NS else -np.inf for name in self.names]
        return np.array(low), np.full(len(low), np.inf)

    def steps(self) -> Floats:
        """Of numerical derivatives."""
        return np.array(
            [
                _LINEAR_STEPS_NS[name] / _LINEAR_UNITS_NS[name]
                if name in _LINEAR_UNITS_NS
                else _STEPS.get(name, _LOGARITHMIC_STEP)
                for name in self.names
            ]
        )

    def priors(self) -> Floats:
        """Standard deviations: wide, they only keep entries in place about which the loads say nothing."""
        return np.array([_LINEAR_PRIORS.get(name, _LOGARITHMIC_PRIOR) for name in self.names])

    def value(self, name: str, entry: float) -> float:
        """An entry as the field has it."""
        return max(0.0, _LINEAR_UNITS_NS[name] * entry) if name in _LINEAR_UNITS_NS else math.exp(entry)
