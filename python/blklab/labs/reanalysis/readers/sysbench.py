"""``sysbench fileio``, versions 0.4 to 1.0, any number of runs in one log.

Its ``Mb`` and ``MiB`` are both 2^20 bytes. The percentile is the one that
--percentile chose, by default the 95th.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from blklab.labs.reanalysis.readers.protocol import ReaderOptions, Reading, Source
from blklab.labs.reanalysis.readers.scheduler_file import SCHEDULERS

NAME = "sysbench"
SUMMARY = "sysbench fileio, versions 0.4 to 1.0, any number of runs"

_NUMBER = r"\d+[.,]\d\d"
"""As sysbench prints all its figures: one with fewer decimals is cut off."""
_BEGIN = re.compile(r"^sysbench \d")
_TEST = re.compile(
    r"^Doing (?P<test>sequential read|sequential write \(creation\)|sequential rewrite|random read"
    r"|random write|random r/w) test$"
)
_SETTINGS = (
    ("threads", re.compile(r"^Number of threads: (?P<value>\d+)$")),
    ("block", re.compile(r"^Block size (?P<value>\S+)$")),
    ("files", re.compile(r"^(?P<value>\d+) files, \S+ each$")),
    ("io_mode", re.compile(r"^Using (?P<value>\w+) I/O mode$")),
)
_VALUES = (
    ("reads", "IO/s", re.compile(rf"^reads/s:\s+(?P<value>{_NUMBER})$")),
    ("writes", "IO/s", re.compile(rf"^writes/s:\s+(?P<value>{_NUMBER})$")),
    ("fsyncs", "IO/s", re.compile(rf"^fsyncs/s:\s+(?P<value>{_NUMBER})$")),
    ("read", "MiB/s", re.compile(rf"^read, MiB/s:\s+(?P<value>{_NUMBER})$")),
    ("written", "MiB/s", re.compile(rf"^written, MiB/s:\s+(?P<value>{_NUMBER})$")),
    (
        "transferred",
        "MiB/s",
        re.compile(r"^Read .*Total transferred \S+\s+\((?P<value>\d+(?:[.,]\d+)?)(?P<prefix>[KMG]?)b/sec\)$"),
    ),
    ("requests", "IO/s", re.compile(rf"^(?P<value>{_NUMBER}) Requests/sec executed$")),
)
_PREFIXES = {"": 2.0**-20, "K": 2.0**-10, "M": 1.0, "G": 1024.0}
"""To MiB/s; a figure without a prefix of its own is taken as printed."""
_LATENCY = re.compile(
    rf"^(?P<name>min|avg|max|(?:approx\.\s+)?(?P<percent>\d+)[a-z]* percentile):"
    rf"\s+(?P<value>{_NUMBER})(?P<unit>ms|s)?$"
)
_LATENCY_NAMES = {"avg": "mean latency", "max": "maximum latency"}
_DAMAGED = re.compile(r"^(?:reads/s|writes/s|fsyncs/s|read, MiB/s|written, MiB/s):")
_ENDED = re.compile(r"^execution time \(avg/stddev\):\s+\S+/\S+$")


def recognises(source: Source) -> bool:
    """Whether a line names a test of fileio, or has figures of one."""
    return any(_TEST.match(line.strip()) or _DAMAGED.match(line.strip()) for line in source.lines)


@dataclass
class _Run:
    """The run whose lines are being read."""

    line: int
    factors: dict[str, str] = field(default_factory=dict)
    nr_figures: int = 0
    ended: bool = False


def read(source: Source, options: ReaderOptions) -> Reading:
    """Reads the rates, throughputs and latencies of all runs."""
    del options
    reading = Reading(chronological=True, roles={"scheduler": "level", "test": "condition"})
    reading.roles.update({name: "condition" for name, _ in _SETTINGS})
    scheduler: dict[str, str] = {}
    run = _Run(1)
    for number, line in enumerate(source.lines, start=1):
        stripped = line.strip()
        location = source.at(number)
        if _BEGIN.match(stripped):
            _close(reading, source, run)
            run = _Run(number, dict(scheduler))
        elif test := _TEST.match(stripped):
            run.factors["test"] = test["test"]
        elif schedulers := SCHEDULERS.match(stripped):
            scheduler = {"scheduler": schedulers["active"]}
        elif setting := next(
            ((name, match) for name, form in _SETTINGS if (match := form.match(stripped))), None
        ):
            run.factors[setting[0]] = setting[1]["value"]
        elif value := next(
            ((name, unit, match) for name, unit, form in _VALUES if (match := form.match(stripped))), None
        ):
            if float(value[2]["value"].replace(",", ".")) > 0:
                run.nr_figures += 1
                factor = _PREFIXES[value[2].groupdict().get("prefix", "M")]
                reading.add_printed(
                    value[0], value[2]["value"], value[1], "higher", run.factors, location, factor=factor
                )
        elif ("test" in run.factors or run.nr_figures) and (latency := _LATENCY.match(stripped)):
            percent = latency["percent"]
            name = f"latency p{percent}" if percent else _LATENCY_NAMES.get(latency["name"])
            if name:
                reading.add_printed(
                    name, latency["value"], latency["unit"] or "ms", "lower", run.factors, location
                )
        elif _DAMAGED.match(stripped):
            reading.problem(location, "a line of the results is truncated or damaged")
        elif _ENDED.match(stripped):
            run.ended = True
    _close(reading, source, run)
    return reading


def _close(reading: Reading, source: Source, run: _Run) -> None:
    if run.nr_figures and "test" not in run.factors:
        reading.problem(
            source.at(run.line),
            'the log is shortened: without the line "Doing … test" the kind of test is unknown',
        )
    elif "test" in run.factors and not run.ended:
        reading.problem(source.at(run.line), "this run does not end: its last line is missing")
