"""Plain tables with a heading line: CSV with commas, semicolons or tabs.

No tool defines the meaning of such a table, so the user names the columns of values. Every other column is a
factor; `blklab.labs.reanalysis.design` asks for its role.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator

from blklab.analysis.metrics import Better
from blklab.labs.reanalysis.readers.numbers import NumberError, parse_number, shown
from blklab.labs.reanalysis.readers.protocol import ReaderOptions, Reading, Source
from blklab.labs.reanalysis.readers.units import HIGHER_IS_BETTER, LOWER_IS_BETTER, unit_of_column

NAME = "csv"
SUMMARY = "a table with headings (comma, semicolon or tab); needs --value COLUMN"

_DELIMITERS = (",", ";", "\t")


def recognises(source: Source) -> bool:
    """Whether the first line has at least two headings and another line as many fields."""
    rows = list(itertools.islice(_rows(source, _delimiter(source)), 2))
    return len(rows) == 2 and len(rows[0][1]) > 1 and len(rows[0][1]) == len(rows[1][1])


def read(source: Source, options: ReaderOptions) -> Reading:
    """Reads the named value columns."""
    reading = Reading()
    delimiter = options.delimiter or _delimiter(source)
    rows = _rows(source, delimiter)
    _, headings = next(rows, (0, []))
    headings = [heading.strip() for heading in headings]
    lacking = [column for column in options.value_columns if column not in headings]
    if not options.value_columns or lacking:
        which = f"no column {shown(lacking[0])}" if lacking else "no value column is named (--value)"
        reading.problem(source.at(1), f"{which}; there are: {', '.join(map(shown, headings)) or 'none'}")
        return reading
    if twice := {heading for heading in headings if headings.count(heading) > 1}:
        reading.problem(source.at(1), f"the heading {shown(min(twice))} appears twice")
        return reading
    units = {column: options.unit or unit_of_column(column) or "" for column in options.value_columns}
    factors = [name for name in headings if name and name not in options.value_columns]
    for line, row in rows:
        if len(row) != len(headings):
            reading.problem(source.at(line), f"{len(row)} fields under {len(headings)} headings")
            continue
        cells = dict(zip(headings, (cell.strip() for cell in row), strict=True))
        levels = {name: cells[name] for name in factors}
        for column in options.value_columns:
            _cell(reading, source, line, column, cells[column], units[column], levels, options)
    return reading


def _cell(
    reading: Reading,
    source: Source,
    line: int,
    column: str,
    text: str,
    unit: str,
    levels: dict[str, str],
    options: ReaderOptions,
) -> None:
    if not text:
        reading.problem(source.at(line), f"{column}: the cell is empty")
        return
    try:
        value = parse_number(text, options.decimal, thousands_possible=True)
    except NumberError as error:
        reading.problem(source.at(line), f"{column}: {error}")
        return
    better = options.better or _better(unit)
    reading.add(column, value, unit, better, levels, source.at(line))


def _better(unit: str) -> Better | None:
    if unit in HIGHER_IS_BETTER:
        return "higher"
    return "lower" if unit in LOWER_IS_BETTER else None


def _delimiter(source: Source) -> str:
    """The separator that occurs most often in the headings."""
    first = next((line for line in source.lines if line.strip()), "")
    return max(_DELIMITERS, key=first.count)


def _rows(source: Source, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Non-empty rows, each with its first line."""

    def generate() -> Iterator[tuple[int, list[str]]]:
        reader = csv.reader(io.StringIO(source.text, newline=""), delimiter=delimiter)
        before = 0
        while True:
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error:
                # The field exceeds the limit of csv: its quote is never closed.
                yield before + 1, []
                return
            if any(cell.strip() for cell in row):
                yield before + 1, row
            before = reader.line_num

    return generate()
