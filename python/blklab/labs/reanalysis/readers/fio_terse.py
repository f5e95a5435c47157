"""fio's terse output (``--minimal``): versions 3, 4 and 5, and version 2, which lacks fio's own version.

The order of the fields follows fio's documentation (HOWTO, "Terse output"): versions 4 and 5 have trims after
writes, and version 5 has six more fields per direction.
"""

from __future__ import annotations

import re

from blklab.labs.reanalysis.readers.numbers import NumberError, parse_number
from blklab.labs.reanalysis.readers.protocol import ReaderOptions, Reading, Source

NAME = "fio-terse"
SUMMARY = "fio --minimal, terse versions 2 to 5"

_LINE = re.compile(r"^(?P<version>[2345]);(?P<fio>fio-[^;]*;)?[^;]*;\d+;\d+;")
_BEGINNING = re.compile(r"^[2345];(?:fio-[^;]*;?)?")
_FIELDS_A_DIRECTION = {"2": 41, "3": 41, "4": 41, "5": 47}
_DIRECTIONS = {
    "2": ("read", "write"),
    "3": ("read", "write"),
    "4": ("read", "write", "trim"),
    "5": ("read", "write", "trim"),
}
_BANDWIDTH, _IOPS, _RUNTIME = 1, 2, 3
_FIRST_PERCENTILE, _PERCENTILES = 12, 20
_MEAN_LATENCY = 34
_PERCENTILE = re.compile(r"^(?P<percent>\d+(?:\.\d+)?)%=(?P<value>\d+)$")


def recognises(source: Source) -> bool:
    """Whether a line begins like fio's terse lines."""
    return any(_LINE.match(line) and line.count(";") > 40 for line in source.lines) or any(
        re.match(r"^[345];fio-", line) for line in source.lines
    )


def read(source: Source, options: ReaderOptions) -> Reading:
    """Reads bandwidth, IOPS, mean latency and two percentiles of each job and direction."""
    del options
    reading = Reading(chronological=True, roles={"job": "condition", "direction": "condition"})
    for number, line in enumerate(source.lines, start=1):
        stripped = line.strip()
        if match := _LINE.match(stripped):
            _job(reading, source, number, stripped.split(";"), match["version"], has_fio=bool(match["fio"]))
        elif _BEGINNING.match(stripped):
            reading.problem(source.at(number), "a job's line is truncated or damaged")
        elif stripped:
            reading.skipped_lines.append(number)
    return reading


def _job(
    reading: Reading, source: Source, number: int, fields: list[str], version: str, *, has_fio: bool
) -> None:
    location = source.at(number)
    start = 5 if has_fio else 4
    width = _FIELDS_A_DIRECTION[version]
    directions = _DIRECTIONS[version]
    job = fields[start - 3]
    if len(fields) < start + width * len(directions) + 5:
        reading.problem(location, f"job {job}: truncated after {len(fields)} fields")
        return
    if fields[start - 1] != "0":
        reading.problem(
            location, f"job {job}: fio reports error {fields[start - 1]}; its values are not used"
        )
        return
    for index, direction in enumerate(directions):
        part = fields[start + index * width : start + (index + 1) * width]
        levels = {"job": job, "direction": direction}
        try:
            if parse_number(part[_RUNTIME]) == 0 or parse_number(part[0]) == 0:
                continue
            bandwidth, iops = parse_number(part[_BANDWIDTH]), parse_number(part[_IOPS])
            mean = parse_number(part[_MEAN_LATENCY])
            percentiles = _percentiles(part)
        except NumberError as error:
            reading.problem(location, f"job {job}, {direction}: {error}")
            continue
        reading.add("bandwidth", bandwidth / 1024, "MiB/s", "higher", levels, location)
        reading.add("IOPS", iops, "IO/s", "higher", levels, location)
        reading.add("mean latency", mean, "us", "lower", levels, location)
        for percent, value in percentiles:
            reading.add(f"completion latency p{percent:g}", value, "us", "lower", levels, location)


def _percentiles(part: list[str]) -> list[tuple[float, float]]:
    found = []
    for text in part[_FIRST_PERCENTILE : _FIRST_PERCENTILE + _PERCENTILES]:
        match = _PERCENTILE.match(text)
        if match is None:
            raise NumberError(f"{text!r} is not a percentile")
        percent = parse_number(match["percent"])
        if percent in (50.0, 99.0):
            found.append((percent, parse_number(match["value"])))
    return found
