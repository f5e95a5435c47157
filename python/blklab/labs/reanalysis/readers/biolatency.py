"""Histograms of biolatency, of BCC and of bpftrace: how many I/Os took how long.

A histogram has no values between its bounds. What it says is its count, and within which bucket a percentile
lies: "at most" is the last value of that bucket. Histograms in one file are in order of time.
A whole number of a unit stands for all that rounds down to it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from blklab.labs.reanalysis.readers.protocol import ReaderOptions, Reading, Source

NAME = "biolatency"
SUMMARY = "histograms of biolatency (BCC and bpftrace)"

_TITLE = re.compile(r"^(?P<unit>[num]?secs) +: count +distribution$")
_NAMED = re.compile(r"^(?P<factor>disk|flags) = '?(?P<value>.+?)'?$")
_BUCKET = re.compile(r"^(?P<low>\d+) -> (?P<high>\d+) +: (?P<count>\d+) +\|[* ]*\+?\|$")
_MAP = re.compile(r"^@(?P<name>[num]?secs)(?:\[(?P<key>.*)\])?: ?$")
_RANGE = re.compile(r"^[\[(](?P<low>\d+[KMG]?)(?:, (?P<high>\d+[KMG]?)\)|\]) +(?P<count>\d+) \|[@ ]*\|$")
_ROW_BEGUN = re.compile(r"^(?:\d+ +->|[\[(]\d+[KMG]?(?:,|\]))")
_TO_US = {"nsecs": 1e-3, "usecs": 1.0, "msecs": 1e3, "secs": 1e6}
_SUFFIXES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_PERCENTILES = (50, 99)
_MOST = 10**15
"""Bounds and counts beyond this are damage."""


def recognises(source: Source) -> bool:
    """Whether a line begins a histogram of times."""
    lines = [line.strip() for line in source.lines]
    return any(
        _TITLE.match(line) or (_MAP.match(line) and _RANGE.match(following))
        for line, following in zip(lines, [*lines[1:], ""], strict=True)
    )


@dataclass
class _Histogram:
    line: int
    to_us: float
    factors: dict[str, str]
    buckets: list[tuple[int, int]] = field(default_factory=list)
    """The last value of each bucket, and its count."""
    is_broken: bool = False


def read(source: Source, options: ReaderOptions) -> Reading:
    """Reads count, and the bounds of the median and of the 99th percentile, of every histogram."""
    del options
    reading = Reading(chronological=True, roles={"disk": "level", "flags": "condition", "key": "condition"})
    factors: dict[str, str] = {}
    open_one: _Histogram | None = None
    for number, line in enumerate(source.lines, start=1):
        stripped = line.strip()
        if title := _TITLE.match(stripped):
            _add(reading, source, open_one)
            open_one, factors = _Histogram(number, _TO_US[title["unit"]], factors), {}
        elif named := _NAMED.match(stripped):
            _add(reading, source, open_one)
            open_one, factors = None, {**factors, named["factor"]: named["value"]}
        elif mapped := _MAP.match(stripped):
            _add(reading, source, open_one)
            key = {"key": mapped["key"]} if mapped["key"] else {}
            open_one, factors = _Histogram(number, _TO_US[mapped["name"]], key), {}
        elif open_one and (row := _BUCKET.match(stripped) or _RANGE.match(stripped)):
            _take(open_one, row)
        elif open_one and _ROW_BEGUN.match(stripped):
            open_one.is_broken = True
            reading.problem(source.at(number), "a line of the histogram is truncated or damaged")
        elif open_one and open_one.buckets:
            _add(reading, source, open_one)
            open_one = None
    if open_one is not None and open_one.buckets:
        # Nothing tells whether more lines were to come.
        reading.notes.append(f"{source.at(open_one.line)}: the file ends with this histogram")
        _add(reading, source, open_one)
    return reading


def _take(histogram: _Histogram, row: re.Match[str]) -> None:
    low, high = _bound(row["low"]), _bound(row["high"] or row["low"])
    # bpftrace's bounds are open at the end, BCC's closed; a single value stands alone in bpftrace.
    last = high - 1 if row.re is _RANGE and row["high"] else high
    count = int(row["count"])
    if max(last, count) > _MOST or last < low or (histogram.buckets and last <= histogram.buckets[-1][0]):
        histogram.is_broken = True
    histogram.buckets.append((last, count))


def _bound(text: str) -> int:
    suffix = text[-1] if text[-1] in _SUFFIXES else ""
    return int(text.removesuffix(suffix)) * _SUFFIXES[suffix]


def _add(reading: Reading, source: Source, histogram: _Histogram | None) -> None:
    if histogram is None:
        return
    location = source.at(histogram.line)
    count = sum(count for _, count in histogram.buckets)
    if histogram.is_broken or count == 0:
        reading.problem(location, "this histogram is damaged" if histogram.is_broken else "no I/O is counted")
        return
    reading.add("I/Os", float(count), "", None, histogram.factors, location)
    for percent in _PERCENTILES:
        seen, bound = 0, 0
        for last, of_bucket in histogram.buckets:
            seen, bound = seen + of_bucket, last
            if seen * 100 >= count * percent:
                break
        value = max(bound, 1) * histogram.to_us
        reading.add(f"latency p{percent}, at most", value, "us", "lower", histogram.factors, location)
