"""fio's JSON and JSON+ output, alone, after its normal output or of clients, any number of runs in one file.

Percentiles are those of one job, as fio prints them. They are compared between runs and never averaged over
jobs.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

from blklab.errors import FormatError
from blklab.labs.reanalysis.readers.fio_settings import ALL_CLIENTS, ROLES, clones_note, options_of
from blklab.labs.reanalysis.readers.numbers import LARGEST, SMALLEST, shown
from blklab.labs.reanalysis.readers.protocol import Location, ReaderOptions, Reading, Source
from blklab.labs.reanalysis.readers.scheduler_file import SCHEDULERS

NAME = "fio-json"
SUMMARY = "fio --output-format=json and json+, also after its normal output, and of clients"

_BEGINNING = re.compile(r"^[\s>]*\{", re.MULTILINE)
"""A document begins a line, perhaps after the mark of a quotation or of a shell."""
_DIRECTIONS = ("read", "write", "trim")
_PERCENTILES = ("50.000000", "99.000000")
_JOB_NAME = re.compile(r'"jobname"\s*:')
_LISTS = ("jobs", "client_stats")
"""Where fio puts the results of its jobs: of its own, or of a server's clients."""


def recognises(source: Source) -> bool:
    """Whether the file has fio's field names."""
    return '"jobname"' in source.text and any(f'"{name}"' in source.text for name in _LISTS)


def why_empty(source: Source) -> FormatError | None:
    """The error for a file of fio's that has no job; None for all others."""
    if '"fio version"' not in source.text[:1000]:
        return None
    return FormatError(
        f"{source.name}: fio's JSON without any job: fio was ended before a job began, or failed",
        hint="run the job again; fio says on the screen what was wrong",
    )


def read(source: Source, options: ReaderOptions) -> Reading:
    """Reads bandwidth, IOPS, mean latency and two percentiles of each job and direction."""
    del options
    reading = Reading(chronological=True, roles=dict(ROLES))
    factors: dict[str, str] = {}
    after = 0
    texts: set[str] = set()
    line_of = _line_counter(source.text)
    for document, begin, end in _documents(source, reading):
        for schedulers in SCHEDULERS.finditer(source.text, after, begin):
            factors["scheduler"] = schedulers["active"]
        after = end
        text = f"{factors.get('scheduler')} {source.text[begin:end]}"
        if text in texts:
            reading.problem(source.at(line_of(begin)), "the same result of fio once more; it counts once")
            continue
        texts.add(text)
        jobs = next((document[name] for name in _LISTS if isinstance(document.get(name), list)), None)
        if jobs is None:
            continue
        reading.times_s += _times_s(document)
        first = line_of(begin)
        lines = [line_of(match.start()) for match in _JOB_NAME.finditer(source.text, begin, end)]
        blocks: dict[tuple[str, str], int] = {}
        for index, job in enumerate(jobs):
            line = lines[index] if index < len(lines) else first
            if isinstance(job, dict):
                own = options_of(document.get("global options"), job.get("job options"))
                _job(reading, source, line, job, factors | own)
                if "hostname" not in job:
                    key = (str(job.get("jobname")), str(job.get("groupid")))
                    blocks[key] = blocks.get(key, 0) + 1
            else:
                reading.problem(source.at(line), "an entry of jobs is not an object")
        reading.notes += clones_note(source, blocks)
    if not reading.measurements and not reading.problems:
        reading.problem(source.at(None), "no JSON document with jobs begins in any line")
    return reading


def _times_s(document: dict[str, Any]) -> list[float]:
    """When fio wrote the result."""
    for name, units in (("timestamp_ms", 1000.0), ("timestamp", 1.0)):
        if time := _number(document, name):
            return [time / units]
    return []


def _line_counter(text: str) -> Callable[[int], int]:
    """Numbers the lines of positions that ascend, in time that does not grow with what was counted before."""
    counted, line = 0, 1

    def line_of(position: int) -> int:
        nonlocal counted, line
        line += text.count("\n", counted, position)
        counted = position
        return line

    return line_of


def _documents(source: Source, reading: Reading) -> Iterator[tuple[dict[str, Any], int, int]]:
    decoder = json.JSONDecoder()
    position = 0
    while begin := _BEGINNING.search(source.text, position):
        start = begin.end() - 1
        try:
            document, end = decoder.raw_decode(source.text, start)
        except json.JSONDecodeError as error:
            reading.problem(source.at(error.lineno), f"the JSON ends or breaks here ({error.msg})")
            return
        except ValueError:
            reading.problem(source.at(None), "the JSON has a number with too many digits")
            return
        except RecursionError:
            reading.problem(source.at(None), "the JSON is nested too deeply")
            return
        if isinstance(document, dict):
            yield document, start, end
        position = end


def _job(reading: Reading, source: Source, line: int, job: dict[str, Any], factors: dict[str, str]) -> None:
    location = source.at(line)
    name = job.get("jobname")
    if not isinstance(name, str):
        reading.problem(location, "a job has no name")
        return
    if job.get("error", 0) != 0:
        reading.problem(
            location, f"job {name}: fio reports error {shown(str(job['error']))}; its values are not used"
        )
        return
    levels = {"job": name, **factors}
    if isinstance(job.get("hostname"), str):
        levels["host"] = "all" if name == ALL_CLIENTS else job["hostname"]
    measured = False
    for direction in _DIRECTIONS:
        part = job.get(direction)
        if (
            not isinstance(part, dict)
            or not _number(part, "runtime")
            or not _number(part, "io_bytes", "io_kbytes")
        ):
            continue
        measured = True
        _direction(reading, source, line, part, levels | {"direction": direction})
    _sync(reading, job.get("sync"), levels | {"direction": "sync"}, location)
    if not measured:
        reading.problem(location, f"job {name}: no direction has values")


def _sync(reading: Reading, part: Any, levels: dict[str, str], location: Location) -> None:
    """Adds the latencies of fsync and fdatasync, where the job made any."""
    if not isinstance(part, dict) or not _number(part, "total_ios"):
        return
    values = [
        ("mean sync latency", _latency_us(part, "lat", "mean")),
        *(
            (f"sync latency p{float(percent):g}", _latency_us(part, "lat", "percentile", percent))
            for percent in _PERCENTILES
        ),
    ]
    for metric, value in values:
        if value is not None:
            reading.add(metric, value, "us", "lower", levels, location)


def _direction(
    reading: Reading, source: Source, line: int, part: dict[str, Any], levels: dict[str, str]
) -> None:
    location = source.at(line)
    what = f"job {levels['job']}, {levels['direction']}"
    bandwidth = _number(part, "bw_bytes")
    kibibytes = _number(part, "bw")
    if bandwidth is None and kibibytes is not None:
        bandwidth = 1024 * kibibytes
    metrics = [
        ("bandwidth", None if bandwidth is None else bandwidth / 2**20, "MiB/s"),
        ("IOPS", _number(part, "iops"), "IO/s"),
        ("mean latency", _latency_us(part, "lat", "mean"), "us"),
    ]
    for metric, value, unit in metrics:
        if value is None:
            reading.problem(location, f"{what}: no finite {metric}")
        else:
            better = "lower" if unit == "us" else "higher"
            reading.add(metric, value, unit, "lower" if better == "lower" else "higher", levels, location)
    for percent in _PERCENTILES:
        value = _latency_us(part, "clat", "percentile", percent)
        if value is not None:
            reading.add(f"completion latency p{float(percent):g}", value, "us", "lower", levels, location)


def _latency_us(part: dict[str, Any], name: str, *path: str) -> float | None:
    """A latency in µs: fio 3 writes ``lat_ns``, fio 2 ``lat`` in µs."""
    for field, factor in ((f"{name}_ns", 1e-3), (name, 1.0)):
        node: Any = part.get(field)
        for step in path[:-1]:
            node = node.get(step) if isinstance(node, dict) else None
        if isinstance(node, dict):
            value = _number(node, path[-1])
            if value is not None:
                return value * factor
    return None


def _number(part: dict[str, Any], *names: str) -> float | None:
    """The first of some fields that is a finite number."""
    for name in names:
        value = part.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                number = float(value)
            except OverflowError:
                continue
            if math.isfinite(number) and (number == 0 or SMALLEST <= abs(number) <= LARGEST):
                return number
    return None
