"""``tiotest`` of tiobench 0.3 and 0.4: its two tables and its terse lines (-T), any number of runs.

tiotest's ``MB`` is 2^20 bytes.
"""

from __future__ import annotations

import re

from blklab.labs.reanalysis.readers.numbers import NUMBER, NumberError, parse_number
from blklab.labs.reanalysis.readers.protocol import ReaderOptions, Reading, Source

NAME = "tiotest"
SUMMARY = "tiotest's tables of rates and latencies, and its terse lines (-T)"

_THREADS = re.compile(r"^\s*Tiotest results for (?P<threads>\d+) concurrent io threads")
_LATENCIES = re.compile(r"^\s*Tiotest latency results")
_PHASE = r"(?P<phase>Random Write|Random Read|Write|Read|Total)"
_RATE_ROW = re.compile(
    rf"^\s*\|\s*{_PHASE}\s+(?P<data>{NUMBER}) MBs\s*\|\s*(?P<time>{NUMBER}) s\s*\|"
    rf"\s*(?P<rate>{NUMBER}) MB/s\s*\|\s*(?P<user>{NUMBER})\s*%\s*\|\s*(?P<system>{NUMBER})\s*%\s*\|"
)
_LATENCY_ROW = re.compile(
    rf"^\s*\|\s*{_PHASE}\s*\|\s*(?P<mean>{NUMBER}) ms\s*\|\s*(?P<maximum>{NUMBER}) ms\s*\|"
    rf"\s*(?P<over_2>{NUMBER})\s*\|\s*(?P<over_10>{NUMBER})\s*\|"
)
_ROW_BEGIN = re.compile(rf"^\s*\|\s*{_PHASE}\b")
_TERSE = re.compile(r"^(?P<phase>write|rwrite|read|rread):(?P<values>[^\n]*)$")
_TERSE_TOTAL = re.compile(r"^total:")
_FRAME_BEGIN, _FRAME_END = re.compile(r"^\s*,--"), re.compile(r"^\s*[`']--")
_FRAME = re.compile(r"^\s*(?:[,+`|'][-+]|\|\s*Item\b)|^\s*$")
_TERSE_PHASES = {"write": "write", "rwrite": "random write", "read": "read", "rread": "random read"}


def recognises(source: Source) -> bool:
    """Whether the file has a table's title or a terse line."""
    return any(
        _THREADS.match(line) or _LATENCIES.match(line) or (_TERSE.match(line) and line.count(",") >= 3)
        for line in source.lines
    )


def read(source: Source, options: ReaderOptions) -> Reading:
    """Reads rates in MiB/s and latencies in ms."""
    del options
    reading = Reading(chronological=True, roles={"phase": "condition", "threads": "condition"})
    factors: dict[str, str] = {}
    frame: int | None = None
    for number, line in enumerate(source.lines, start=1):
        if threads := _THREADS.match(line):
            factors["threads"] = threads["threads"]
        elif terse := _TERSE.match(line):
            _terse(reading, source, number, terse)
        elif rate := _RATE_ROW.match(line):
            levels = {**factors, "phase": rate["phase"].lower()}
            reading.add_printed("rate", rate["rate"], "MiB/s", "higher", levels, source.at(number))
        elif latency := _LATENCY_ROW.match(line):
            levels = {**factors, "phase": latency["phase"].lower()}
            for which in ("mean", "maximum"):
                location = source.at(number)
                reading.add_printed(f"{which} latency", latency[which], "ms", "lower", levels, location)
        elif _ROW_BEGIN.match(line):
            reading.problem(source.at(number), "a row of the table is truncated, split or damaged")
        elif _FRAME_BEGIN.match(line):
            frame = number
        elif _FRAME_END.match(line):
            frame = None
        elif not (_FRAME.match(line) or _LATENCIES.match(line) or _TERSE_TOTAL.match(line)):
            reading.skipped_lines.append(number)
    if frame is not None:
        reading.problem(source.at(frame), "the table that begins here has no end: rows may be missing")
    return reading


def _terse(reading: Reading, source: Source, number: int, match: re.Match[str]) -> None:
    """Reads MB, seconds, user and system seconds, mean and maximum latency in ms, % over 2 s, % over 10 s."""
    location = source.at(number)
    try:
        values = [parse_number(text, ".") for text in match["values"].split(",")]
    except NumberError as error:
        reading.problem(location, str(error))
        return
    if len(values) != 8:
        reading.problem(location, f"{len(values)} values; a terse line has 8")
        return
    data, seconds, _, _, mean, maximum, _, _ = values
    levels = {"phase": _TERSE_PHASES[match["phase"]]}
    if seconds > 0:
        reading.add("rate", data / seconds, "MiB/s", "higher", levels, location)
    else:
        reading.problem(location, "zero seconds: there is no rate")
    reading.add("mean latency", mean, "ms", "lower", levels, location)
    reading.add("maximum latency", maximum, "ms", "lower", levels, location)
