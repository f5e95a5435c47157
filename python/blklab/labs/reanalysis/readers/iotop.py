"""Batch logs of ``iotop -b`` (iotop 0.6 in Python, iotop-c): processes and totals, sample by sample.

A sample begins with its line of totals. The processes of one sample ran at the same time, so samples are
blocks. iotop's ``K/s`` and ``M/s`` are powers of 1024.
"""

from __future__ import annotations

import re

from blklab.labs.reanalysis.readers.numbers import NUMBER
from blklab.labs.reanalysis.readers.protocol import ReaderOptions, Reading, Source

NAME = "iotop"
SUMMARY = "iotop -b: processes by priority, and totals; samples are blocks"

_CLOCK = r"(?:\d\d:\d\d:\d\d\s+)?"
_RATE = rf"(?P<{{}}>{NUMBER}) (?P<{{}}_unit>[BKMGT])/s"
_READ, _WRITE = _RATE.format("read", "read"), _RATE.format("write", "write")
_TOTALS = re.compile(
    rf"^\s*(?:b')?{_CLOCK}(?P<kind>Total|Current|Actual) DISK READ\s*:\s*{_READ}\s*\|\s*"
    rf"(?:Total|Current|Actual) DISK WRITE\s*:\s*{_WRITE}"
)
_TOTALS_BEGIN = re.compile(r"^\s*(?:b')?(?:\d\d:\d\d:\d\d\s+)?(?:Total|Current|Actual) DISK READ")
_PROCESS = re.compile(
    rf"^\s*(?:b')?{_CLOCK}(?P<tid>\d+)\s+(?P<prio>(?:be|rt|id|\?)\S*)\s+(?P<user>\S+)\s+{_READ}\s+{_WRITE}\s+(?P<rest>.*)$"
)
_PROCESS_BEGIN = re.compile(r"^\s*(?:b')?(?:\d\d:\d\d:\d\d\s+)?\d+\s+(?:be|rt|id)\b")
_HEADING = re.compile(r"^\s*(?:b')?(?:TIME\s+)?(?:TID|PID)\s+PRIO\b")
_COLUMNS_BEFORE_COMMAND = re.compile(rf"^(?:(?:{NUMBER} %|\?\w+\?)\s+)*")
_EXPONENTS = {"B": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def recognises(source: Source) -> bool:
    """Whether the file has a line of totals."""
    return any(_TOTALS_BEGIN.match(line) for line in source.lines)


def read(source: Source, options: ReaderOptions) -> Reading:
    """Reads processes and totals; rates in MiB/s."""
    del options
    reading = Reading(
        chronological=True,
        roles={
            "priority": "level",
            "sample": "block",
            "tid": "description",
            "user": "description",
            "command": "description",
        },
    )
    sample = 0
    for number, line in enumerate(source.lines, start=1):
        if _TOTALS_BEGIN.match(line):
            totals = _TOTALS.match(line)
            if totals is None:
                reading.problem(source.at(number), "a line of totals is truncated or damaged")
                continue
            if totals["kind"] == "Total":
                sample += 1
            _add(reading, source, number, totals, f"{totals['kind'].lower()} disk ", {"sample": str(sample)})
        elif process := _PROCESS.match(line):
            factors = {
                "sample": str(sample),
                "priority": process["prio"],
                "tid": process["tid"],
                "user": process["user"],
                "command": _COLUMNS_BEFORE_COMMAND.sub("", process["rest"]).strip(),
            }
            _add(reading, source, number, process, "process disk ", factors)
        elif _PROCESS_BEGIN.match(line):
            reading.problem(source.at(number), "a process's line is truncated or damaged")
        elif line.strip() and not _HEADING.match(line):
            reading.skipped_lines.append(number)
    return reading


def _add(
    reading: Reading, source: Source, number: int, match: re.Match[str], what: str, factors: dict[str, str]
) -> None:
    for direction in ("read", "write"):
        mebibytes = 1024.0 ** (_EXPONENTS[match[f"{direction}_unit"]] - 2)
        metric, location = f"{what}{direction}", source.at(number)
        reading.add_printed(metric, match[direction], "MiB/s", "higher", factors, location, factor=mebibytes)
