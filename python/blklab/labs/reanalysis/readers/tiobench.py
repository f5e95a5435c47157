"""The summary of ``tiobench.pl`` 0.3 and 0.4: four tables, each with means over its runs.

tiobench averages its runs before it prints, so the runs of one invocation are lost; repeat the invocation to
repeat the measurement. Its latencies are sums over those runs, and a note says so.
"""

from __future__ import annotations

import re

from blklab.labs.reanalysis.readers.numbers import NUMBER, NumberError, parse_number
from blklab.labs.reanalysis.readers.protocol import ReaderOptions, Reading, Source

NAME = "tiobench"
SUMMARY = "tiobench.pl's four tables (sequential and random, reads and writes)"

_TESTS = ("sequential reads", "random reads", "sequential writes", "random writes")
_TITLE = re.compile(r"^\s*(?P<title>(?:Sequential|Random) (?:Reads|Writes))\s*$")
_ROW = re.compile(
    rf"^(?P<identifier>\S.*?)\s+(?P<size>\d+)\s+(?P<block>\d+)\s+(?P<threads>\d+)\s+(?P<rate>{NUMBER})\s+"
    rf"(?P<cpu>{NUMBER}|#+)%\s+(?P<mean>{NUMBER}|#+)\s+(?P<maximum>{NUMBER}|#+)\s+(?P<over_2>{NUMBER})\s+"
    rf"(?P<over_10>{NUMBER})\s+(?P<efficiency>\S+)\s*$"
)
_RULE = re.compile(r"^\s*(?:=+|-+(?: +-+)*)\s*$")
_HEADING = re.compile(r"^\s*File\s+Blk\s+Num\b|^Identifier\s+Size\s+Size\b")
_UNITS = re.compile(r"^(?:Unit information|File size|Blk Size|Rate|CPU%|Latency|Lat%|CPU Eff)(?=\s|$)")


def recognises(source: Source) -> bool:
    """Whether the file has a table's title and heading."""
    lines = source.lines
    return any(_TITLE.match(line) for line in lines) and any(_HEADING.match(line) for line in lines)


def read(source: Source, options: ReaderOptions) -> Reading:
    """Reads rates in MiB/s and mean latencies in ms."""
    del options
    reading = Reading(
        chronological=False,
        roles={
            "identifier": "level",
            "test": "condition",
            "size_MiB": "condition",
            "block": "condition",
            "threads": "condition",
        },
    )
    reading.notes.append(
        f"{source.name}: tiobench adds up the latencies of its runs, so they are right only for a single run"
    )
    title: str | None = None
    for number, line in enumerate(source.lines, start=1):
        if match := _TITLE.match(line):
            title = match["title"].lower()
        elif not line.strip() or _RULE.match(line) or _HEADING.match(line) or _UNITS.match(line):
            continue
        elif title is not None:
            _row(reading, source, number, line, title)
        else:
            reading.skipped_lines.append(number)
    present = {one.factors["test"] for one in reading.measurements}
    for lacking in (test for test in _TESTS if test not in present):
        reading.problem(source.at(len(source.lines)), f"no row of {lacking}: the four tables are incomplete")
    return reading


def _row(reading: Reading, source: Source, number: int, line: str, title: str) -> None:
    location = source.at(number)
    row = _ROW.match(line)
    if row is None:
        reading.problem(location, f"{title}: the row is truncated or damaged")
        return
    levels = {
        "identifier": row["identifier"],
        "test": title,
        "size_MiB": row["size"],
        "block": row["block"],
        "threads": row["threads"],
    }
    try:
        reading.add("rate", parse_number(row["rate"]), "MiB/s", "higher", levels, location)
        if "#" not in row["mean"]:
            reading.add("latency", parse_number(row["mean"]), "ms", "lower", levels, location)
        else:
            reading.problem(location, f"{title}: the latency did not fit its column")
    except NumberError as error:
        reading.problem(location, f"{title}: {error}")
