"""DISKSPD's text results, any number of runs: the totals of reads, writes and both, and their percentiles.

Its KiB and MiB are powers of two, its latencies milliseconds. Columns are taken by their headings, since some
appear only with the options that measure them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from blklab.analysis.metrics import Better
from blklab.labs.reanalysis.readers.protocol import ReaderOptions, Reading, Source

NAME = "diskspd"
SUMMARY = "DISKSPD's text results, any number of runs"

_COMMAND = re.compile(r"^Command Line: ")
_RESULTS = re.compile(r"^Results for timespan (?P<number>\d+):$")
_SETTINGS = (
    ("block", re.compile(r"^block size: (?P<value>\S+)$")),
    ("offsets", re.compile(r"^using (?P<value>random|sequential|mixed|interlocked sequential) I/O\b")),
    ("depth", re.compile(r"^number of outstanding I/O operations(?: per thread)?: (?P<value>\d+)$")),
    ("threads", re.compile(r"^thread count:\s+(?P<value>\d+)$")),
    ("cache", re.compile(r"^(?P<value>software cache disabled|using software cache.*)$")),
    ("mix", re.compile(r"^performing (?P<value>(?:read|write) test|mix test \(.+\))$")),
)
_PATH = re.compile(r"^path: '(?P<path>.+)'$")
_SECTION = re.compile(r"^(?P<direction>Total|Read|Write) IO$")
_HEADING = re.compile(r"^thread \|")
_TOTAL = re.compile(r"^total:\s+\d")
_COLUMNS = {
    "MiB/s": ("throughput", "MiB/s", re.compile(r"\d+\.\d\d")),
    "I/O per s": ("IOPS", "IO/s", re.compile(r"\d+\.\d\d")),
    "AvgLat": ("mean latency", "ms", re.compile(r"\d+\.\d\d\d")),
}
"""Columns with their metrics and forms: a figure with fewer decimals is cut off."""
_PERCENTILES_BEGIN = re.compile(r"^(?:total )?(?:latency distribution:)?\s*%-ile \|", re.IGNORECASE)
_PERCENTILE = re.compile(r"^(?P<name>50th|99th|max) \|(?P<cells>.+)$")
_PERCENTILE_METRICS = {"50th": "latency p50", "99th": "latency p99", "max": "maximum latency"}
_MILLISECONDS = re.compile(r"\d+\.\d\d\d")


def recognises(source: Source) -> bool:
    """Whether a line begins the results of a timespan."""
    return any(_RESULTS.match(line.strip()) for line in source.lines)


@dataclass
class _DiskspdRun:
    """The run whose lines are being read."""

    line: int
    factors: dict[str, str] = field(default_factory=dict)
    paths: list[str] = field(default_factory=list)
    begun: bool = False
    totals: set[str] = field(default_factory=set)
    direction: str | None = None
    columns: list[str] = field(default_factory=list)
    percentile_columns: list[str] = field(default_factory=list)
    measures_latency: bool = False
    has_maximum: bool = False
    """The last line of the percentiles was there."""

    @property
    def levels(self) -> dict[str, str]:
        """All factors of a value."""
        path = {"path": ", ".join(dict.fromkeys(self.paths))} if self.paths else {}
        return {**self.factors, **path}


def read(source: Source, options: ReaderOptions) -> Reading:
    """Reads the totals and percentiles of all runs."""
    del options
    reading = Reading(chronological=True, roles={"path": "level", "direction": "condition"})
    reading.roles.update({name: "setting" for name, _ in _SETTINGS})
    run = _DiskspdRun(1)
    for number, line in enumerate(source.lines, start=1):
        stripped = line.strip()
        if _COMMAND.match(stripped):
            _close(reading, source, run)
            run = _DiskspdRun(number)
        elif _RESULTS.match(stripped):
            if run.begun:
                # A further timespan of the same command.
                _close(reading, source, run)
                measures = run.measures_latency
                run = _DiskspdRun(number, run.factors, run.paths, measures_latency=measures)
            run.begun, run.line = True, number
        elif stripped == "measuring latency":
            run.measures_latency = True
        elif path := _PATH.match(stripped):
            run.paths.append(path["path"])
        elif setting := next(
            ((name, match) for name, form in _SETTINGS if (match := form.match(stripped))), None
        ):
            run.factors = {**run.factors, setting[0]: setting[1]["value"]}
        elif run.begun:
            _result(reading, source, number, stripped, run)
    _close(reading, source, run)
    return reading


def _result(reading: Reading, source: Source, number: int, line: str, run: _DiskspdRun) -> None:
    """Reads a line of a run's tables."""
    if section := _SECTION.match(line):
        run.direction, run.columns = section["direction"].lower(), []
    elif _HEADING.match(line):
        run.columns = _cells(line)[1:]
    elif _TOTAL.match(line) and run.direction:
        _totals(reading, source, number, _cells(line.partition(":")[2]), run)
        run.totals.add(run.direction)
    elif _PERCENTILES_BEGIN.match(line):
        run.percentile_columns = [cell.partition(" ")[0].lower() for cell in _cells(line)[1:]]
    elif (percentile := _PERCENTILE.match(line)) and run.percentile_columns:
        run.has_maximum = run.has_maximum or percentile["name"] == "max"
        cells = _cells(percentile["cells"])
        if len(cells) != len(run.percentile_columns):
            reading.problem(source.at(number), "a line of percentiles is truncated or damaged")
            return
        for direction, cell in zip(run.percentile_columns, cells, strict=True):
            if cell != "N/A":
                metric = _PERCENTILE_METRICS[percentile["name"]]
                _figure(reading, source, number, cell, metric, "ms", _MILLISECONDS, direction, run)


def _totals(reading: Reading, source: Source, number: int, cells: list[str], run: _DiskspdRun) -> None:
    # The last column names files, which a total has not.
    columns = run.columns[:-1] if run.columns[-1:] == ["file"] else run.columns
    if not columns or len(cells) != len(columns):
        reading.problem(source.at(number), f"the total of {run.direction} I/O is truncated or has no heading")
        return
    row = dict(zip(columns, cells, strict=True))
    if row.get("I/Os") == "0":
        return
    for name, (metric, unit, form) in _COLUMNS.items():
        if name in row:
            _figure(reading, source, number, row[name], metric, unit, form, run.direction or "", run)


def _figure(
    reading: Reading,
    source: Source,
    number: int,
    text: str,
    metric: str,
    unit: str,
    form: re.Pattern[str],
    direction: str,
    run: _DiskspdRun,
) -> None:
    if not form.fullmatch(text):
        reading.problem(source.at(number), f"{metric} of {direction} I/O is truncated or damaged")
        return
    better: Better = "lower" if unit == "ms" else "higher"
    levels = {**run.levels, "direction": direction}
    reading.add_printed(metric, text, unit, better, levels, source.at(number), decimal=".")


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")]


def _close(reading: Reading, source: Source, run: _DiskspdRun) -> None:
    if run.begun and run.totals != {"total", "read", "write"}:
        reading.problem(source.at(run.line), "this run does not end: a table of its totals is missing")
    elif run.begun and run.measures_latency and not run.has_maximum:
        reading.problem(source.at(run.line), "this run does not end: its percentiles are cut off")
