"""fio as the load generator: finding it, writing its job files, running it.

The job file for fio spells everything out: each clone has its own section, and fio chooses no files itself.
`blklab.linux.load.fio_output` reads its report.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from blklab.errors import JobFileError, MissingToolError
from blklab.linux.load.fio_histograms import (
    HISTOGRAM_OPTIONS,
    histogram_options,
    remove_histogram_logs,
)
from blklab.linux.load.fio_logs import LOG_OPTIONS, log_lines, remove_logs
from blklab.linux.load.fio_output import FioReport, read_fio_report
from blklab.linux.load.fio_rates import (
    RATE_OPTIONS,
    rate_options,
    rate_window_ms,
    remove_rate_logs,
    with_rates,
)
from blklab.linux.load.fio_start import STARTED, remove_starts
from blklab.linux.load.load_process import (
    REQUIRED_PROGRAMS,
    EndedProcess,
    LoadProcess,
    load_process,
)
from blklab.linux.load.numa import NUMA_OPTIONS, missing_nodes
from blklab.linux.scratch.layout import JobRegions, Region
from blklab.quantities.units import NS_PER_SECOND
from blklab.spec.workloads import Job, Workload

MINIMUM_VERSION = (3, 18)
"""The first version that reports percentiles and bins of total latency as well as of completion latency."""

JOB_FILE = "job.fio"
OUTPUT_FILE = "output.json"

_OURS = (
    "filename", "directory", "size", "filesize", "offset", "offset_increment", "fill_device", "nrfiles",
    "filename_format", "unique_filename", "openfiles", "allow_file_create",
    "create_on_open", "create_serialize", "create_fsync", "overwrite", "fallocate", "name", "numjobs",
    "stonewall", "new_group", "wait_for", "ioengine", "direct", "buffered", "kb_base", "threads", "cgroup",
    "io_submit_mode", "ioscheduler", "unlink", "allow_mounted_write", "flow_watermark",
    "cgroup_weight", "cgroup_nodelete", "group_reporting", "percentile_list", "unified_rw_reporting", "stats",
    "lat_percentiles", "clat_percentiles", "slat_percentiles", "disable_lat", "disable_clat", "disable_slat",
    "disable_bw_measurement", "gtod_reduce", "log_avg_msec", "iopsavgtime", "description", "log_compression",
    "log_compression_cpus", "log_store_compressed", "log_alternate_epoch", "log_alternate_epoch_clock_id",
    *RATE_OPTIONS, *HISTOGRAM_OPTIONS, *LOG_OPTIONS,
)  # fmt: skip
"""Options that blklab sets itself: where the I/O goes, control groups, and what fio reports."""

_PERCENTILES = ("lat_percentiles=1", "clat_percentiles=0", "slat_percentiles=0")
_STRETCH_PERCENTILES = ("lat_percentiles=0", "clat_percentiles=1", "slat_percentiles=0")
"""Histogram logs exist for completion latencies only."""
_PHASE_PERCENTILES = ("lat_percentiles=1", "clat_percentiles=1", "slat_percentiles=0")
_GLOBAL = (
    # A device that vanished must not come back as a regular file in /dev.
    "allow_file_create=0",
)
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_LONGEST_VALUE = 4096
"""Characters of a value in a job file that fio no longer reads."""
_VERSION = re.compile(r"fio-(\d+)\.(\d+)\S*")
_VERSION_TIMEOUT_S = 120
_GRACE_S = 120
"""Time beyond its jobs' own runtimes after which fio counts as hung."""
_TOO_LONG = f"fio was still running {_GRACE_S} s after its jobs should have ended"


@dataclass(frozen=True)
class Fio:
    """An installed fio that is new enough."""

    path: str
    version: str

    def command(self, *, read_only: bool = False, parse_only: bool = False) -> list[str]:
        """The command line; its working directory must have the job file."""
        return [
            self.path,
            "--output-format=json+",
            f"--output={OUTPUT_FILE}",
            "--eta=never",
            *(["--readonly"] if read_only else []),
            *(["--parse-only"] if parse_only else []),
            JOB_FILE,
        ]


def find_fio() -> Fio:
    """Finds fio and checks for the programs that running it needs.

    Raises:
        MissingToolError: if fio is missing or too old, or a program of util-linux is missing.
    """
    wanted = ".".join(map(str, MINIMUM_VERSION))
    path = shutil.which("fio")
    if path is None:
        raise MissingToolError(
            "fio is not installed",
            hint="install it (apt install fio, dnf install fio), or test a sim: device",
        )
    for program in REQUIRED_PROGRAMS:
        if shutil.which(program) is None:
            raise MissingToolError(f"{program} is not installed", hint="install util-linux")
    try:
        answer = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=_VERSION_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingToolError(f"{path} cannot be run: {error}") from error
    text = answer.stdout.strip()
    match = _VERSION.fullmatch(text)
    if match is None:
        raise MissingToolError(f"{path} --version prints {text!r}, which is not a version of fio")
    if (int(match[1]), int(match[2])) < MINIMUM_VERSION:
        raise MissingToolError(f"{path} is {text}, too old", hint=f"install version {wanted} or newer")
    return Fio(path=path, version=text.removeprefix("fio-"))


def job_file_text(
    workload: Workload,
    regions: Sequence[JobRegions],
    *,
    seed: int,
    runtime_ns: int | None = None,
    group_joins: Mapping[str, str] | None = None,
    folder: str | None = None,
    stretch_window_ms: int | None = None,
    says_start: bool = False,
    phase_window_ms: int | None = None,
) -> str:
    """Writes the job file for fio.

    Args:
        workload: What to run.
        regions: The region that each clone of each job works on.
        seed: Seed of random offsets, for jobs that do not set their own.
        runtime_ns: Replaces the runtime of time-based jobs.
        group_joins: For each control group, the file that takes the PIDs of processes joining it.
        folder: Directory of the regions' files, relative to fio's working directory; None for devices.
        stretch_window_ms: Window of the histogram logs of a switchback's stretch, which has no ramp time and
            whose clones say when they begin; None for a run of its own.
        says_start: Whether clones say when they begin in any case (`blklab.linux.load.fio_start`).
        phase_window_ms: Window of the histogram logs of a run with planned changes, which take the place of
            logs of rates; its clones say when they begin. None for other runs.
    """
    if phase_window_ms is not None:
        recorded = [*_PHASE_PERCENTILES, *histogram_options(phase_window_ms)]
    elif stretch_window_ms is None:
        recorded = [*_PERCENTILES, *rate_options(rate_window_ms(workload, runtime_ns))]
    else:
        recorded = [*_STRETCH_PERCENTILES, *histogram_options(stretch_window_ms)]
    lines = ["[global]", *_GLOBAL, *recorded]
    number = 0
    names = {job.name: _section_name(job) for job in workload.jobs}
    waited_for = {job.wait_for for job in workload.jobs}
    for job, clones in zip(workload.jobs, regions, strict=True):
        together = job.name in waited_for and len(clones) > 1
        step = _common_step(workload, job, clones) if together else 0
        for clone, region in enumerate(clones[:1] if together else clones):
            name = names[job.name]
            files = _file_lines(workload, job, region, folder)
            lines += ["", f"[{name}]", *files, f"ioengine={job.ioengine}"]
            lines += _extent_lines(job, region)
            if together:
                # fio waits for the clones of one section, not for several sections of one name.
                lines += [f"offset_increment={step}", f"numjobs={len(clones)}"]
            lines.append(f"direct={int(job.direct)}")
            if clone == 0:
                lines += [option for option, on in _starts(job).items() if on]
            if job.wait_for is not None:
                lines.append(f"wait_for={names[job.wait_for]}")
            lines += _seed_lines(job, seed)
            lines += _option_lines(job, runtime_ns, ramps=stretch_window_ms is None)
            if stretch_window_ms is None:
                lines += log_lines(job, number + 1)
            number += len(clones) if together else 1
            told = [group_joins[job.cgroup]] if job.cgroup is not None and group_joins is not None else []
            if stretch_window_ms is not None or phase_window_ms is not None or says_start:
                told.append(f"{STARTED}.{number}")
            if told:
                # fio's process starts the shell, so $PPID is the process to join; tee reports a refusal.
                # Clones of one section share their file.
                tee = "tee -a" if together else "tee"
                lines.append(f"exec_prerun=echo $PPID | {tee} {' '.join(told)}")
    return "\n".join(lines) + "\n"


def _file_lines(workload: Workload, job: Job, region: Region, folder: str | None) -> list[str]:
    """The files of a clone: their names, or, for very many, the form of the names.

    Raises:
        JobFileError: if there are too many for a list, and their numbers do not begin with 0.
    """
    names = [part.filename if folder is None else f"{folder}/{part.filename}" for part in region.parts]
    listed = ":".join(map(_escaped, names))
    if len(listed) < _LONGEST_VALUE:
        return [f"filename={listed}"]
    common = names[0].removesuffix("0")
    if names == [f"{common}{number}" for number in range(len(names))]:
        return [f"nrfiles={len(names)}", f"filename_format={common}$filenum"]
    raise JobFileError(
        f"job {job.name} works on {len(names)} files, and fio reads names of {_LONGEST_VALUE - 1} characters",
        source=workload.source,
        line=job.option_lines.get("nrfiles", job.line),
        option="nrfiles",
        hint="lower nrfiles or numjobs",
    )


def _extent_lines(job: Job, region: Region) -> list[str]:
    """Place and length of a clone's part of its files.

    Whole blocks only: in a longer file or device fio would add a last block that reaches beyond the part.
    """
    block = job.smallest_block_bytes
    whole = sum(max(part.size_bytes // block, 1) * block for part in region.parts)
    lines = [f"offset={region.offset_bytes}", f"size={region.pass_bytes or whole}"]
    ends = sorted(part.end_bytes for part in region.parts) if job.file_lengths else [region.end_bytes]
    if ends[0] < ends[-1]:
        # The files are laid out, and fio takes those within the range as they are.
        lines.append(f"filesize={ends[0]}-{ends[-1]}")
    elif region.pass_bytes is not None:
        lines.append(f"filesize={region.end_bytes}")
    return lines


def _common_step(workload: Workload, job: Job, clones: JobRegions) -> int:
    """Distance from one clone's region to the next within a file.

    Raises:
        JobFileError: if the clones have files of their own.
    """
    step = clones[1].offset_bytes - clones[0].offset_bytes
    for before, after in pairwise(clones):
        if after.filename != before.filename or after.offset_bytes - before.offset_bytes != step:
            raise JobFileError(
                f"job {job.name}: another job waits for its clones, which have files of their own",
                source=workload.source,
                line=job.line,
                option="wait_for",
                hint="let them share a file (filename=…), or test on a device",
            )
    return step


def _section_name(job: Job) -> str:
    return job.name if _PLAIN_NAME.fullmatch(job.name) and job.name != "global" else f"job-{job.line}"


def _starts(job: Job) -> dict[str, bool]:
    """Options of the first clone of a job, which the others follow."""
    return {"stonewall": job.stonewall, "new_group": job.new_group}


def _seed_lines(job: Job, seed: int) -> list[str]:
    """The seed of random offsets; fio heeds it only without its own sequence (`init.c`, 3.33)."""
    return [] if "randseed" in job.options else ["randrepeat=0", f"randseed={seed}"]


def _option_lines(job: Job, runtime_ns: int | None, *, ramps: bool) -> list[str]:
    lines = []
    if job.time_based and "runtime" not in job.options and runtime_ns is not None:
        lines.append(f"runtime={max(runtime_ns // 1000, 1)}us")
    left_out = {*_OURS, *(NUMA_OPTIONS if missing_nodes(job) else ())}
    if "randseed" not in job.options:
        left_out |= {"randrepeat", "allrandrepeat"}
    for option, value in job.options.items():
        if option in left_out or (option == "ramp_time" and not ramps):
            continue
        if option == "runtime" and job.time_based and runtime_ns is not None:
            lines.append(f"runtime={max(runtime_ns // 1000, 1)}us")
        elif option == "ramp_time" and ramp_time_ns(job, runtime_ns) < job.ramp_time_ns:
            lines.append(f"ramp_time={max(ramp_time_ns(job, runtime_ns) // 1000, 1)}us")
        elif value:
            lines.append(f"{option}={value}")
        else:
            lines.append(option)
    return lines


def ramp_time_ns(job: Job, runtime_ns: int | None) -> int:
    """The ramp time; a runtime that replaces the job's own also limits it, so that short runs stay short."""
    return (
        min(job.ramp_time_ns, runtime_ns) if job.time_based and runtime_ns is not None else job.ramp_time_ns
    )


def _escaped(filename: str) -> str:
    """Fio separates several file names by colons."""
    return filename.replace("\\", "\\\\").replace(":", "\\:")


def expected_runtime_ns(workload: Workload, runtime_ns: int | None) -> int | None:
    """The time fio should take by its jobs' own runtimes; None if a job has none."""
    phase_start = latest = 0
    ends: dict[str, int] = {}
    for job in workload.jobs:
        if job.stonewall:
            phase_start = latest
        own = runtime_ns if job.time_based and runtime_ns is not None else job.runtime_ns
        if own is None:
            return None
        start = max(phase_start, ends.get(job.wait_for, 0) if job.wait_for is not None else 0)
        ends[job.name] = start + job.startdelay_ns + ramp_time_ns(job, runtime_ns) + own
        latest = max(latest, ends[job.name])
    return latest


def check_job_file(fio: Fio, workload: Workload, text: str, folder: Path) -> None:
    """Lets fio itself parse the job file: it knows its own version's options and engines.

    Args:
        fio: The program.
        workload: The workload that the job file was written from.
        text: The job file.
        folder: fio's working directory.

    Raises:
        JobFileError: with fio's message.
    """
    (folder / JOB_FILE).write_text(text, encoding="utf-8")
    answer = subprocess.run(
        fio.command(parse_only=True),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=_VERSION_TIMEOUT_S,
        check=False,
    )
    if answer.returncode:
        messages = " ".join((answer.stderr or answer.stdout).split())
        raise JobFileError(f"fio {fio.version} rejects it: {messages}", source=workload.source)


@contextmanager
def started_fio(
    fio: Fio, text: str, folder: Path, *, read_only: bool, runtime_ns: int
) -> Iterator[LoadProcess]:
    """Starts a job file of a stretch in a directory; no task of fio is left when the context is closed.

    Args:
        fio: The program.
        text: The job file.
        folder: fio's working directory.
        read_only: Whether fio must not write.
        runtime_ns: The runtime of its jobs.
    """
    (folder / JOB_FILE).write_text(text, encoding="utf-8")
    (folder / OUTPUT_FILE).unlink(missing_ok=True)
    remove_starts(folder)
    remove_histogram_logs(folder)
    with load_process(
        fio.command(read_only=read_only),
        folder,
        limit_s=runtime_ns / NS_PER_SECOND + _GRACE_S,
        too_long=_TOO_LONG,
    ) as process:
        yield process


def read_report(folder: Path, ended: EndedProcess, workload: Workload) -> FioReport:
    """Reads the report of a fio that has ended."""
    try:
        output = (folder / OUTPUT_FILE).read_text(encoding="utf-8", errors="replace")
    except OSError:
        output = ""
    return read_fio_report(output, messages=ended.output, returncode=ended.returncode, workload=workload)


def run_fio(
    fio: Fio,
    workload: Workload,
    text: str,
    folder: Path,
    *,
    read_only: bool,
    runtime_ns: int | None,
    meanwhile: Callable[[LoadProcess], None] | None = None,
) -> FioReport:
    """Runs a job file in a directory until fio ends.

    No task of fio is left when this returns or raises, and none survives if this process is killed.

    Args:
        fio: The program.
        workload: The workload that the job file was written from.
        text: The job file.
        folder: fio's working directory.
        read_only: Whether fio must not write.
        runtime_ns: Replaces the runtime of time-based jobs, as in the job file.
        meanwhile: Called once fio has been started.

    Raises:
        RunFailedError: if fio hangs. Failures that fio reports are in the report.
    """
    (folder / JOB_FILE).write_text(text, encoding="utf-8")
    (folder / OUTPUT_FILE).unlink(missing_ok=True)
    remove_rate_logs(folder)
    remove_logs(folder)
    remove_histogram_logs(folder)
    remove_starts(folder)
    expected_ns = expected_runtime_ns(workload, runtime_ns)
    with load_process(
        fio.command(read_only=read_only),
        folder,
        limit_s=None if expected_ns is None else expected_ns / NS_PER_SECOND + _GRACE_S,
        too_long=_TOO_LONG,
    ) as process:
        if meanwhile is not None:
            meanwhile(process)
        ended = process.wait()
    report = read_report(folder, ended, workload)
    if not report.jobs:
        return report
    jobs = with_rates(report.jobs, folder, workload, rate_window_ms(workload, runtime_ns))
    return replace(report, jobs=jobs)
