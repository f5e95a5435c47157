"""Result files of the Phoronix Test Suite (``composite.xml``), after its schema result-file.xsd.

``RawString`` holds every run of a test, separated by colons; the reader uses these values, not their mean. An
entry without them counts as one run.
"""

from __future__ import annotations

from xml.parsers import expat

from blklab.analysis.metrics import Better
from blklab.labs.reanalysis.readers.numbers import NumberError, parse_number
from blklab.labs.reanalysis.readers.protocol import ReaderOptions, Reading, Source
from blklab.labs.reanalysis.readers.xml_events import ElementHandler, parse_elements

NAME = "phoronix"
SUMMARY = "result files of the Phoronix Test Suite (XML): each run of each test"

_UNITS = {
    "mb/s": "MB/s",
    "mib/s": "MiB/s",
    "gb/s": "GB/s",
    "iops": "IO/s",
    "ms": "ms",
    "us": "us",
    "microseconds": "us",
    "milliseconds": "ms",
    "seconds": "s",
}
_BETTER: dict[str, Better] = {"HIB": "higher", "LIB": "lower"}


def recognises(source: Source) -> bool:
    """Whether the file has the suite's root element."""
    return "<PhoronixTestSuite" in source.text[:4096]


class _Handler(ElementHandler):
    """Parses the elements and keeps those of results."""

    def __init__(self, parser: expat.XMLParserType, source: Source, reading: Reading) -> None:
        super().__init__(parser, source, reading)
        self.result: dict[str, str] = {}
        self.entry: dict[str, str] = {}
        self.entry_line = 0

    def began(self, name: str) -> None:
        if name == "Result":
            self.result = {}
        elif name == "Entry":
            self.entry = {}
            self.entry_line = self.parser.CurrentLineNumber

    def ended(self, name: str, text: str) -> None:
        parent = self.path[-1] if self.path else ""
        if parent == "Result":
            self.result[name] = text
        elif parent == "Entry":
            self.entry[name] = text
        elif name == "Entry":
            self._take()

    def _take(self) -> None:
        location = self.source.at(self.entry_line)
        test = self.result.get("Title") or self.result.get("Identifier") or "test"
        scale = self.result.get("Scale", "")
        levels = {
            "system": self.entry.get("Identifier", ""),
            "test": self.result.get("Identifier", ""),
            "description": self.result.get("Description", ""),
        }
        raw = [part for part in self.entry.get("RawString", "").split(":") if part.strip()]
        if not raw:
            value = self.entry.get("Value", "")
            if not value:
                self.reading.problem(location, f"{test}, {levels['system']}: no value")
                return
            raw = [value]
            self.reading.notes.append(f"{location}: {test}: the file has only the mean, not the single runs")
        for text in raw:
            try:
                value_read = parse_number(text, ".")
            except NumberError as error:
                self.reading.problem(location, f"{test}, {levels['system']}: {error}")
                continue
            self.reading.add(
                test,
                value_read,
                _UNITS.get(scale.lower(), scale),
                _BETTER.get(self.result.get("Proportion", "")),
                levels,
                location,
            )


def read(source: Source, options: ReaderOptions) -> Reading:
    """Reads every entry; damage becomes a problem, and the entries before it are kept."""
    del options
    reading = Reading(
        chronological=False, roles={"system": "level", "test": "condition", "description": "condition"}
    )
    parser = expat.ParserCreate("utf-8")
    parse_elements(parser, _Handler(parser, source, reading), source, reading, "the suite")
    return reading
