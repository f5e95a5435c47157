"""The figures of a disk without an arm, as the simulator's kind ``virtual`` has them, and as a vector.

Durations that may be zero, those of the link, are searched on a linear scale; the others on a logarithmic
one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from blklab.labs.calibration.disk.loads import DiskLoad

Floats = NDArray[np.float64]
Placement = Literal["any", "random", "batch"]

KIND = "virtual"
MOST_RATE = 1 << 44
MOST_PARALLEL = 65_536
_MOST_SPREAD = 3.0
_MOST_TIME_NS = 100_000_000_000
"""Of a latency and of a flush, as the device kind has it."""
_KIB_NS = 1024 * 1_000_000_000
"""Nanoseconds per KiB times this rate in bytes per second."""


@dataclass(frozen=True)
class Service:
    """The times of reads or of writes."""

    latency_ns: float
    """Median time in a server."""
    spread: float
    """Standard deviation of its logarithm."""
    command_ns: float
    """Time of the link for each command."""
    kib_ns: float
    """Time of the link for each KiB."""

    @property
    def rate(self) -> int:
        """Bytes per second on the link."""
        return rate_of(self.kib_ns)

    def parameters(self, direction: str) -> dict[str, int]:
        """The profile's keys."""
        return {
            f"{direction}_latency": max(1, round(self.latency_ns)),
            f"{direction}_spread": round(1000 * min(self.spread, _MOST_SPREAD)),
            f"{direction}_command": round(self.command_ns),
            f"{direction}_rate": self.rate,
        }


@dataclass(frozen=True)
class VirtualDisk:
    """All figures."""

    read: Service
    write: Service
    parallel: float
    """Servers. In batches: the commands of one at most, `MOST_PARALLEL` for all that wait."""
    placement: Placement
    full_duplex: bool
    """Whether reads and writes have a link each."""
    flush_ns: float
    adds_latencies: bool = False
    """Whether a batch with reads and writes takes both latencies, not only the longer."""

    @property
    def in_batches(self) -> bool:
        """Whether a thread of the host takes commands in batches, in place of servers."""
        return self.placement == "batch"

    @property
    def choice_of_mixtures(self) -> str:
        """The key that says what reads and writes share, which only mixtures of them tell."""
        return "mixed_latency" if self.in_batches else "full_duplex"

    def of_mixtures(self, *, chosen: bool) -> VirtualDisk:
        """The same disk with the one value of that key or the other."""
        if self.in_batches:
            return replace(self, adds_latencies=chosen)
        return replace(self, full_duplex=chosen)

    def parameters(self, load: DiskLoad | None = None) -> dict[str, int | str]:
        """The profile's keys and values.

        Args:
            load: Leave out what does not affect this load; None for all.
        """
        parallel = min(max(1, round(self.parallel)), MOST_PARALLEL)
        found: dict[str, int | str] = {
            "parallel": 1 if self.in_batches else parallel,
            "placement": self.placement,
        }
        if self.in_batches:
            found["batch_size"] = 0 if parallel == MOST_PARALLEL else parallel
        directions = ("read", "write") if load is None or load.direction == "mixed" else (load.direction,)
        for direction in directions:
            found |= self.service(direction).parameters(direction)
        if len(directions) > 1 and self.in_batches:
            found["mixed_latency"] = "sum" if self.adds_latencies else "longer"
        elif len(directions) > 1:
            found["full_duplex"] = int(self.full_duplex)
        if load is None or load.syncs:
            found["flush"] = round(self.flush_ns)
        return found

    def service(self, direction: str) -> Service:
        """That of a direction."""
        return self.read if direction == "read" else self.write

    def with_service(self, direction: str, service: Service) -> VirtualDisk:
        """The same disk with other times of a direction."""
        return replace(self, read=service) if direction == "read" else replace(self, write=service)


def rate_of(kib_ns: float) -> int:
    """Bytes per second of a link that takes so long for each KiB."""
    return MOST_RATE if kib_ns * MOST_RATE <= _KIB_NS else max(1000, round(_KIB_NS / kib_ns))


@dataclass(frozen=True)
class LinkUnits:
    """Times of the link of one direction, were it busy all the time at the highest rates measured.

    The link's true times cannot be longer. They may be far shorter than a latency, of which many servers hide
    all but a part.
    """

    command_ns: float
    kib_ns: float


@dataclass(frozen=True)
class Layout:
    """The vector's entries, and their units."""

    writes: bool
    flushes: bool
    latency_ns: float
    """A typical latency."""
    links: Mapping[str, LinkUnits]
    """By direction."""

    @property
    def names(self) -> list[str]:
        """The entries in their order: ``read.latency``, …, ``parallel``, ``flush``."""
        directions = ["read", "write"] if self.writes else ["read"]
        parts = ["latency", "spread", "command", "transfer"]
        services = [f"{direction}.{part}" for direction in directions for part in parts]
        return [*services, "parallel", *(["flush"] if self.flushes else [])]

    def is_log(self, name: str) -> bool:
        """Whether an entry is a logarithm."""
        return name.endswith("latency") or name in {"parallel", "flush"}

    def unit_ns(self, name: str) -> float:
        """The unit of an entry that is a time of the link."""
        direction, part = name.split(".")
        units = self.links[direction]
        return units.command_ns if part == "command" else units.kib_ns

    def vector(self, disk: VirtualDisk) -> Floats:
        """The disk's entries."""
        return np.array([self._entry(disk, name) for name in self.names])

    def _entry(self, disk: VirtualDisk, name: str) -> float:
        if name == "parallel":
            return math.log(disk.parallel)
        if name == "flush":
            return math.log(max(disk.flush_ns, 1.0))
        direction, part = name.split(".")
        service = disk.service(direction)
        if part == "latency":
            return math.log(service.latency_ns)
        if part == "spread":
            return service.spread
        return (service.command_ns if part == "command" else service.kib_ns) / self.unit_ns(name)

    def disk(self, vector: Floats, like: VirtualDisk) -> VirtualDisk:
        """The disk of a vector; what the vector lacks is as in another."""
        values = dict(zip(self.names, vector.tolist(), strict=True))
        read = self._service(values, "read")
        return replace(
            like,
            read=read,
            write=self._service(values, "write") if self.writes else read,
            parallel=math.exp(values["parallel"]),
            flush_ns=math.exp(values["flush"]) if self.flushes else like.flush_ns,
        )

    def _service(self, values: dict[str, float], direction: str) -> Service:
        return Service(
            latency_ns=math.exp(values[f"{direction}.latency"]),
            spread=values[f"{direction}.spread"],
            command_ns=values[f"{direction}.command"] * self.unit_ns(f"{direction}.command"),
            kib_ns=values[f"{direction}.transfer"] * self.unit_ns(f"{direction}.transfer"),
        )

    def bounds(self) -> tuple[Floats, Floats]:
        """The least and the largest entries."""
        most_time = math.log(_MOST_TIME_NS)

        def most(name: str) -> float:
            if name == "parallel":
                return math.log(MOST_PARALLEL)
            # A poor fit would else lead to times that no profile can have.
            return most_time if self.is_log(name) else _MOST_SPREAD if "spread" in name else np.inf

        low = np.zeros(len(self.names))
        return low, np.array([most(name) for name in self.names])

    def prior_deviations(self) -> Floats:
        """Wide: they only keep entries in place about which the loads say nothing."""
        latencies = {"command": 5.0, "transfer": 0.5}
        widths = {"latency": 2.0, "spread": 1.0}

        def width(name: str) -> float:
            part = name.rsplit(".", maxsplit=1)[-1]
            if part in latencies:
                return latencies[part] * self.latency_ns / self.unit_ns(name)
            return widths.get(part, 2.0)

        return np.array([width(name) for name in self.names])

    def steps(self) -> Floats:
        """Of numerical derivatives. Simulated queues form and dissolve, so small ones would be noise.

        Those of the link are parts of what it can take at most: a step that fills it from nearly empty would
        show how a busy link queues, whatever the present one does.
        """
        widths = {"latency": 0.02, "spread": 0.03, "command": 0.05, "transfer": 0.03}
        return np.array([widths.get(name.split(".")[-1], 0.1) for name in self.names])
