"""Closed forms of the designed loads: their times without what the host adds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from blklab.labs.calibration.disk.hdd.figures import (
    SECTOR_BYTES,
    SERPENTINE,
    ArmDisk,
    Floats,
    Geometry,
)
from blklab.labs.calibration.disk.hdd.loads import SEQUENTIAL_KIB, Jump
from blklab.labs.calibration.disk.hdd.observed import Row
from blklab.labs.calibration.disk.placed_loads import PlacedLoad

SEQUENTIAL_SECTORS = SEQUENTIAL_KIB * 1024 // SECTOR_BYTES
_GRID = np.arange(0.05, 1, 0.1)
_PHASES = np.arange(16) * (math.sqrt(5) - 1) / 2 % 1
"""Parts of a band: evenly spread, and no multiple of a head's turn."""


@dataclass(frozen=True)
class Designed:
    """The loads of the mechanics, and where each of their numbers comes from."""

    jumps: Sequence[Jump]
    in_order: Sequence[PlacedLoad]
    again: Sequence[PlacedLoad]
    write_jumps: Sequence[Jump] = ()
    """Only for a disk that writes through."""

    @property
    def rows(self) -> list[Row]:
        """All numbers."""
        return [
            *(Row(one.load, "middle") for one in [*self.jumps, *self.write_jumps]),
            *(Row(load, quantity) for load in self.in_order for quantity in ("mean", "step")),
            *(Row(load, "mean") for load in self.again),
        ]

    @property
    def loads(self) -> list[PlacedLoad]:
        """Each load once."""
        return [
            *(one.load for one in [*self.jumps, *self.write_jumps]),
            *self.in_order,
            *self.again,
        ]


def closed_form(disk: ArmDisk, design: Designed, geometry: Geometry) -> Floats:
    """The numbers of all rows but for the host's time.

    Args:
        disk: The figures.
        design: The loads.
        geometry: The places that jumps lead to. Short ones change with every sector of a track, so a step
            keeps the geometry that it began with.
    """
    found = []
    for one in [*design.jumps, *design.write_jumps]:
        settle = 0.0 if one.load.reads_only else disk.write_settle_ns
        found.append(_seek_ns(disk, geometry, one) + settle + disk.revolution_ns / 2)
    for load in design.in_order:
        per_track = _sectors_at(disk, load)
        # So large a part of the switch is in the mean.
        part = min(1.0, SEQUENTIAL_SECTORS / per_track)
        found += [
            SEQUENTIAL_SECTORS * (disk.revolution_ns + disk.switch_ns) / per_track,
            disk.switch_ns * (1 - part),
        ]
    for load in design.again:
        found.append(disk.hit_ns + load.block_kib * 1e9 * 1024 / disk.interface_rate)
    return np.array(found)


def _seek_ns(disk: ArmDisk, geometry: Geometry, jump: Jump, back_bytes: int = 0) -> float:
    """The mean time of a jump's seeks, if its parts lay farther back."""
    places = (jump.near_bytes - back_bytes + _GRID * jump.part_bytes).astype(np.int64)
    first = geometry.cylinders_at(places)
    second = geometry.cylinders_at(places + jump.distance_bytes)
    return float(disk.curve.ns(np.abs(first[:, None] - second[None, :]), disk.switch_ns).mean())


def place_error(disk: ArmDisk, jump: Jump) -> float:
    """The uncertainty of a jump's seeks, in nanoseconds, since nobody knows where a band of tracks begins.

    Within a band, addresses lead inwards on one head and back on the next. So a short jump goes over more or
    fewer cylinders by where in a band it lies.
    """
    geometry = disk.geometry
    band_bytes = SERPENTINE * geometry.heads * geometry.sectors_per_track(jump.near_bytes) * SECTOR_BYTES
    most = min(band_bytes, jump.near_bytes)
    times = [_seek_ns(disk, geometry, jump, round(most * part)) for part in _PHASES]
    return float(np.std(times, ddof=1))


def _sectors_at(disk: ArmDisk, load: PlacedLoad) -> float:
    """Sectors on the tracks of a load at the beginning or at the end, not rounded."""
    first = disk.geometry.sectors_per_track(load.offset_bytes)
    return first * disk.outer_sectors / disk.geometry.outer


def jump_distances(disk: ArmDisk, design: Designed) -> Floats:
    """Of the jumps, in cylinders, from the middle of one part to that of the other."""
    geometry = disk.geometry
    return np.array(
        [
            abs(
                int(geometry.cylinders_at(np.array([one.near_bytes + one.part_bytes // 2]))[0])
                - int(
                    geometry.cylinders_at(
                        np.array([one.near_bytes + one.distance_bytes + one.part_bytes // 2])
                    )[0]
                )
            )
            for one in design.jumps
        ],
        dtype=float,
    )
