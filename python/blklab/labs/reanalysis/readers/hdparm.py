"""Logs of ``hdparm -t``, ``-T`` and ``--direct``, any number of runs in one file.

A line of ``cat /sys/block/DISK/queue/scheduler`` (``none [mq-deadline] kyber``) names the scheduler
of the runs below it. hdparm's ``MB`` is 2^20 bytes (hdparm.c, ``TIMING_BUF_MB``, 9.65).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from blklab.labs.reanalysis.readers.numbers import NUMBER, NumberError, agrees, parse_number
from blklab.labs.reanalysis.readers.protocol import ReaderOptions, Reading, Source
from blklab.labs.reanalysis.readers.scheduler_file import SCHEDULERS

NAME = "hdparm"
SUMMARY = "hdparm -t, -T: any number of runs; lines of queue/scheduler between them name the scheduler"

_TIMING = re.compile(
    r"^\s*Timing (?P<test>[\w -]*?reads)\s*(?P<offset>\(offset [^)]*\))?\s*:\s*(?P<rest>.*)$"
)
_RATE = re.compile(
    rf"^(?P<data>{NUMBER}) MB in\s+(?P<seconds>{NUMBER}) seconds =\s*(?P<rate>{NUMBER}) (?P<unit>[kM]B)/sec$"
)
_DEVICE = re.compile(r"^(?P<device>/dev/\S+):\s*$")
_NOISE = re.compile(r"^(?:\s*$|SG_IO: |\s*HDIO_\w+)")
_FAILED_WRITE = re.compile(r"write error:|echo: .*[Ii]nvalid argument")


def recognises(source: Source) -> bool:
    """Whether the file has a timing line."""
    return any(_TIMING.match(line) for line in source.lines)


def read(source: Source, options: ReaderOptions) -> Reading:
    """Reads all runs, in the order of the file."""
    del options
    reading = Reading(
        chronological=True, roles={"scheduler": "level", "device": "level", "offset": "condition"}
    )
    factors: dict[str, str] = {}
    runs: list[_Run] = []
    for number, line in enumerate(source.lines, start=1):
        stripped = line.strip()
        if timing := _TIMING.match(line):
            if runs:
                runs[-1].tests.append(timing["test"])
            _timing(reading, source, number, timing, dict(factors))
        elif device := _DEVICE.match(stripped):
            factors["device"] = device["device"]
            runs.append(_Run(number))
        elif schedulers := SCHEDULERS.match(stripped):
            factors["scheduler"] = schedulers["active"]
        elif _FAILED_WRITE.search(line):
            reading.notes.append(
                f"{source.at(number)}: writing a setting failed, so the runs below may not have the "
                "intended setting"
            )
        elif not _NOISE.match(line):
            reading.skipped_lines.append(number)
            if runs and line[0].isspace():
                runs[-1].other_mode = True
    _check_last(reading, source, runs)
    return reading


@dataclass
class _Run:
    """The tests below a line that names the disk."""

    line: int
    other_mode: bool = False
    """Whether indented lines follow that are no timings: hdparm without -t prints settings there."""
    tests: list[str] = field(default_factory=list)


def _check_last(reading: Reading, source: Source, runs: list[_Run]) -> None:
    """Reports a log that ends in the middle of a run, with fewer tests than all timed runs before."""
    if runs and runs[-1].other_mode and not runs[-1].tests:
        return
    runs = [run for run in runs[:-1] if run.tests] + runs[-1:]
    if not runs:
        return
    last = runs[-1]
    if not last.tests:
        reading.problem(
            source.at(last.line), "the log ends after the line that names the disk: no value follows"
        )
        return
    before = {tuple(run.tests) for run in runs[:-1]}
    if len(before) == 1 and len(last.tests) < len(full := before.pop()):
        lacking = ", ".join(full[len(last.tests) :])
        reading.problem(source.at(last.line), f"the log ends in the middle of this run: {lacking} is missing")


def _timing(
    reading: Reading, source: Source, number: int, timing: re.Match[str], factors: dict[str, str]
) -> None:
    location = source.at(number)
    printed = _RATE.match(timing["rest"].strip())
    if printed is None:
        reading.problem(location, f"{timing['test']}: truncated or damaged: no value could be read")
        return
    try:
        data, seconds, rate = (parse_number(printed[name]) for name in ("data", "seconds", "rate"))
    except NumberError as error:
        reading.problem(location, f"{timing['test']}: {error}")
        return
    rate = rate / 1024 if printed["unit"] == "kB" else rate
    # hdparm rounds the seconds to hundredths but divides by the exact time.
    if seconds > 0 and not agrees(rate, data / seconds, 0.01 + 0.006 / seconds + 1 / max(data, 1)):
        reading.problem(location, f"{timing['test']}: {data:g} MB in {seconds:g} s is not {rate:g} MB/s")
        return
    if timing["offset"]:
        factors["offset"] = timing["offset"].strip("()").removeprefix("offset ")
    reading.add(timing["test"], rate, "MiB/s", "higher", factors, location)
