"""elbencho's result tables, as it prints them and as ``--resfile`` keeps them, any number of runs.

"First done" is the rate until the first thread had done its share, "last done" until all had. Rates are whole
numbers. Without ``--base10`` throughput is in MiB/s.

A log that ends between two complete operations is known as cut off by its command line, if that asks for
writes or reads that are missing. A log of the screen has no command line: there it cannot be told.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from blklab.analysis.metrics import Better
from blklab.labs.reanalysis.readers.protocol import Location, ReaderOptions, Reading, Source
from blklab.labs.reanalysis.readers.scheduler_file import SCHEDULERS

NAME = "elbencho"
SUMMARY = "elbencho's tables of results, any number of runs"

FIRST_DONE = ", first done"
"""Ending of the name of a rate that counts until the first thread ends."""

_HEADING = re.compile(r"^OPERATION\s+RESULT TYPE\s+FIRST DONE\s+LAST DONE$")
_COMMAND = re.compile(r"^COMMAND LINE: (?P<command>.+)$")
_OPERATION = re.compile(r"^(?P<operation>[A-Z][A-Z0-9_]*)\s+Elapsed (?:time|ms)\s+:")
_RATE = re.compile(
    r"^(?P<name>[A-Z]\w*/s|IOPS|(?:Throughput )?MI?B/s)(?: (?P<part>read|write|total))?\s+:"
    r"\s+(?P<first>\d+)\s+(?P<last>\d+)$",
    re.IGNORECASE,
)
_LATENCY = re.compile(
    r"^(?P<what>\w+)(?: (?P<part>rd|read))? latency(?P<us> us)?\s+:\s+\[ min=\S+ avg=(?P<avg>\d+(?:\.\d+)?)"
    r"(?P<avg_unit>\w*) max=(?P<max>\d+(?:\.\d+)?)(?P<max_unit>\w*) \]$"
)
_PERCENTILES = re.compile(
    r"^(?P<what>\w+)(?: (?P<part>rd|read))? lat % us\s+:\s+\[ (?P<list>(?:[\d.]+%<=\d+ )+)\]$"
)
_PERCENTILE = re.compile(r"(?P<percent>[\d.]+)%<=(?P<value>\d+)")
_BEGUN = re.compile(
    r"^(?:[A-Z]\w*/s|IOPS|(?:Throughput )?MI?B/s|\w+(?: rd| read)? lat(?:ency|\b).*?)(?: \w+)?\s+:",
    re.IGNORECASE,
)
_NEITHER = re.compile(r"lat (?:hist|grpd)\b")
_OPTIONS = {
    "threads": re.compile(r"(?:^| )(?:-t|--threads)[ =]?(\d+)"),
    "block": re.compile(r"(?:^| )(?:-b|--block)[ =]?(\w+)"),
    "io_depth": re.compile(r"(?:^| )--iodepth[ =](\d+)"),
    "direct": re.compile(r"(?:^| )--(direct)(?: |$)"),
    "random": re.compile(r"(?:^| )--(rand)(?: |$)"),
}
"""Settings in the command line."""
_ASKED = {
    "WRITE": (re.compile(r"(?:^| )(?:-[a-zA-Z]*w|--write)(?![\w-])"), ("WRITE", "RWMIX", "MIX-T", "NET")),
    "READ": (re.compile(r"(?:^| )(?:-[a-zA-Z]*r|--read)(?![\w-])"), ("READ",)),
}
"""Operations that a command line asks for, and the beginnings of the names under which they are printed."""
_TO_US = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}
_SHOWN_PERCENTILES = ("50", "99")


def recognises(source: Source) -> bool:
    """Whether a line is the heading of a table."""
    return any(_HEADING.match(line.strip()) for line in source.lines)


def read(source: Source, options: ReaderOptions) -> Reading:
    """Reads the rates and latencies of all operations."""
    del options
    reading = Reading(
        chronological=True,
        roles={"scheduler": "level", "operation": "condition", "direction": "condition"},
    )
    reading.roles.update(dict.fromkeys(_OPTIONS, "setting"))
    scheduler: dict[str, str] = {}
    settings: dict[str, str] = {}
    operation: dict[str, str] = {}
    run = _Run()
    begin = 0
    unended = source.unended_line
    for number, line in enumerate(source.lines, start=1):
        stripped = line.strip()
        if operation and (_COMMAND.match(stripped) or _HEADING.match(stripped)):
            _unended(reading, source.at(begin), operation)
        if command := _COMMAND.match(stripped):
            run.check(reading)
            run = _Run(command["command"].replace('"', ""), source.at(number))
            settings, operation = _settings(run.command), {}
        elif schedulers := SCHEDULERS.match(stripped):
            scheduler = {"scheduler": schedulers["active"]}
        elif begun := _OPERATION.match(stripped):
            operation, begin = {"operation": begun["operation"]}, number
            run.operations.append(begun["operation"])
        elif stripped == "---" or _HEADING.match(stripped):
            operation = {}
        elif operation and _BEGUN.match(stripped) and not _NEITHER.search(stripped):
            levels = {**scheduler, **settings, **operation}
            is_whole = number != unended and _row(reading, source.at(number), stripped, levels)
            if not is_whole:
                reading.problem(source.at(number), "a line of the results is truncated or damaged")
    if operation:
        _unended(reading, source.at(begin), operation)
    run.check(reading)
    return reading


@dataclass
class _Run:
    """A command line, and the operations below it."""

    command: str = ""
    location: Location | None = None
    operations: list[str] = field(default_factory=list)

    def check(self, reading: Reading) -> None:
        """Reports operations that were asked for and are missing."""
        if self.location is None:
            return
        for name, (form, printed) in _ASKED.items():
            if form.search(self.command) and not any(one.startswith(printed) for one in self.operations):
                message = f"the command asks for {name}, whose figures are missing: the log is cut off"
                reading.problem(self.location, message)


def _unended(reading: Reading, location: Location, operation: dict[str, str]) -> None:
    reading.problem(
        location, f"the figures of {operation['operation']} do not end with ---: they are cut off"
    )


def _settings(command: str) -> dict[str, str]:
    found = {name: form.search(command) for name, form in _OPTIONS.items()}
    return {name: match[1].lower() for name, match in found.items() if match}


def _row(reading: Reading, location: Location, line: str, factors: dict[str, str]) -> bool:
    """Reads a line of a table; returns whether it is whole."""
    if rate := _RATE.match(line):
        name, unit = _name_and_unit(rate["name"])
        levels = {**factors, "direction": rate["part"]} if rate["part"] else factors
        for key, suffix in (("last", ""), ("first", FIRST_DONE)):
            reading.add_printed(name + suffix, rate[key], unit, "higher", levels, location)
        return True
    lower: Better = "lower"
    if latency := _LATENCY.match(line):
        levels = {**factors, "direction": "read"} if latency["part"] else factors
        for key, name in (("avg", "mean latency"), ("max", "maximum latency")):
            to_us = _TO_US.get("us" if latency["us"] else latency[f"{key}_unit"])
            if to_us is None:
                return False
            metric = f"{latency['what']} {name}"
            reading.add_printed(metric, latency[key], "us", lower, levels, location, factor=to_us)
        return True
    if percentiles := _PERCENTILES.match(line):
        levels = {**factors, "direction": "read"} if percentiles["part"] else factors
        for one in _PERCENTILE.finditer(percentiles["list"]):
            if one["percent"] in _SHOWN_PERCENTILES:
                metric = f"{percentiles['what']} latency p{one['percent']}, at most"
                reading.add_printed(metric, one["value"], "us", lower, levels, location)
        return True
    return False


def _name_and_unit(name: str) -> tuple[str, str]:
    if name.upper() == "IOPS":
        return "IOPS", "IO/s"
    if name.upper().endswith(("MB/S", "MIB/S")):
        return "throughput", "MiB/s" if name.upper().endswith("MIB/S") else "MB/s"
    return name, ""
