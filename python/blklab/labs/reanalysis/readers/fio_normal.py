"""fio's normal output: versions 1 to 3, clients of a server, any number of runs in one log.

Bandwidth is read as fio prints it first, in powers of two; fio 1 and 2 write ``KB`` for 1024 bytes. A log
that holds only the lines of "Run status group" gives the bandwidth of each group.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from blklab.labs.reanalysis.readers.fio_settings import ALL_CLIENTS, ROLES, clones_note, normal_settings
from blklab.labs.reanalysis.readers.numbers import NumberError, parse_number
from blklab.labs.reanalysis.readers.protocol import Location, ReaderOptions, Reading, Source
from blklab.labs.reanalysis.readers.scheduler_file import SCHEDULERS
from blklab.labs.reanalysis.readers.times import local_time_s
from blklab.quantities.formatting import count_of

NAME = "fio-normal"
SUMMARY = "fio's normal output (versions 1 to 3), any number of runs, also of clients"

_N = r"\s*(?P<{}>\d+(?:\.\d+)?[kKMGT]?)"
_HEADER = re.compile(
    r"^(?:<[^>]*> )?(?P<job>.*): \(g=(?P<group>\d+)\): rw=(?P<rw>[^,\s]+), (?:odir=\S+, )?"
    r"bs=(?P<bs>.+?), ioengine=(?P<ioengine>[^,\s]+), iodepth=(?P<iodepth>\d+)\s*$"
)
_JOB = re.compile(
    r"^\s*(?P<job>\S.*?): \(groupid=(?P<group>\d+), jobs=(?P<jobs>\d+)\): err=\s*(?P<error>-?\d+)\b"
)
_JOB_BEGIN = re.compile(r"^\s*\S.*: \(groupid=\d")
_DIRECTION = re.compile(
    rf"^\s+(?P<direction>read|write|trim|mixed)\s*: IOPS={_N.format('iops')}, "
    r"BW=(?P<bandwidth>\d+(?:\.\d+)?)(?P<unit>[kKMGTP]?i?(?:B|bit)?)(?:/s)?\s*\([^)]*\)\s*"
    r"\((?P<amount>[^/)]+)/\s*(?P<runtime>\d+)msec\)"
)
_DIRECTION_BEFORE_3 = re.compile(
    r"^\s+(?P<direction>read|write|trim|mixed)\s*: io=(?P<amount>[\d.,]+\s*\w+), "
    r"bw=(?P<bandwidth>\d+(?:\.\d+)?)(?P<unit>[KMGTP]?i?B)/s, "
    rf"iops={_N.format('iops')}\s*, runt=\s*(?P<runtime>\d+)msec"
)
_DIRECTION_BEGIN = re.compile(r"^\s+(?P<direction>read|write|trim|mixed)\s*: (?:IOPS=|io=)")
_LATENCY = re.compile(
    r"^\s+(?P<kind>slat|clat|lat|sync)\s*\((?P<unit>nsec|usec|msec|sec)\)\s*: "
    rf"min={_N.format('min')}\s*, max={_N.format('max')}\s*, "
    rf"avg={_N.format('mean')}\s*, stdev={_N.format('stdev')}\s*$"
)
_LATENCY_BEGIN = re.compile(r"^\s+(?:slat|clat|lat|sync)\s*\((?:nsec|usec|msec|sec)\)\s*: min=")
_PERCENTILES = re.compile(r"^\s+(?P<kind>clat|lat|slat|sync)? ?percentiles \((?P<unit>nsec|usec|msec|sec)\):")
_PERCENTILE = re.compile(r"\b(?P<percent>\d+\.\d+)th=\[\s*(?P<value>\d+)\]")
_PERCENTILE_LINE = re.compile(r"^\s*\|\s")
_END = re.compile(r"^\s+issued\b.*:")
_GROUP = re.compile(r"^\s*Run status group (?P<group>\d+) \(all jobs\):")
_GROUP_LINE = re.compile(
    r"^\s*(?P<direction>READ|WRITE|TRIM|MIXED): (?:io=[^,]*, aggrb|bw)="
    r"(?P<bandwidth>\d+(?:\.\d+)?)(?P<unit>[kKMGTP]?i?(?:B|bit))/s"
)
_BEFORE_3 = re.compile(r"aggrb=|, bw=\S+, iops=")
_VERSION = re.compile(r"^fio-\d")
_STARTING = re.compile(r"^(?:<[^>]*> )?Starting (?:\d+ (?:thread|process)(?:e?s)?(?: and |\s*$))+")
_CLIENT = re.compile(r"^hostname=\S+, be=\d")
_OTHER = re.compile(
    r"^\s*(?:\||\.\.\.$|Starting \d+ |Jobs?: \d+ \(|bw \(|bw\s*\(|iops\s*:|lat \((?:nsec|usec|msec|sec)\)\s*:"
    r"|cpu\s*:|IO depths\s*:|submit\s*:|complete\s*:|latency\s*:|fsync/fdatasync|Disk stats|errors?\s*:"
    r"|.*: ios=\d|.*: Laying out IO file|slat percentiles|zone resets|Description\s*:|<[^>]*> |$)"
)
_TO_US = {"nsec": 1e-3, "usec": 1.0, "msec": 1e3, "sec": 1e6}
_THOUSANDS = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_LATENCY_NAMES = {"lat": "mean latency", "sync": "mean sync latency"}
_PERCENTILE_NAMES = {"clat": "completion latency", "lat": "latency", "sync": "sync latency"}


def recognises(source: Source) -> bool:
    """Whether a job's or a group's heading is there, and no JSON after it."""
    if '"jobname"' in source.text:
        return False
    return any(
        _JOB.match(after_return) or _GROUP.match(after_return)
        for after_return in (line.rpartition("\r")[2] for line in source.lines)
    )


def read(source: Source, options: ReaderOptions) -> Reading:
    """Reads bandwidth, IOPS, mean latency and two percentiles of each job and direction."""
    del options
    reading = Reading(chronological=True, roles=dict(ROLES))
    log = _Log(source, reading)
    for number, line in enumerate(source.lines, start=1):
        # fio overwrites its progress line after a carriage return.
        log.take(number, line.rstrip("\r").rpartition("\r")[2])
    log.end()
    return reading


@dataclass
class _Job:
    """The job whose block is being read."""

    line: int
    name: str
    levels: dict[str, str]
    usable: bool
    direction: dict[str, str] | None = None
    percentiles: tuple[str, float, bool] | None = None
    """Kind, factor to µs, and whether the last line ended within a value list."""
    nr_directions: int = 0
    ended: bool = False


@dataclass
class _Log:
    """Reads a log line by line."""

    source: Source
    reading: Reading
    job: _Job | None = None
    group: str | None = None
    settings: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    factors: dict[str, str] = field(default_factory=dict)
    blocks: dict[tuple[str, str], int] = field(default_factory=dict)
    """How many blocks each job and group has had since fio started."""
    read_groups: set[str] = field(default_factory=set)
    announced: tuple[int, int] | None = None
    """Line and number of the jobs that fio has started."""
    nr_reported: int = 0
    """Jobs of which there are figures, since then."""
    started: bool = False
    clients: bool = False

    def take(self, number: int, line: str) -> None:
        """Reads one line."""
        if self._start(number, line) or self._heading(number, line):
            return
        if self.group is not None and (total := _GROUP_LINE.match(line)):
            self._group_total(number, total)
        elif self.job is not None and self._within_job(self.job, number, line):
            return
        elif not _OTHER.match(line):
            if _GROUP_LINE.match(line) or _DIRECTION_BEGIN.match(line):
                self.reading.problem(self.source.at(number), "figures without the line that names their job")
            self.reading.skipped_lines.append(number)

    def _start(self, number: int, line: str) -> bool:
        if header := _HEADER.match(line):
            key = (header["job"], header["group"])
            self.settings[key] = normal_settings(header.groupdict())
            return True
        if _CLIENT.match(line):
            self.clients = True
        elif schedulers := SCHEDULERS.match(line.strip()):
            self.factors["scheduler"] = schedulers["active"]
        elif starting := _STARTING.match(line):
            self._check_reported()
            self.announced = number, sum(map(int, re.findall(r"\d+(?= (?:thread|process))", starting[0])))
            self.nr_reported = 0
        elif not _VERSION.match(line):
            return False
        elif not self.clients:
            self._new_run()
            self.started = True
        return True

    def _check_reported(self) -> None:
        """Reports jobs that fio has started and says nothing of, as in a log cut between two jobs."""
        if self.announced is None or self.clients:
            return
        number, nr_started = self.announced
        self.announced = None
        if self.nr_reported < nr_started:
            self.reading.problem(
                self.source.at(number),
                f"fio started {count_of(nr_started, 'job')} here, and the log has figures of"
                f" {self.nr_reported}: it is cut off",
            )

    def _new_run(self) -> None:
        self.reading.notes += clones_note(self.source, self.blocks)
        self.blocks.clear()
        self.read_groups.clear()

    def _heading(self, number: int, line: str) -> bool:
        location = self.source.at(number)
        if job := _JOB.match(line):
            if (ended_s := local_time_s(line[job.end() :])) is not None:
                self.reading.times_s.append(ended_s)
            self._close_job(at_end=False)
            self._open_job(number, job)
        elif group := _GROUP.match(line):
            self._close_job(at_end=False)
            self.group = group["group"]
        elif _JOB_BEGIN.match(line):
            self._close_job(at_end=False)
            self.reading.problem(location, "the line that begins a job is truncated or damaged")
        else:
            return False
        return True

    def _open_job(self, number: int, job: re.Match[str]) -> None:
        name, group = job["job"], job["group"]
        self.group = None
        self.nr_reported += int(job["jobs"])
        self.read_groups.add(group)
        levels = {**self.factors, "job": name, **self.settings.get((name, group), {}), "numjobs": job["jobs"]}
        key = (name, group)
        if name == ALL_CLIENTS:
            levels["client"] = "all"
        elif self.clients:
            self.blocks[key] = self.blocks.get(key, 0) + 1
            levels["client"] = str(self.blocks[key])
        elif self.started:
            self.blocks[key] = self.blocks.get(key, 0) + 1
        usable = int(job["error"]) == 0
        if not usable:
            self.reading.problem(
                self.source.at(number),
                f"job {name}: fio reports error {job['error']}; its values are not used",
            )
        self.job = _Job(number, name, levels, usable)

    def _group_total(self, number: int, total: re.Match[str]) -> None:
        """A group's total counts only where no job of the group is in the log: it would repeat it."""
        if self.group is None or self.group in self.read_groups:
            return
        levels = {**self.factors, "job": f"group {self.group}", "direction": total["direction"].lower()}
        self._bandwidth(total, levels, self.source.at(number))

    def _within_job(self, job: _Job, number: int, line: str) -> bool:
        location = self.source.at(number)
        if printed := _DIRECTION.match(line) or _DIRECTION_BEFORE_3.match(line):
            job.nr_directions += 1
            job.percentiles = None
            job.direction = {**job.levels, "direction": printed["direction"]}
            if job.usable:
                self._bandwidth(printed, job.direction, location)
                self._add("IOPS", printed["iops"], 1.0, "IO/s", job.direction, location)
        elif _DIRECTION_BEGIN.match(line):
            job.direction, job.percentiles = None, None
            job.nr_directions += 1
            self.reading.problem(location, f"job {job.name}: a line of its figures is truncated or damaged")
        elif printed := _LATENCY.match(line):
            job.percentiles = None
            name = _LATENCY_NAMES.get(printed["kind"])
            levels = self._levels(job, printed["kind"])
            if name and levels and job.usable:
                self._add(name, printed["mean"], _TO_US[printed["unit"]], "us", levels, location)
        elif _LATENCY_BEGIN.match(line):
            self.reading.problem(location, f"job {job.name}: a line of its latencies is truncated or damaged")
        elif heading := _PERCENTILES.match(line):
            job.percentiles = (heading["kind"] or "clat", _TO_US[heading["unit"]], True)
        elif job.percentiles and _PERCENTILE_LINE.match(line):
            self._percentiles(job, line, location)
        elif _END.match(line):
            job.ended, job.percentiles = True, None
        else:
            return False
        return True

    def _levels(self, job: _Job, kind: str) -> dict[str, str] | None:
        if kind == "sync":
            return {**job.levels, "direction": "sync"}
        return job.direction

    def _percentiles(self, job: _Job, line: str, location: Location) -> None:
        if job.percentiles is None:
            return
        kind, to_us, _ = job.percentiles
        job.percentiles = (kind, to_us, line.rstrip().endswith(","))
        levels = self._levels(job, kind)
        name = _PERCENTILE_NAMES.get(kind)
        if levels is None or name is None or not job.usable:
            return
        for printed in _PERCENTILE.finditer(line):
            percent = float(printed["percent"])
            if percent in (50.0, 99.0):
                self._add(f"{name} p{percent:g}", printed["value"], to_us, "us", levels, location)

    def _bandwidth(self, printed: re.Match[str], levels: dict[str, str], location: Location) -> None:
        """Adds a bandwidth in MiB/s; fio 3 marks powers of two with an i, fio 1 and 2 know no others."""
        unit, before_3 = printed["unit"], _BEFORE_3.search(printed[0]) is not None
        prefix = unit.removesuffix("bit").removesuffix("B").removesuffix("i").upper()
        base = 1024.0 if "i" in unit.removesuffix("bit") or before_3 else 1000.0
        bits = 8.0 if unit.endswith("bit") else 1.0
        factor = base ** " KMGTP".index(prefix or " ") / bits / 2**20
        self._add("bandwidth", printed["bandwidth"], factor, "MiB/s", levels, location)

    def _add(
        self, metric: str, text: str, factor: float, unit: str, levels: dict[str, str], location: Location
    ) -> None:
        suffix = text[-1] if text[-1].isalpha() else ""
        try:
            value = parse_number(text.removesuffix(suffix)) * _THOUSANDS[suffix]
        except NumberError as error:
            self.reading.problem(location, f"{metric}: {error}")
            return
        better = "lower" if unit == "us" else "higher"
        self.reading.add(
            metric, value * factor, unit, "lower" if better == "lower" else "higher", levels, location
        )

    def _close_job(self, *, at_end: bool) -> None:
        job, self.job = self.job, None
        if job is None or not job.usable or job.ended:
            return
        location = self.source.at(job.line)
        if job.nr_directions == 0:
            self.reading.problem(location, f"job {job.name}: no figures follow")
        elif job.percentiles and job.percentiles[2]:
            self.reading.problem(location, f"job {job.name}: its percentiles are cut off")
        else:
            where = "the log ends" if at_end else "its figures end"
            what = f"job {job.name}: {where} before the line of issued I/Os"
            if self.settings:
                # Whoever copies an excerpt leaves out the lines before the results.
                self.reading.problem(location, f"{what}: it is cut off")
            else:
                self.reading.notes.append(f"{location}: {what}; an excerpt, or cut off")

    def end(self) -> None:
        """Closes the last job."""
        self._close_job(at_end=True)
        self._check_reported()
        if not self.clients:
            self.reading.notes += clones_note(self.source, self.blocks)
