"""The spreadsheet report that ``iozone -R`` prints and -b writes as a worksheet.

It has one block per test with record sizes as columns; in throughput mode one line per test, with numbers of
processes as columns. The command line, with which a worksheet begins, gives the unit of the values.
"""

from __future__ import annotations

import getopt
import re
import shlex

from blklab.analysis.metrics import Better
from blklab.labs.reanalysis.readers.numbers import shown
from blklab.labs.reanalysis.readers.protocol import Location, Reading, Source

TITLE = re.compile(r'^"(?P<title>[\w -]+?) [Rr]eport"\s*$')
THROUGHPUT_TITLE = re.compile(r'^"Throughput report Y-axis is type of test')
_RECORD_SIZES = re.compile(r'^\s+(?:"\d+"\s*)+$')
_FILE_ROW = re.compile(r'^"(?P<file>\d+)"(?P<values>(?:\s+\d+)*)\s*$')
_FILE_ROW_BEGIN = re.compile(r'^"\d')
_TESTS = {
    "writer": "write",
    "re-writer": "rewrite",
    "reader": "read",
    "re-reader": "reread",
    "random read": "random read",
    "random write": "random write",
    "backward read": "bkwd read",
    "record rewrite": "record rewrite",
    "stride read": "stride read",
    "fwrite": "fwrite",
    "re-fwrite": "frewrite",
    "fread": "fread",
    "re-fread": "freread",
}
_THROUGHPUT_TESTS = {
    "initial write": "initial writers",
    "rewrite": "rewriters",
    "read": "readers",
    "re-read": "re-readers",
    "reverse read": "reverse readers",
    "stride read": "stride readers",
    "random read": "random readers",
    "mixed workload": "mixed workload",
    "random write": "random writers",
    "pwrite": "pwrite writers",
    "pread": "pread readers",
    "fwrite": "fwriters",
    "fread": "freaders",
}
"""Names in the report, and the names of the same tests in the lines of -t."""
_THROUGHPUT_ROW = re.compile(r'^"\s*(?P<test>[A-Za-z][A-Za-z -]*?)\s*"(?P<values>(?:\s+[\d.]+)+)\s*$')
_THROUGHPUT_ROW_BEGIN = re.compile(r'^"\s*[A-Za-z][A-Za-z -]*"\s*[\d.]')
_RECORD = re.compile(r'^"Record size = (?P<size>\d+) kBytes\s*"')
_OUTPUT = re.compile(r'^"Output is in (?P<unit>[^"]+?)\s*"')
_REMARK = re.compile(r'^(?:" "|"The top row is records? sizes.*"|Excel output is below:)$')
_COMMAND = re.compile(r'^(?:\s*Command line used: |")(?P<words>\S*iozone [^"]*)')
_FLAGS, _WITH_VALUE = "ABCDEGIKMNOQRTWZacehmopvwxz", "FHJLPSUVXYbdfgijklnqrstuy+"
"""Options of iozone 3 without and with an argument."""
_UNITS: dict[str, tuple[str, Better]] = {
    "kBytes/sec": ("KiB/s", "higher"),
    "ops/sec": ("IO/s", "higher"),
    "microseconds/op": ("us", "lower"),
}


def read_report(source: Source, reading: Reading) -> None:
    """Adds the report's values; a zero marks a size that iozone left out."""
    report = _Report(source, reading)
    for number, line in enumerate(source.lines, start=1):
        report.take(number, line)
    for note in report.notes:
        reading.notes.append(f"{source.name}: {note}")


class _Report:
    """Reads a report line by line."""

    def __init__(self, source: Source, reading: Reading) -> None:
        self.source = source
        self.reading = reading
        self.unit: tuple[str, Better] | None = _UNITS["kBytes/sec"]
        self.notes = ["a report of -R; iozone's default unit KiB/s is assumed"]
        self.processes: list[str] = []
        self.test: str | None = None
        self.records: list[str] = []
        self.record_of_throughput: dict[str, str] | None = None
        """Further levels of a throughput report; None outside such a report."""

    def take(self, number: int, line: str) -> None:
        """Reads one line."""
        location = self.source.at(number)
        if command := _COMMAND.match(line):
            self._command(command["words"], location)
        elif THROUGHPUT_TITLE.match(line):
            self.test, self.record_of_throughput = None, {}
        elif title := TITLE.match(line):
            self.test, self.records = _TESTS.get(title["title"].lower()), []
            self.record_of_throughput = None
            if self.test is None:
                self.reading.problem(
                    location, f"unknown report {shown(title['title'])}: its block is not read"
                )
        elif self.record_of_throughput is not None and line.strip():
            self._throughput(location, line, self.record_of_throughput)
        elif self.test is not None and _RECORD_SIZES.match(line):
            self.records = re.findall(r'"(\d+)"', line)
        elif self.test is not None and _FILE_ROW_BEGIN.match(line):
            self._file_row(location, line, self.test)
        elif line.strip() and not _REMARK.match(line):
            self.reading.skipped_lines.append(number)

    def _command(self, words: str, location: Location) -> None:
        try:
            options, _ = getopt.gnu_getopt(shlex.split(words)[1:], _FLAGS + ":".join(_WITH_VALUE) + ":")
        except (ValueError, getopt.GetoptError):
            self.reading.problem(location, f"cannot parse the command line {shown(words)}")
            self.unit = None
            return
        given = dict(options)
        what = "ops/sec" if "-O" in given else "microseconds/op" if "-N" in given else "kBytes/sec"
        self.unit, self.notes = _UNITS[what], []
        fewest, most = (given.get(name, given.get("-t", "")) for name in ("-l", "-u"))
        if fewest.isdecimal() and most.isdecimal() and len(fewest) < 6 and len(most) < 6:
            self.processes = [str(count) for count in range(int(fewest), int(most) + 1)]

    def _file_row(self, location: Location, line: str, test: str) -> None:
        row = _FILE_ROW.match(line)
        values = row["values"].split() if row else []
        # In automatic mode a row ends where the record would exceed the file.
        fitting = [record for record in self.records if row and int(record) <= int(row["file"])]
        if row is None or not values or len(values) not in (len(self.records), len(fitting)):
            sizes = len(self.records)
            self.reading.problem(location, f"{test}: {len(values)} values for {sizes} record sizes")
            return
        for record, value in zip(self.records, values, strict=False):
            if value.strip("0"):
                self._add(test, value, {"file_kB": row["file"], "record_kB": record}, location)

    def _throughput(self, location: Location, line: str, levels: dict[str, str]) -> None:
        if record := _RECORD.match(line):
            levels["record_kB"] = record["size"]
        elif output := _OUTPUT.match(line):
            self.unit, self.notes = _UNITS.get(output["unit"]), []
            if self.unit is None:
                self.reading.problem(
                    location, f"unknown unit {shown(output['unit'])}: its report is not read"
                )
        elif row := _THROUGHPUT_ROW.match(line):
            test, values = _THROUGHPUT_TESTS.get(row["test"].lower()), row["values"].split()
            if test is None:
                self.reading.problem(location, f"unknown test {shown(row['test'])}")
            elif len(values) != (len(self.processes) or 1):
                counts = len(self.processes) or "unknown"
                self.reading.problem(
                    location, f"{test}: {len(values)} values for {counts} numbers of processes"
                )
            else:
                for value, count in zip(values, self.processes or [""], strict=True):
                    self._add(test, value, {**levels, "processes": count} if count else levels, location)
        elif _THROUGHPUT_ROW_BEGIN.match(line):
            self.reading.problem(location, "a line of the throughput report is truncated or damaged")
        else:
            self.reading.skipped_lines.append(location.line or 0)

    def _add(self, test: str, value: str, levels: dict[str, str], location: Location) -> None:
        if self.unit is not None:
            self.reading.add_printed(test, value, *self.unit, levels, location)
