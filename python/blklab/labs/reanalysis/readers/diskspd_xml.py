"""DISKSPD's XML results (``-Rxml``): the sums over its threads, and its percentiles.

The file has bytes, counts and the time of the test in hundredths of a second; rates follow from these.
They may differ from DISKSPD's text in the fourth digit of a short test. Settings are the first target's.
"""

from __future__ import annotations

from xml.parsers import expat

from blklab.analysis.metrics import Better
from blklab.labs.reanalysis.readers.numbers import NumberError, parse_number
from blklab.labs.reanalysis.readers.protocol import Location, ReaderOptions, Reading, Source
from blklab.labs.reanalysis.readers.xml_events import ElementHandler, parse_elements

NAME = "diskspd-xml"
SUMMARY = "DISKSPD's XML results (-Rxml)"

_SETTINGS = {
    "BlockSize": "block",
    "RequestCount": "depth",
    "ThreadsPerFile": "threads",
    "WriteRatio": "write_percent",
    "Random": "random",
}
_LATENCIES = {
    "AverageReadMilliseconds": "read",
    "AverageWriteMilliseconds": "write",
    "AverageTotalMilliseconds": "total",
}
_PERCENTILES = {"50": "latency p50", "99": "latency p99", "100": "maximum latency"}
_OF_PERCENTILE = {"ReadMilliseconds": "read", "WriteMilliseconds": "write", "TotalMilliseconds": "total"}
_LEAST_SECONDS = 1e-2


def recognises(source: Source) -> bool:
    """Whether the file has DISKSPD's elements."""
    head = source.text[:4096]
    return "<Results>" in head and ("<Tool>" in head or "<TimeSpan>" in head or "<System>" in head)


class _DiskspdHandler(ElementHandler):
    """Parses the elements, and adds the values of each timespan at its end."""

    def __init__(self, parser: expat.XMLParserType, source: Source, reading: Reading) -> None:
        super().__init__(parser, source, reading)
        self.settings: dict[str, str] = {}
        self.seconds: float | None = None
        self.sums: dict[str, float] = {}
        self.percentile = ""

    def began(self, name: str) -> None:
        del name
        if self.path == ["Results", "TimeSpan"]:
            self.seconds, self.sums = None, {}

    def ended(self, name: str, text: str) -> None:
        within, parent = self.path[1:2], self.path[-1] if self.path else ""
        if within == ["Profile"]:
            if name in _SETTINGS and text:
                self.settings.setdefault(_SETTINGS[name], text)
            elif name == "Path" and parent == "Target":
                self.settings.setdefault("path", text)
        elif within == ["TimeSpan"] and parent == "TimeSpan" and name == "TestTimeSeconds":
            self.seconds = self._number(name, text)
        elif within == ["TimeSpan"] and parent == "Target" and name in _SUMMED:
            self.sums[name] = self.sums.get(name, 0.0) + (self._number(name, text) or 0.0)
        elif self.path[1:] == ["TimeSpan", "Latency"] and name in _LATENCIES:
            self._add("mean latency", text, _LATENCIES[name])
        elif self.path[1:] == ["TimeSpan", "Latency", "Bucket"]:
            if name == "Percentile":
                self.percentile = text
            elif name in _OF_PERCENTILE and self.percentile in _PERCENTILES:
                self._add(_PERCENTILES[self.percentile], text, _OF_PERCENTILE[name])
        elif name == "Error":
            self.reading.problem(self._here, text or "the test was interrupted")
        elif name == "TimeSpan" and self.path == ["Results"]:
            self._end_of_timespan()

    @property
    def _here(self) -> Location:
        return self.source.at(self.parser.CurrentLineNumber)

    def _number(self, name: str, text: str) -> float | None:
        try:
            return parse_number(text, ".")
        except NumberError as error:
            self.reading.problem(self._here, f"{name}: {error}")
            return None

    def _add(self, metric: str, text: str, direction: str) -> None:
        levels = {**self.settings, "direction": direction}
        self.reading.add_printed(metric, text, "ms", "lower", levels, self._here, decimal=".")

    def _end_of_timespan(self) -> None:
        if self.seconds is None or self.seconds < _LEAST_SECONDS:
            self.reading.problem(self._here, "this timespan has no TestTimeSeconds")
            return
        higher: Better = "higher"
        directions = {"read": ("Read",), "write": ("Write",), "total": ("Read", "Write")}
        for direction, parts in directions.items():
            count = sum(self.sums.get(f"{part}Count", 0.0) for part in parts)
            transferred = sum(self.sums.get(f"{part}Bytes", 0.0) for part in parts)
            levels = {**self.settings, "direction": direction}
            if count > 0:
                self.reading.add("IOPS", count / self.seconds, "IO/s", higher, levels, self._here)
                rate = transferred / self.seconds / 2**20
                self.reading.add("throughput", rate, "MiB/s", higher, levels, self._here)


_SUMMED = ("ReadBytes", "WriteBytes", "ReadCount", "WriteCount")


def read(source: Source, options: ReaderOptions) -> Reading:
    """Reads every timespan; damage becomes a problem, and the timespans before it are kept."""
    del options
    reading = Reading(chronological=True, roles={"path": "level", "direction": "condition"})
    reading.roles.update(dict.fromkeys(_SETTINGS.values(), "setting"))
    parser = expat.ParserCreate("utf-8")
    parse_elements(parser, _DiskspdHandler(parser, source, reading), source, reading, "DISKSPD")
    return reading
