"""KDiskMark's results as its "Copy" and "Save" write them, and CrystalDiskMark's, whose form it has.

``MB/s`` is 10^6 bytes a second. The line of a test has its pattern, block, queue depth and threads; further
conditions stand below.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from blklab.labs.reanalysis.readers.protocol import Location, ReaderOptions, Reading, Source

NAME = "kdiskmark"
SUMMARY = "KDiskMark's and CrystalDiskMark's results as text"

_TITLE = re.compile(r"^(?:KDiskMark|CrystalDiskMark) (?:\((?P<version>\S+)\)|[\d.]+\S*)")
_SECTION = re.compile(r"^\[(?P<direction>Read|Write|Mix[^\]]*)\]")
_TEST = re.compile(
    r"^(?:SEQ|RND|Sequential|Random) *(?P<block>\d+ ?[KM]i?B) \(Q= *(?P<depth>\d+), T= *(?P<threads>\d+)\): "
    r"+(?P<rate>\d+[.,]\d{3}) MB/s \[ *(?P<iops>\d+[.,]\d) IOPS\] < *(?P<latency>\d+[.,]\d\d) us>$",
    re.IGNORECASE,
)
_TEST_BEGUN = re.compile(r"^(?:SEQ|RND|Sequential|Random) .*\(Q=", re.IGNORECASE)
_CONDITIONS = (
    ("profile", re.compile(r"^Profile: (?P<value>.+)$")),
    ("test_size", re.compile(r"^Test: (?P<value>.+?) \(x\d+\)")),
    ("target", re.compile(r"^Target: (?P<value>\S+)")),
    ("target", re.compile(r"^Test: .+ \[(?P<value>[A-Z]:)")),
    ("os", re.compile(r"^OS: (?P<value>.+)$")),
)


def recognises(source: Source) -> bool:
    """Whether a line is the title of such a result."""
    return any(_TITLE.match(line.strip()) for line in source.lines) and any(
        _TEST_BEGUN.match(line.strip()) for line in source.lines
    )


@dataclass
class _Result:
    """The result that is being read: its values wait for the conditions below them."""

    factors: dict[str, str] = field(default_factory=dict)
    tests: list[tuple[dict[str, str], re.Match[str], Location]] = field(default_factory=list)


def read(source: Source, options: ReaderOptions) -> Reading:
    """Reads rate, IOPS and mean latency of every test."""
    del options
    reading = Reading(
        chronological=True,
        roles={
            "target": "level",
            "os": "description",
            "direction": "condition",
            "pattern": "condition",
            "block": "condition",
            "depth": "condition",
            "threads": "condition",
            "profile": "condition",
            "test_size": "condition",
        },
    )
    result, direction = _Result(), ""
    for number, line in enumerate(source.lines, start=1):
        stripped = line.strip()
        if _TITLE.match(stripped):
            _add(reading, source, result)
            result, direction = _Result(), ""
        elif section := _SECTION.match(stripped):
            direction = section["direction"].lower()
        elif test := _TEST.match(stripped):
            pattern = "random" if stripped[0] in "Rr" else "sequential"
            result.tests.append(({"pattern": pattern, "direction": direction}, test, source.at(number)))
        elif _TEST_BEGUN.match(stripped):
            reading.problem(source.at(number), "the line of a test is truncated or damaged")
        elif condition := next(
            ((name, match) for name, form in _CONDITIONS if (match := form.match(stripped))), None
        ):
            result.factors[condition[0]] = condition[1]["value"]
    _add(reading, source, result)
    return reading


def _add(reading: Reading, source: Source, result: _Result) -> None:
    if result.tests and "test_size" not in result.factors:
        reading.notes.append(
            f"{source.at(result.tests[-1][2].line)}: the lines below these tests (Profile, Test) are missing;"
            " an excerpt, or cut off"
        )
    for own, test, location in result.tests:
        block = test["block"].replace(" ", "")
        levels = {**result.factors, **own, "block": block, "depth": test["depth"], "threads": test["threads"]}
        reading.add_printed("throughput", test["rate"], "MB/s", "higher", levels, location)
        reading.add_printed("IOPS", test["iops"], "IO/s", "higher", levels, location)
        # A test without I/O has no latency.
        if test["latency"].strip("0.,"):
            reading.add_printed("mean latency", test["latency"], "us", "lower", levels, location)
