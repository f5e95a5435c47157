"""The figures of a disk with an arm as a profile lists them, with their intervals."""

from __future__ import annotations

from blklab.labs.calibration.disk.document import KERNELS_OWN, Figure
from blklab.labs.calibration.disk.fit import TWO_SIDED
from blklab.labs.calibration.disk.hdd.figures import ArmDisk
from blklab.labs.calibration.disk.hdd.mechanics import Mechanics, MechanicsEstimate
from blklab.labs.calibration.disk.hdd.memory import Count, WriteMemory

NOT_COVERED = (
    "how many heads and zones there are, sectors that were replaced, a second arm, shingled tracks,"
    " and memory that fits itself to the load"
)
SEEK_PARTS = {1 / 1000: "1000th", 1 / 100: "100th", 1 / 10: "10th", 1 / 3: "third", 0.95: "95_percent"}
"""Parts of the disk for which the profile tells the time of a seek, and their names."""
_ASSUMED = "assumed: the loads do not tell"
_CURVE = "fitted to seeks; see [calibration.derived] for their times"
_UNMEASURED = "not measured: a raw device is only read"


def figures_of(
    disk: ArmDisk,
    turn: MechanicsEstimate,
    mechanics: Mechanics,
    places: Count,
    ahead: Count | None,
    writes: WriteMemory | None,
    starvation: Count,
    *,
    writable: bool,
) -> list[Figure]:
    """All figures of the profile.

    Args:
        disk: What was found.
        turn: The time of a revolution.
        mechanics: The fit of the arm's figures.
        places: Segments of the memory.
        ahead: Sectors of a segment; None if the disk does not read ahead.
        writes: The memory for writes; None if writes go through it, or were not measured.
        starvation: The age at which a command is served before nearer ones.
        writable: Whether writes were measured.
    """
    values = disk.parameters()
    per_track = {
        key: _sectors(disk.revolution_ns, count, mechanics.errors.get(name), turn)
        for key, name, count in (
            ("outer_sectors", "outer", disk.outer_sectors),
            ("inner_sectors", "inner", disk.inner_sectors),
        )
    }
    known: dict[str, tuple[int | None, int | None, str]] = {
        "rpm": (
            round(60e9 / (turn.value + TWO_SIDED * turn.error)),
            round(60e9 / (turn.value - TWO_SIDED * turn.error)),
            "fitted",
        ),
        **per_track,
        "track_switch": _time(disk.switch_ns, mechanics.errors.get("switch")),
        "head_switch": (None, None, "assumed: as track_switch"),
        "cache_hit": _time(disk.hit_ns, mechanics.errors.get("hit")),
        "interface_rate": _rate(disk.interface_rate, mechanics.errors.get("transfer")),
        "queue_depth": (None, None, KERNELS_OWN),
        "heads": (None, None, _ASSUMED),
        "zones": (None, None, _ASSUMED),
        "serpentine": (None, None, _ASSUMED),
        "cylinders": (None, None, "follows from the capacity"),
        "seek_far_from": (*mechanics.far_from, "fitted, in cylinders of this profile"),
        "cache_segments": (places.low, places.high, places.how),
        "segment_sectors": (None, None, "not identified: the disk does not read ahead"),
        "read_ahead": (
            None,
            None,
            f"reads in order need {'no' if disk.memory.read_ahead else 'a'} revolution each",
        ),
        "starvation_limit": (starvation.low, starvation.high, starvation.how),
    }
    if ahead is not None:
        known["segment_sectors"] = (ahead.low, ahead.high, ahead.how)
    known |= _writes(disk, mechanics, writes, writable=writable)
    return [
        Figure(key=key, value=value, low=low, high=high, how=how)
        for key, value in values.items()
        for low, high, how in [known.get(key, (None, None, _CURVE))]
    ]


def _writes(
    disk: ArmDisk, mechanics: Mechanics, writes: WriteMemory | None, *, writable: bool
) -> dict[str, tuple[int | None, int | None, str]]:
    if not writable:
        keys = ("write_settle", "write_cache_sectors", "write_cache_extents")
        return dict.fromkeys(keys, (None, None, _UNMEASURED))
    if writes is None:
        through = (None, None, "the kernel sends no flushes: writes go through")
        return {
            "write_settle": _time(disk.write_settle_ns, mechanics.errors.get("settle")),
            "write_cache_sectors": through,
            "write_cache_extents": through,
        }
    _, low, high = writes.settle_ns
    return {
        "write_settle": (round(low), round(high), "fitted"),
        "write_cache_sectors": (writes.sectors.low, writes.sectors.high, writes.sectors.how),
        "write_cache_extents": (writes.extents.low, writes.extents.high, writes.extents.how),
    }


def _time(value: float, error: float | None) -> tuple[int | None, int | None, str]:
    if error is None:
        return None, None, "not identified by the loads"
    half = TWO_SIDED * error
    return max(0, round(value - half)), round(value + half), "fitted"


def _rate(rate: float, error: float | None) -> tuple[int | None, int | None, str]:
    """From the time of a KiB."""
    if error is None:
        return None, None, "not identified by the loads"
    kib_ns = 1024e9 / rate
    half = TWO_SIDED * error
    high = round(1024e9 / (kib_ns - half)) if kib_ns > half else None
    return round(1024e9 / (kib_ns + half)), high, "fitted"


def _sectors(
    revolution_ns: float, count: float, error: float | None, turn: MechanicsEstimate
) -> tuple[int | None, int | None, str]:
    """From the time of a sector."""
    sector_ns = revolution_ns / count
    relative = ((error or 0.0) / sector_ns) + turn.error / turn.value
    half = TWO_SIDED * relative * count
    # A whole number is off by up to a half.
    return max(1, int(count - half)), int(count + half) + 1, "fitted"


def derived_of(mechanics: Mechanics) -> list[Figure]:
    """Times of seeks over parts of the disk, in nanoseconds."""
    return [
        Figure(
            key=f"seek_{SEEK_PARTS[part]}", value=round(value), low=round(low), high=round(high), how="fitted"
        )
        for part, (value, low, high) in mechanics.seeks_ns.items()
    ]
