"""The beginning of the search: closed forms, one for each thing that may limit a disk."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from blklab.labs.calibration.disk.loads import SMALLEST_KIB, Direction, DiskLoad
from blklab.labs.calibration.disk.observations import DiskObservation, Row
from blklab.labs.calibration.disk.parameters import (
    MOST_PARALLEL,
    LinkUnits,
    Placement,
    Service,
    VirtualDisk,
)

_HOST_NS = 4_000
"""Of a latency, about what this machine itself computes."""
_Z95 = 1.645
_UNLIMITED = 0.85
"""Of the rate at which nothing queues: from here on the depth itself may be the limit."""
_SMALL, _LARGE = 0.05, 0.9
"""Parts of the time of a saturated disk that the link may take for a command."""
_BATCH_SIZES = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, MOST_PARALLEL)
"""Commands in a batch at most."""

Curve = Mapping[int, float]
"""I/Os a second of the smallest I/Os, by depth."""


def starting_disks(
    found: Mapping[Row, DiskObservation], loads: Sequence[DiskLoad], *, writes: bool
) -> list[VirtualDisk]:
    """Disks to begin with: limited by servers of either placement or by the link, or with batches.

    Batches are of all that wait, or of the size that fits the rates best.
    """
    read = _service(found, loads, "read")
    write = _service(found, loads, "write") if writes else read
    flush_ns = _flush_ns(found, loads)
    units = link_units(found, loads, writes=writes)
    depths = {
        load.depth: math.exp(found[load, "iops"].log)
        for load in loads
        if load.direction == "read" and load.block_kib == SMALLEST_KIB and not load.sequential
    }
    deepest = max(depths)
    rate = max(depths.values())
    mean_s = read.latency_ns * math.exp(read.spread**2 / 2) / 1e9
    busy = rate * mean_s
    """Servers at work."""
    limited = busy < _UNLIMITED * deepest
    placements: tuple[Placement, ...] = ("any", "random")
    write_direction: Direction = "write" if writes else "read"
    curves = {one: _small_rates(found, loads, one) for one in ("read", write_direction)}
    disks = [
        VirtualDisk(
            read=_in_batches(read, curves["read"], size),
            write=_in_batches(write, curves[write_direction], size),
            parallel=float(size),
            placement="batch",
            full_duplex=False,
            flush_ns=flush_ns,
        )
        for size in sorted({likely_batch_size(curves.values()), MOST_PARALLEL})
    ]
    for placement in placements:
        by_servers = max(1.0, busy) if limited else 4.0 * deepest
        if placement == "random" and limited:
            # Balanced servers in a closed network: rate = servers x depth / (depth + servers - 1) / time.
            by_servers = max(1.0, busy * (deepest - 1) / max(1.0, deepest - busy))
        for parallel, part in ((by_servers, _SMALL), (4 * by_servers, _LARGE)):
            disks.append(
                VirtualDisk(
                    read=_with_command(read, part * units["read"].command_ns),
                    write=_with_command(write, part * units["write" if writes else "read"].command_ns),
                    parallel=min(parallel, MOST_PARALLEL / 2),
                    placement=placement,
                    full_duplex=True,
                    flush_ns=flush_ns,
                )
            )
    return disks


def link_units(
    found: Mapping[Row, DiskObservation], loads: Sequence[DiskLoad], *, writes: bool
) -> dict[str, LinkUnits]:
    """The link's times at most, by direction."""
    units = {}
    for direction in ("read", "write") if writes else ("read",):
        rates = {
            load: math.exp(found[load, "iops"].log)
            for load in loads
            if load.direction == direction and (load, "iops") in found and not load.syncs
        }
        units[direction] = LinkUnits(
            command_ns=1e9 / max(rates.values()),
            kib_ns=1e9 / max(load.block_kib * rate for load, rate in rates.items()),
        )
    return units


def _service(found: Mapping[Row, DiskObservation], loads: Sequence[DiskLoad], direction: str) -> Service:
    """From single I/Os: a line through the medians by size, and the spread of the smallest."""
    singles = [
        load
        for load in loads
        if load.direction == direction and load.depth == 1 and not load.syncs and not load.sequential
    ]
    sizes = np.array([load.block_kib for load in singles], dtype=float)
    medians = np.array([math.exp(found[load, "p50"].log) for load in singles])
    # Relative errors are alike, so the smallest count most.
    kib_ns, at_zero_ns = np.polyfit(sizes, medians, 1, w=1 / medians)
    smallest = singles[int(np.argmin(sizes))]
    least_ns = float(np.min(medians))
    p50, p95 = (found[smallest, quantity].log for quantity in ("p50", "p95"))
    return Service(
        latency_ns=max(float(at_zero_ns) - _HOST_NS, 0.2 * least_ns),
        spread=max(0.02, (p95 - p50) / _Z95),
        command_ns=0.0,
        kib_ns=max(float(kib_ns), 1e-4 * least_ns),
    )


def _with_command(service: Service, command_ns: float) -> Service:
    command_ns = min(command_ns, 0.5 * service.latency_ns)
    return Service(
        latency_ns=service.latency_ns - command_ns / 2,
        spread=service.spread,
        command_ns=command_ns,
        kib_ns=service.kib_ns,
    )


def _small_rates(
    found: Mapping[Row, DiskObservation], loads: Sequence[DiskLoad], direction: Direction
) -> dict[int, float]:
    return {
        load.depth: math.exp(found[load, "iops"].log)
        for load in loads
        if load.direction == direction and load.block_kib == SMALLEST_KIB and not load.syncs
    }


def _batch_times_ns(curve: Curve, size: int) -> tuple[float, float, float]:
    """Of batches of so many commands at most: the time of each command, the latency, the squared errors."""
    commands = np.minimum(np.array(list(curve), dtype=float), size)
    batch_ns = 1e9 * commands / np.array(list(curve.values()))
    each_ns, latency_ns = np.polyfit(commands, batch_ns, 1, w=1 / batch_ns)
    errors = (latency_ns + each_ns * commands) / batch_ns - 1
    return float(each_ns), float(latency_ns), float(errors @ errors)


def likely_batch_size(curves: Collection[Curve]) -> int:
    """The size that fits the rates best; `MOST_PARALLEL` for batches of all that wait."""
    deepest = max(max(curve) for curve in curves)
    sizes = [size for size in _BATCH_SIZES if size < deepest or size == MOST_PARALLEL]
    return min(sizes, key=lambda size: sum(_batch_times_ns(curve, size)[2] for curve in curves))


def _in_batches(service: Service, curve: Curve, size: int) -> Service:
    """A batch takes a latency once, and a time for each command."""
    each_ns, latency_ns, _ = _batch_times_ns(curve, size)
    least_ns = min(1e9 * min(depth, size) / rate for depth, rate in curve.items())
    command_ns = min(max(each_ns - SMALLEST_KIB * service.kib_ns, 0.0), 0.5 * least_ns)
    return Service(
        latency_ns=max(latency_ns - _HOST_NS, 0.2 * least_ns),
        spread=service.spread,
        command_ns=command_ns,
        kib_ns=service.kib_ns,
    )


def _flush_ns(found: Mapping[Row, DiskObservation], loads: Sequence[DiskLoad]) -> float:
    for load in loads:
        if load.syncs and (load, "sync") in found:
            return max(1000.0, math.exp(found[load, "sync"].log) - _HOST_NS)
    return 0.0
