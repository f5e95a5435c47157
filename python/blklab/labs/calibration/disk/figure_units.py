"""Units of a profile's figures, as they are printed for people; the profile has a grammar of its own."""

from __future__ import annotations

from blklab.labs.calibration.disk.document import Figure
from blklab.labs.calibration.disk.profile_file import is_duration, shown_interval, shown_value
from blklab.quantities.formatting import count_of

_OF_KEYS = {
    **dict.fromkeys(("capacity", "page", "erase_block", "slc_cache", "buffer"), "B"),
    **dict.fromkeys(("rate_limit", "write_drain_rate", "copy_bandwidth"), "B/s"),
    **dict.fromkeys(("rate_burst", "write_buffer"), "B"),
    **dict.fromkeys(("queue_depth", "depth", "batch_size", "parallel", "arbitration_burst"), "command"),
    "fetch": "ns",
    "io_limit": "IO/s",
    "io_burst": "I/O",
    "max_sectors_kb": "KiB",
    "rpm": "rpm",
    "seek_far_from": "cylinder",
}
_OF_LAST_WORDS = {
    "rate": "B/s",
    "spread": "\N{PER MILLE SIGN}",
    "permille": "\N{PER MILLE SIGN}",
    "percent": "%",
    "sectors": "sector",
}
_COUNTED = {"command", "I/O", "cylinder", "sector"}
COUNTS_AND_SWITCHES = frozenset(
    {
        *("rotational", "hw_queues", "full_duplex", "dies", "planes", "channels", "slots", "flush_drains"),
        *("heads", "cylinders", "zones", "serpentine", "cache_segments", "read_ahead", "write_cache_extents"),
    }
)
"""Keys that name what they count, or that are 0 or 1."""


def unit_of(key: str) -> str | None:
    """The unit of a number that is no duration, in the singular; None if it has none."""
    return _OF_KEYS.get(key) or _OF_LAST_WORDS.get(key.rsplit("_", maxsplit=1)[-1])


def printed_value(figure: Figure, value: int | str) -> str:
    """A figure's value with its unit: ``97us``, ``560000000 B/s``, ``32 commands``."""
    if isinstance(value, str):
        return value
    if is_duration(figure.key):
        return shown_value(figure, value) if value else "0ns"
    unit = unit_of(figure.key)
    if unit is None:
        return str(value)
    return count_of(value, unit) if unit in _COUNTED else f"{value} {unit}"


def printed_interval(figure: Figure) -> str:
    """A figure's interval with its unit; how it was found if there is none."""
    return shown_interval(figure, printed_value)
