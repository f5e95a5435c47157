"""``ioping``: the statistics at its end, any number of runs in one log.

The first request warms up and is not in ioping's statistics. Its ``KiB`` and ``MiB`` are powers of two; older
versions write ``kb/s`` and ``mb/s`` for the same.

Requests without statistics below them are the rest of a run that was cut off. A log that ends behind complete
statistics may lack further runs, which nothing in it tells.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from blklab.labs.reanalysis.readers.numbers import NUMBER
from blklab.labs.reanalysis.readers.protocol import Location, ReaderOptions, Reading, Source
from blklab.labs.reanalysis.readers.scheduler_file import SCHEDULERS

NAME = "ioping"
SUMMARY = "ioping's statistics, any number of runs"

_TITLE = re.compile(r"^--- (?P<target>.+?) (?:\((?P<device>[^()]*)\) )?ioping statistics ---$")
_RATES = re.compile(
    rf"^(?P<count>{NUMBER}(?: [kMG])?) requests completed in (?P<time>{NUMBER}) (?P<unit>\w+), "
    rf"(?:{NUMBER} \w+ (?P<direction>read|written), )?"
    rf"(?P<iops>{NUMBER})(?: (?P<thousands>[kMG]))? iops, "
    rf"(?P<rate>{NUMBER}) (?P<rate_unit>[KMGTkmgt]?i?[bB])/s$"
)
_REQUEST = re.compile(r"\brequest=(?P<number>\d+) time=")
_RATES_BEGIN = re.compile(rf"^{NUMBER}(?: [kMG])? requests completed in ")
_TIMES = re.compile(
    rf"^min/avg/max/mdev = (?P<min>{NUMBER})(?: (?P<min_unit>\w+))? ?/ ?"
    rf"(?P<avg>{NUMBER})(?: (?P<avg_unit>\w+))?"
    rf" ?/ ?(?P<max>{NUMBER})(?: (?P<max_unit>\w+))? ?/ ?{NUMBER} (?P<unit>\w+)$"
)
_THOUSANDS = {None: 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
_TO_US = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6, "min": 6e7, "hour": 3.6e9}


def recognises(source: Source) -> bool:
    """Whether a line begins ioping's statistics."""
    return any(_TITLE.match(line.strip()) for line in source.lines)


def read(source: Source, options: ReaderOptions) -> Reading:
    """Reads IOPS, throughput, mean and largest latency of all runs."""
    del options
    reading = Reading(
        chronological=True, roles={"scheduler": "level", "target": "level", "direction": "condition"}
    )
    scheduler: dict[str, str] = {}
    factors: dict[str, str] = {}
    opened: int | None = None
    requests = _Requests()
    for number, line in enumerate(source.lines, start=1):
        stripped, location = line.strip(), source.at(number)
        requests.follow(reading, stripped, location)
        if title := _TITLE.match(stripped):
            _check_ended(reading, source, opened)
            requests.begin = None
            factors, opened = {**scheduler, "target": title["target"]}, number
        elif schedulers := SCHEDULERS.match(stripped):
            scheduler = {"scheduler": schedulers["active"]}
        elif rates := _RATES.match(stripped):
            if rates["direction"]:
                factors["direction"] = rates["direction"]
            _rates(reading, rates, factors, location)
        elif times := _TIMES.match(stripped):
            opened = None
            for name, metric in (("avg", "mean latency"), ("max", "maximum latency")):
                to_us = _TO_US.get(times[f"{name}_unit"] or times["unit"])
                if to_us is None:
                    reading.problem(location, f"unknown unit {times['unit']!r}")
                else:
                    reading.add_printed(metric, times[name], "us", "lower", factors, location, factor=to_us)
        elif _RATES_BEGIN.match(stripped) or stripped.startswith("min/avg/max"):
            reading.problem(location, "a line of the statistics is truncated or damaged")
    _check_ended(reading, source, opened)
    requests.check_ended(reading)
    return reading


@dataclass
class _Requests:
    """The requests of a run, which its statistics follow."""

    begin: Location | None = None

    def follow(self, reading: Reading, line: str, location: Location) -> None:
        """Notes where a run's requests begin."""
        if request := _REQUEST.search(line):
            if request["number"] == "1":
                self.check_ended(reading)
                self.begin = None
            self.begin = self.begin or location

    def check_ended(self, reading: Reading) -> None:
        """Reports requests that no statistics followed."""
        if self.begin is not None:
            reading.problem(self.begin, "no statistics follow these requests: the log is cut off")


def _rates(reading: Reading, rates: re.Match[str], factors: dict[str, str], location: Location) -> None:
    thousands = _THOUSANDS[rates["thousands"]]
    reading.add_printed("IOPS", rates["iops"], "IO/s", "higher", factors, location, factor=thousands)
    power = " KMGT".index(rates["rate_unit"][:-1].removesuffix("i").upper() or " ")
    reading.add_printed(
        "throughput", rates["rate"], "MiB/s", "higher", factors, location, factor=1024.0**power / 2**20
    )


def _check_ended(reading: Reading, source: Source, opened: int | None) -> None:
    if opened is not None:
        reading.problem(source.at(opened), "the line of latencies is missing after these statistics")
