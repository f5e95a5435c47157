"""Parses and formats quantities: sizes in IEC units, rates in SI units, durations."""

from __future__ import annotations

import re

from blklab.errors import UsageError

NS_PER_US = 1_000
NS_PER_MS = 1_000_000
NS_PER_SECOND = 1_000_000_000
MOST_BYTES = (1 << 63) - 1
"""The largest size: offsets of files are signed 64-bit numbers."""
MOST_NS = 10**18
"""The longest duration, some 31 years: a sum of several must fit into 64 bits."""
_SIZE_FACTORS = {
    "": 1,
    "k": 1 << 10,
    "m": 1 << 20,
    "g": 1 << 30,
    "t": 1 << 40,
    "p": 1 << 50,
}
_DURATION_FACTORS_NS = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "": 1_000_000_000,
    "m": 60_000_000_000,
    "min": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_EXACT_UNITS = (("s", NS_PER_SECOND), ("ms", NS_PER_MS), ("us", NS_PER_US), ("ns", 1))
_MOST_PERCENT = 100
_FRACTION = re.compile(r"(\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+)\s*(%?)", re.IGNORECASE)
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgtp]?)(?:i?b)?", re.IGNORECASE)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.IGNORECASE)
_COMPOUND_DURATION = re.compile(r"(?:\d+(?:\.\d+)?[a-z]+){2,}", re.IGNORECASE)
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)([a-z]+)", re.IGNORECASE)


def parse_size_bytes(text: str) -> int:
    """Parses a size such as ``64k``, ``1GiB``, ``512`` (bytes). Prefixes are powers of 1024, as in fio.

    Raises:
        UsageError: if it is not a size, is zero, or exceeds `MOST_BYTES`.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text!r} is not a size", hint="write it like 512m, 4GiB or 1048576")
    written = float(match[1]) * _SIZE_FACTORS[match[2].lower()]
    if written > MOST_BYTES:
        raise UsageError(f"the size {text!r} is too large", hint="at most 8191p")
    size_bytes = int(written)
    if size_bytes <= 0:
        raise UsageError(f"the size {text!r} must be greater than zero")
    return size_bytes


def parse_duration_ns(text: str) -> int:
    """Parses a duration such as ``2m``, ``1.5s``, ``1m30s`` or ``90`` (seconds).

    Raises:
        UsageError: if it is not a duration, is zero, or exceeds `MOST_NS`.
    """
    stripped = text.strip()
    parts = (
        _DURATION_PART.findall(stripped)
        if _COMPOUND_DURATION.fullmatch(stripped)
        else [match.groups()]
        if (match := _DURATION.fullmatch(stripped))
        else []
    )
    if not parts or any(unit.lower() not in _DURATION_FACTORS_NS for _, unit in parts):
        raise UsageError(f"{text!r} is not a duration", hint="write it like 90s, 2m, 1m30s or 500ms")
    written = sum(float(number) * _DURATION_FACTORS_NS[unit.lower()] for number, unit in parts)
    if written > MOST_NS:
        raise UsageError(
            f"the duration {text!r} is too long", hint=f"at most {MOST_NS // 3_600_000_000_000}h"
        )
    duration_ns = round(written)
    if duration_ns <= 0:
        raise UsageError(f"the duration {text!r} must be greater than zero, such as 500ms")
    return duration_ns


def parse_budget_ns(text: str) -> int:
    """Parses a duration to spend. It needs a unit: `5` could be seconds as well as minutes.

    Raises:
        UsageError: if it has no unit, or is not a duration.
    """
    stripped = text.strip()
    if stripped.replace(".", "", 1).isdecimal():
        raise UsageError(f"the budget {stripped} has no unit", hint=f"{stripped}s or {stripped}m?")
    return parse_duration_ns(stripped)


def exact_duration(duration_ns: int) -> str:
    """A duration that reads back as the same number of nanoseconds."""
    unit, factor = next((unit, factor) for unit, factor in _EXACT_UNITS if duration_ns % factor == 0)
    return f"{duration_ns // factor}{unit}"


def parse_fraction(written: float | str) -> float:
    """Reads a fraction, as a number or in percent: 0.05 and ``5%`` are the same.

    Raises:
        UsageError: if it is neither.
    """
    if not isinstance(written, str):
        return _below_one(float(written))
    found = _FRACTION.fullmatch(written.strip())
    if found is None:
        raise UsageError(f"{written!r} is not a fraction", hint="write 0.05 or 5%")
    return float(found[1]) / 100 if found[2] else _below_one(float(found[1]))


def _below_one(written: float) -> float:
    """Refuses 5 where 5% is meant."""
    if 1 <= written <= _MOST_PERCENT:
        raise UsageError(
            f"{written:g} is no fraction below 1", hint=f"{written:g}%, which is {written / 100:g}?"
        )
    return written


def format_bytes(size_bytes: float) -> str:
    """Formats a size in IEC units: ``1.5 GiB``."""
    value = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1024:
            return f"{_three_digits(value)} {unit}"
        value /= 1024
    return f"{_three_digits(value)} PiB"


def format_si(value: float, unit: str) -> str:
    """Formats a quantity with an SI prefix: ``12.3 kIO/s``, ``1.05 GB/s``."""
    scaled = float(value)
    for prefix in ("", "k", "M", "G", "T"):
        if abs(scaled) < 999.5:
            return f"{_three_digits(scaled)} {prefix}{unit}"
        scaled /= 1000
    return f"{_three_digits(scaled)} P{unit}"


def format_duration(duration_ns: float) -> str:
    """Formats a duration with three significant digits or, from one minute, as ``2 min 05 s``."""
    value = float(duration_ns)
    for unit, factor in (("ns", 1e3), ("µs", 1e3), ("ms", 1e3)):
        if abs(value) < 999.5:
            return f"{_three_digits(value)} {unit}"
        value /= factor
    if value < 59.95:
        return f"{_three_digits(value)} s"
    seconds = round(value)
    hours, rest = divmod(seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {seconds:02d} s"


def _three_digits(value: float) -> str:
    """Three significant digits without an exponent; whole numbers from 100 on."""
    magnitude = abs(value)
    if magnitude == 0:
        return "0"
    if magnitude >= 99.95:
        return f"{value:.0f}"
    if magnitude >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}"
