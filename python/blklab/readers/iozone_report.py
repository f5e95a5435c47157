"""The report that ``iozone -R`` prints for spreadsheets: one block a test, record sizes across."""

from __future__ import annotations

import re

from blklab.readers.numbers import NumberError, parse_number, shown
from blklab.readers.protocol import Reading, Source

TITLE = re.compile(r'^"(?P<title>[\w -]+?) report"\s*$')
_RECORD_SIZES = re.compile(r'^\s+(?:"\d+"\s*)+$')
_FILE_ROW = re.compile(r'^"(?P<file>\d+)"(?P<figures>(?:\s+\d+)*)\s*$')
_FILE_ROW_BEGIN = re.compile(r'^"\d')
_TESTS = {
    "Writer": "write",
    "Re-writer": "rewrite",
    "Reader": "read",
    "Re-Reader": "reread",
    "Re-reader": "reread",
    "Random read": "random read",
    "Random write": "random write",
    "Backward read": "bkwd read",
    "Record rewrite": "record rewrite",
    "Stride read": "stride read",
    "Fwrite": "fwrite",
    "Re-Fwrite": "frewrite",
    "Re-fwrite": "frewrite",
    "Fread": "fread",
    "Re-Fread": "freread",
    "Re-fread": "freread",
}


def read_report(source: Source, reading: Reading) -> None:
    """Adds the report's figures; zeros stand for sizes that iozone left out."""
    test: str | None = None
    records: list[str] = []
    reading.notes.append(f"{source.name}: a report of -R; its figures are taken as KiB/s, iozone's default")
    for number, line in enumerate(source.lines, start=1):
        place = source.at(number)
        if title := TITLE.match(line):
            test, records = _TESTS.get(title["title"]), []
            if test is None:
                reading.problem(place, f"unknown report {shown(title['title'])}: its block is not read")
        elif test is not None and _RECORD_SIZES.match(line):
            records = re.findall(r'"(\d+)"', line)
        elif test is not None and _FILE_ROW_BEGIN.match(line):
            row = _FILE_ROW.match(line)
            figures = row["figures"].split() if row else []
            if row is None or len(figures) != len(records):
                reading.problem(place, f"{test}: {len(figures)} figures for {len(records)} record sizes")
                continue
            for record, figure in zip(records, figures, strict=True):
                try:
                    value = parse_number(figure)
                except NumberError as error:
                    reading.problem(place, f"{test}: {error}")
                    continue
                if value > 0:
                    levels = {"file_kB": row["file"], "record_kB": record}
                    reading.add(test, value, "KiB/s", "higher", levels, place)
        elif line.strip():
            reading.skipped_lines.append(number)
