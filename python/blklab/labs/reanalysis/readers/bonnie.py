"""bonnie++'s CSV lines: version 1.03 (27 fields) and the formats with a version number, 1.96 to 1.98.

A field ``+++++`` means that the test ended too soon to be measured: the value is missing, not large.
``K/sec`` is 2^10 bytes per second.
"""

from __future__ import annotations

import re

from blklab.analysis.metrics import Better
from blklab.labs.reanalysis.readers.numbers import shown
from blklab.labs.reanalysis.readers.protocol import ReaderOptions, Reading, Source

NAME = "bonnie"
SUMMARY = "bonnie++'s CSV lines of 1.03 and of 1.96 to 2.00"

_RATES = ("putc", "put_block", "rewrite", "getc", "get_block")
_FILE_TESTS = ("seq_create", "seq_stat", "seq_del", "ran_create", "ran_stat", "ran_del")
_LATENCIES = (
    *(f"{name} latency" for name in (*_RATES, "seeks")),
    *(f"{name} latency" for name in _FILE_TESTS),
)
_VERSIONED = re.compile(r"^(?P<format>1\.9[678]),(?P<program>[\d.]+\w*),")
_OLD = re.compile(r"^[^,\s][^,]*,\d+[kKmMgG]?(?::\d+[kKmMgG]?)?,(?:\d+|\++)?,")
_HEADING = re.compile(r"^format_version,|^name,file_size,")
_LATENCY = re.compile(r"^(?P<value>\d+)(?P<unit>us|ms|s)$")
_MILLISECONDS = {"us": 1e-3, "ms": 1.0, "s": 1e3}

_OLD_FIELDS = 27
_FIELDS_OF_FORMAT = {"1.96": 48, "1.97": 48, "1.98": 50}
_FIRST_VALUE = {"1.96": 7, "1.97": 7, "1.98": 9}
"""Format 1.98 adds the size of a random read and the number of seeking processes."""


def recognises(source: Source) -> bool:
    """Whether the file has a CSV line of either kind."""
    return any(
        _VERSIONED.match(line) or (_OLD.match(line) and line.count(",") == _OLD_FIELDS - 1)
        for line in source.lines
    )


def read(source: Source, options: ReaderOptions) -> Reading:
    """Reads rates in KiB/s, seeks and file operations per second, latencies in ms."""
    del options
    reading = Reading(
        chronological=True,
        roles={"name": "level", "size": "condition", "concurrency": "condition", "version": "condition"},
    )
    for number, line in enumerate(source.lines, start=1):
        stripped = line.strip()
        if versioned := _VERSIONED.match(stripped):
            _versioned(reading, source, number, stripped.split(","), versioned["format"])
        elif _OLD.match(stripped):
            _old(reading, source, number, stripped.split(","))
        elif stripped and not _HEADING.match(stripped):
            reading.skipped_lines.append(number)
    return reading


def _old(reading: Reading, source: Source, number: int, fields: list[str]) -> None:
    if len(fields) != _OLD_FIELDS:
        reading.problem(source.at(number), f"{len(fields)} fields; version 1.03 has {_OLD_FIELDS}")
        return
    levels = {"name": fields[0], "size": fields[1], "version": "1.03"}
    _rates(reading, source, number, fields[2:14], levels)
    _file_tests(reading, source, number, fields[15:27], levels)


def _versioned(reading: Reading, source: Source, number: int, fields: list[str], version: str) -> None:
    wanted = _FIELDS_OF_FORMAT[version]
    if len(fields) != wanted:
        reading.problem(source.at(number), f"{len(fields)} fields; format {version} has {wanted}")
        return
    levels = {"name": fields[2], "concurrency": fields[3], "size": fields[5], "version": version}
    start = _FIRST_VALUE[version]
    _rates(reading, source, number, fields[start : start + 12], levels)
    _file_tests(reading, source, number, fields[start + 17 : start + 29], levels)
    for metric, text in zip(_LATENCIES, fields[start + 29 :], strict=True):
        if not text:
            continue
        match = _LATENCY.match(text)
        if match is None:
            reading.problem(source.at(number), f"{metric}: {shown(text)} is not a time")
            continue
        factor = _MILLISECONDS[match["unit"]]
        reading.add_printed(metric, match["value"], "ms", "lower", levels, source.at(number), factor=factor)


def _rates(reading: Reading, source: Source, number: int, fields: list[str], levels: dict[str, str]) -> None:
    for metric, text in zip(_RATES, fields[0:10:2], strict=True):
        _add_value(reading, source, number, metric, text, "KiB/s", "higher", levels)
    _add_value(reading, source, number, "seeks", fields[10], "1/s", "higher", levels)


def _file_tests(
    reading: Reading, source: Source, number: int, fields: list[str], levels: dict[str, str]
) -> None:
    for metric, text in zip(_FILE_TESTS, fields[0:12:2], strict=True):
        _add_value(reading, source, number, metric, text, "1/s", "higher", levels)


def _add_value(
    reading: Reading,
    source: Source,
    number: int,
    metric: str,
    text: str,
    unit: str,
    better: Better,
    levels: dict[str, str],
) -> None:
    location = source.at(number)
    if not text:
        return
    if set(text) == {"+"}:
        reading.notes.append(f"{location}: {metric} ended too soon to be measured (bonnie++ writes +++++)")
        return
    reading.add_printed(metric, text, unit, better, levels, location, decimal=".")
