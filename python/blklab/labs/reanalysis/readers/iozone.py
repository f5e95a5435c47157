"""``iozone``: its table, its throughput mode (-t) and its spreadsheet report (-R).

The table and the report of a run hold the same values; if a file has both, the table is read. iozone's
``kBytes`` is 2^10 bytes. The worksheet of -b holds the output of -R and is read as such.
"""

from __future__ import annotations

import re

from blklab.analysis.metrics import Better
from blklab.labs.reanalysis.readers.iozone_report import THROUGHPUT_TITLE, TITLE, read_report
from blklab.labs.reanalysis.readers.numbers import NUMBER, NumberError, parse_number, shown
from blklab.labs.reanalysis.readers.protocol import ReaderOptions, Reading, Source
from blklab.labs.reanalysis.readers.scheduler_file import SCHEDULERS
from blklab.labs.reanalysis.readers.times import local_time_s

NAME = "iozone"
SUMMARY = "iozone's table, its -t mode, the report of -R and the worksheet of -b"

TESTS = (
    "write",
    "rewrite",
    "read",
    "reread",
    "random read",
    "random write",
    "bkwd read",
    "record rewrite",
    "stride read",
    "fwrite",
    "frewrite",
    "fread",
    "freread",
)
"""Columns of the table from left to right (iozone 3.x)."""

_ENDS = {
    "kB": (33, 42, 51, 60, 69, 78, 87, 97, 107, 116, 125, 134, 143),
    "KB": (32, 40, 48, 57, 65, 73, 81, 90, 99, 108, 117, 125, 134),
}
"""Where the values of each column end, by the heading of the sizes: older versions write KB."""
_HEADING = re.compile(r"^\s*(?P<sizes>[kK]B)\s+reclen\s+write\b")
_UPPER_HEADING = re.compile(r"^\s*random\s+random\b")
_ROW = re.compile(r"^\s*\d+\s+\d+(?:\s+\d+)*\s*$")
_ROW_DAMAGED = re.compile(r"^\s*\d+\s+\d+\s+\S")
_THROUGHPUT = re.compile(
    rf"^\s*(?P<who>Children|Parent) sees? throughput for\s+(?P<count>\d+)\s+(?P<test>[\w -]+?)\s*=\s*"
    rf"(?P<rate>{NUMBER}) (?P<unit>\S+)\s*$"
)
_THROUGHPUT_BEGIN = re.compile(r"^\s*Children sees? throughput for")
_OUTPUT_UNIT = re.compile(r"^\s*Output is in (?P<unit>.+?)\.?\s*$")
_RECORD = re.compile(r"^\s*Record Size (?P<size>\d+) [kK]B(?:ytes)?")

_UNITS: dict[str, tuple[str, Better]] = {
    "kBytes/sec": ("KiB/s", "higher"),
    "Kbytes/sec": ("KiB/s", "higher"),
    "kB/sec": ("KiB/s", "higher"),
    "KB/sec": ("KiB/s", "higher"),
    "KBytes/sec": ("KiB/s", "higher"),
    "operations per second": ("IO/s", "higher"),
    "ops/sec": ("IO/s", "higher"),
    "microseconds per operation": ("us", "lower"),
    "microseconds/op": ("us", "lower"),
}


def recognises(source: Source) -> bool:
    """Whether the file has a table heading, a line of the -t mode or a report title."""
    begins = (_HEADING, _THROUGHPUT_BEGIN, TITLE, THROUGHPUT_TITLE)
    return any(begin.match(line) for line in source.lines for begin in begins)


def read(source: Source, options: ReaderOptions) -> Reading:
    """Reads the tables in the order of the file, or the report if there is no table."""
    del options
    reading = Reading(
        chronological=True,
        roles={
            "scheduler": "level",
            "file_kB": "condition",
            "record_kB": "condition",
            "processes": "condition",
        },
    )
    has_table = any(_HEADING.match(line) or _THROUGHPUT_BEGIN.match(line) for line in source.lines)
    if not has_table:
        read_report(source, reading)
        return reading
    _read_tables(source, reading)
    if any(TITLE.match(line) or THROUGHPUT_TITLE.match(line) for line in source.lines):
        reading.notes.append(
            f"{source.name}: the spreadsheet report repeats the table and does not count again"
        )
    return reading


class _Tables:
    """Reads tables and throughput lines, line by line."""

    def __init__(self, source: Source, reading: Reading) -> None:
        self.source = source
        self.reading = reading
        self.unit: tuple[str, Better] | None = None
        self.factors: dict[str, str] = {}
        self.in_table = False
        self.sizes = "kB"

    def take(self, number: int, line: str) -> None:
        """Reads one line."""
        if self._heading(number, line) or self._setting(line):
            return
        if throughput := _THROUGHPUT.match(line):
            _throughput(self.reading, self.source, number, throughput, self.factors)
        elif _THROUGHPUT_BEGIN.match(line):
            self.reading.problem(
                self.source.at(number), "a line of the throughput test is truncated or damaged"
            )
        elif self.in_table and line.strip() and not _UPPER_HEADING.match(line):
            self._table_line(number, line)

    def _heading(self, number: int, line: str) -> bool:
        location = self.source.at(number)
        if output := _OUTPUT_UNIT.match(line):
            self.unit = _UNITS.get(output["unit"], ("", "higher"))
            if not self.unit[0]:
                self.reading.problem(location, f"unknown unit {shown(output['unit'])}: its table is not read")
            return True
        if not (heading := _HEADING.match(line)):
            return False
        self.in_table, self.sizes = True, heading["sizes"]
        if self.unit is None:
            self.unit = _UNITS["kBytes/sec"]
            self.reading.notes.append(f"{location}: no unit is printed; iozone's default KiB/s is assumed")
        return True

    def _setting(self, line: str) -> bool:
        if record := _RECORD.match(line):
            self.factors["record_kB"] = record["size"]
        elif schedulers := SCHEDULERS.match(line.strip()):
            self.factors["scheduler"] = schedulers["active"]
        elif "Run began:" in line and (began_s := local_time_s(line)) is not None:
            self.reading.times_s.append(began_s)
        else:
            return False
        return True

    def _table_line(self, number: int, line: str) -> None:
        if _ROW_DAMAGED.match(line):
            self._row(number, line, self.unit or ("", "higher"))
        elif "iozone test complete" in line:
            self.in_table = False
        else:
            self.reading.skipped_lines.append(number)

    def _row(self, number: int, line: str, unit: tuple[str, Better]) -> None:
        location = self.source.at(number)
        if not unit[0]:
            return
        if not _ROW.match(line):
            self.reading.problem(location, "a row of the table has text that is not a whole number")
            return
        found = [(match[0], match.end()) for match in re.finditer(r"\d+", line)]
        file_size, record_size = found[0][0], found[1][0]
        printed = found[2:]
        tests = _columns(printed, self.sizes)
        if tests is None:
            self.reading.problem(
                location, f"{len(printed)} values whose columns cannot be determined: {len(TESTS)} are needed"
            )
            return
        levels = {**self.factors, "file_kB": file_size, "record_kB": record_size}
        try:
            values = [parse_number(text) for text, _ in printed]
        except NumberError as error:
            self.reading.problem(location, f"the row is not read: {error}")
            return
        for test, value in zip(tests, values, strict=True):
            self.reading.add(test, value, unit[0], unit[1], levels, location)


def _read_tables(source: Source, reading: Reading) -> None:
    tables = _Tables(source, reading)
    for number, line in enumerate(source.lines, start=1):
        tables.take(number, line)
    if tables.in_table and not any("iozone test complete" in line for line in source.lines):
        reading.notes.append(
            f"{source.name}: the line that iozone prints at its end is missing: rows may be missing too"
        )


def _throughput(
    reading: Reading, source: Source, number: int, match: re.Match[str], factors: dict[str, str]
) -> None:
    if match["who"] == "Parent":
        return
    unit = _UNITS.get(match["unit"])
    if unit is None:
        reading.problem(source.at(number), f"unknown unit {match['unit']!r}")
        return
    test = match["test"].strip()
    levels = {**factors, "processes": match["count"]}
    reading.add_printed(test, match["rate"], unit[0], unit[1], levels, source.at(number))


def _columns(printed: list[tuple[str, int]], sizes: str) -> list[str] | None:
    """The tests of a row's values: all tests, or those in whose columns the values end; None if unclear."""
    if len(printed) == len(TESTS):
        return list(TESTS)
    for ends in (_ENDS[sizes], *_ENDS.values()):
        if printed and all(end in ends for _, end in printed):
            return [TESTS[ends.index(end)] for _, end in printed]
    return None
