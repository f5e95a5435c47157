"""The units that other tools write."""

from __future__ import annotations

UNITS: dict[str, tuple[str, float]] = {
    "B/s": ("B/s", 1.0),
    "kB/s": ("B/s", 1e3),
    "MB/s": ("B/s", 1e6),
    "GB/s": ("B/s", 1e9),
    "TB/s": ("B/s", 1e12),
    "KiB/s": ("B/s", 1024.0),
    "MiB/s": ("B/s", 1024.0**2),
    "GiB/s": ("B/s", 1024.0**3),
    "TiB/s": ("B/s", 1024.0**4),
    "IO/s": ("IO/s", 1.0),
    "ns": ("s", 1e-9),
    "us": ("s", 1e-6),
    "ms": ("s", 1e-3),
    "s": ("s", 1.0),
    "%": ("%", 1.0),
}
"""For each symbol its dimension, and its factor to the base unit."""

COLUMN_SUFFIXES = {
    "Bps": "B/s",
    "kBps": "kB/s",
    "KBps": "kB/s",
    "MBps": "MB/s",
    "GBps": "GB/s",
    "KiBps": "KiB/s",
    "MiBps": "MiB/s",
    "GiBps": "GiB/s",
    "iops": "IO/s",
    "ns": "ns",
    "us": "us",
    "ms": "ms",
    "s": "s",
    "pct": "%",
}
"""Unit of a column by the suffix of its name: ``rate_MBps`` is in MB/s."""

LOWER_IS_BETTER = frozenset({"ns", "us", "ms", "s"})
HIGHER_IS_BETTER = frozenset(
    symbol for symbol, (dimension, _) in UNITS.items() if dimension in ("B/s", "IO/s")
)


def unit_of_column(name: str) -> str | None:
    """The unit in the suffix of a column's name; None if it has none."""
    _, separator, suffix = name.rpartition("_")
    return COLUMN_SUFFIXES.get(suffix) if separator else None


def converted(value: float, unit: str, to: str) -> float | None:
    """The value in another unit; None if the dimensions differ."""
    if unit == to:
        return value
    if unit not in UNITS or to not in UNITS or UNITS[unit][0] != UNITS[to][0]:
        return None
    return value * UNITS[unit][1] / UNITS[to][1]
