"""elbencho's CSV results (``--csvfile``): one row for each operation, columns by their headings.

The fields are those of elbencho's documentation of its CSV file. Latencies of ``IO`` are of blocks, those of
``Ent`` of whole files or directories. A field without a value is empty.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator

from blklab.analysis.metrics import Better
from blklab.labs.reanalysis.readers.elbencho import FIRST_DONE
from blklab.labs.reanalysis.readers.protocol import ReaderOptions, Reading, Role, Source
from blklab.labs.reanalysis.readers.times import local_time_s

NAME = "elbencho-csv"
SUMMARY = "elbencho's CSV results (--csvfile)"

_FACTORS: dict[str, tuple[str, Role]] = {
    "label": ("label", "level"),
    "operation": ("operation", "condition"),
    "hosts": ("hosts", "setting"),
    "threads": ("threads", "setting"),
    "dirs": ("dirs", "setting"),
    "files": ("files", "setting"),
    "file size": ("file_size", "setting"),
    "block size": ("block", "setting"),
    "direct IO": ("direct", "setting"),
    "random": ("random", "setting"),
    "IO depth": ("io_depth", "setting"),
}
"""Columns of settings, with the names of their factors."""
_RATES = {
    "IOPS": ("IOPS", "IO/s"),
    "MiB/s": ("throughput", "MiB/s"),
    "MB/s": ("throughput", "MB/s"),
    "entries/s": ("entries/s", ""),
}
_LATENCIES = {"avg": "mean latency", "max": "maximum latency"}
_OF_READS = "rwmix read "
"""Before the names of the columns that hold the reads of a mixed phase."""
_NEEDED = ("operation", "time ms [last]", "IOPS [last]")


def recognises(source: Source) -> bool:
    """Whether the first line has elbencho's headings."""
    return _is_heading(source.text.split("\n", 1)[0].split(","))


def read(source: Source, options: ReaderOptions) -> Reading:
    """Reads the rates and latencies of all rows."""
    del options
    roles = dict(_FACTORS.values())
    reading = Reading(chronological=True, roles={**roles, "direction": "condition"})
    columns: list[str] = []
    for number, row in _rows(source):
        if _is_heading(row):
            columns = row
        elif not columns:
            reading.skipped_lines.append(number)
        elif len(row) != len(columns):
            reading.problem(source.at(number), f"{len(row)} fields under {len(columns)} headings")
        else:
            _row(reading, source, number, dict(zip(columns, row, strict=True)))
    return reading


def _is_heading(row: list[str]) -> bool:
    return all(name in row for name in _NEEDED)


def _rows(source: Source) -> Iterator[tuple[int, list[str]]]:
    """The rows with their numbers. elbencho ends each with a line feed, and writes none within."""
    for number, line in enumerate(source.lines, start=1):
        if line.strip():
            try:
                yield number, next(csv.reader([line], strict=True))
            except csv.Error:
                yield number, []


def _row(reading: Reading, source: Source, number: int, cells: dict[str, str]) -> None:
    if (began_s := local_time_s(cells.get("ISO date", ""))) is not None:
        reading.times_s.append(began_s)
    factors = {name: cells[column] for column, (name, _) in _FACTORS.items() if cells.get(column)}
    mixed = any(cells.get(f"{_OF_READS}{name} [last]") for name in _RATES)
    for prefix, direction in (("", "write"), (_OF_READS, "read")):
        levels = {**factors, "direction": direction} if mixed else factors
        for column, (metric, unit) in _RATES.items():
            for which, suffix in (("last", ""), ("first", FIRST_DONE)):
                name = f"{prefix}{column} [{which}]"
                _cell(reading, source, number, cells.get(name, ""), metric + suffix, unit, "higher", levels)
        for what in ("IO", "Ent"):
            for key, metric in _LATENCIES.items():
                value = cells.get(f"{prefix}{what} lat us [{key}]", "")
                _cell(reading, source, number, value, f"{what} {metric}", "us", "lower", levels)


def _cell(
    reading: Reading,
    source: Source,
    number: int,
    value: str,
    metric: str,
    unit: str,
    better: Better,
    levels: dict[str, str],
) -> None:
    if value.strip():
        reading.add_printed(metric, value, unit, better, levels, source.at(number), decimal=".")
