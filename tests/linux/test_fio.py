from __future__ import annotations

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from blklab import _core
from blklab.errors import InterruptedRunError, JobFileError, MissingToolError, RunFailedError
from blklab.linux.load import fio as fio_module
from blklab.linux.load import load_process
from blklab.linux.load.fio import Fio, check_job_file, expected_runtime_ns, find_fio, job_file_text, run_fio
from blklab.linux.load.fio_output import FioReport, latency_histogram, read_fio_report
from blklab.linux.processes.signals import signals_as_exceptions
from blklab.linux.scratch.layout import files_in_directory, regions_in_directory, regions_on_device
from blklab.spec.workloads import Workload, load_workload, parse_workload, shipped_workloads
from waiting import wait_until

needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
# Running fio needs a process namespace of its own.
runs_fio = pytest.mark.skipif(
    shutil.which("fio") is None or os.geteuid() != 0, reason="needs fio, and root for its process namespace"
)

SMALL = """
[reader]
rw=randread
bs=4k
size=2m
direct=1
number_ios=200
[writers]
rw=randrw
bs=4k
size=1m
numjobs=2
fdatasync=8
number_ios=80
"""
TIMED = """
[reader]
rw=randread
bs=4k
size=2m
direct=1
time_based
runtime=300ms
[writers]
rw=randrw
bs=4k
size=1m
numjobs=2
time_based
ramp_time=100ms
runtime=200ms
"""


def workload(text: str) -> Workload:
    return parse_workload(text, name="test", source="test.fio")


@pytest.fixture
def folder() -> Iterator[Path]:
    """On a disk: direct I/O does not work everywhere in memory."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="blklab-test-") as name:
        yield Path(name)


def lay_out(work: Workload, folder: Path) -> None:
    for name, length in files_in_directory([work]).items():
        (folder / name).write_bytes(os.urandom(length))


def run(work: Workload, folder: Path, **changes: Any) -> FioReport:
    lay_out(work, folder)
    text = job_file_text(work, regions_in_directory(work), seed=7)
    settled: dict[str, Any] = {"read_only": False, "runtime_ns": None, **changes}
    return run_fio(find_fio(), work, text, folder, **settled)


# Job files


def test_each_clone_is_a_section_with_all_it_needs() -> None:
    work = workload("[a]\nrw=write\nsize=1m\nnumjobs=2\nstonewall\nrandseed=3\n[b]\nfilename=x\nsize=1m\n")
    text = job_file_text(work, regions_on_device(work, "/dev/with:colon", 8 << 20), seed=7)
    sections = text.split("\n\n")
    assert len(sections) == 4
    assert "allow_file_create=0" in sections[0]
    assert "lat_percentiles=1" in sections[0]
    assert sections[1].splitlines()[:4] == [
        "[a]",
        "filename=/dev/with\\:colon",
        "ioengine=psync",
        "offset=0",
    ]
    assert "stonewall" in sections[1].splitlines()
    assert "stonewall" not in sections[2].splitlines()
    assert "offset=1048576" in sections[2].splitlines()
    assert "randseed=3" in sections[1]
    assert "randseed=7" in sections[3]
    assert "numjobs" not in text


def test_the_runtime_is_replaced_only_where_time_decides() -> None:
    work = workload("[a]\nsize=1m\ntime_based\nruntime=3\n[b]\nsize=1m\nruntime=4\n")
    text = job_file_text(work, regions_in_directory(work), seed=1, runtime_ns=250_000_000)
    assert "runtime=250000us" in text
    assert "runtime=4" in text.splitlines()


def test_a_runtime_is_given_to_time_based_jobs_that_have_none() -> None:
    work = workload("[a]\nsize=1m\ntime_based\n[b]\nsize=1m\n")
    text = job_file_text(work, regions_in_directory(work), seed=1, runtime_ns=250_000_000)
    assert text.count("runtime=250000us") == 1
    assert "runtime" not in job_file_text(work, regions_in_directory(work), seed=1)


def test_a_job_does_whole_blocks_of_its_part_only() -> None:
    # fio would do a seventh I/O where the file or device goes on.
    work = workload("[a]\nsize=25k\nbs=4k\n")
    assert "size=24576" in job_file_text(work, regions_on_device(work, "/dev/x", 1 << 20), seed=1)


def test_sections_with_odd_names_are_given_plain_ones() -> None:
    work = workload("[../a b]\nsize=1m\n")
    assert "[job-1]" in job_file_text(work, regions_in_directory(work), seed=1)


def test_expected_runtime_adds_up_over_stonewalls() -> None:
    text = "[a]\nsize=1m\nruntime=2\ntime_based\nramp_time=1\n[b]\nsize=1m\nruntime=9\n"
    text += "[c]\nstonewall\nsize=1m\nruntime=4\n"
    assert expected_runtime_ns(workload(text), None) == 13_000_000_000
    assert expected_runtime_ns(workload(text), 20_000_000_000) == 25_000_000_000
    assert expected_runtime_ns(workload("[a]\nsize=1m\n"), None) is None


@needs_fio
@pytest.mark.parametrize("name", sorted(shipped_workloads()))
def test_fio_takes_every_shipped_workload(name: str, tmp_path: Path) -> None:
    work = load_workload(name)
    text = job_file_text(work, regions_in_directory(work), seed=(1 << 53) - 1)
    check_job_file(find_fio(), work, text, tmp_path)


EXAMPLES = {
    "blockalign": "4k", "bssplit": "4k/60:64k/40", "io_size": "1m", "number_ios": "10", "prio": "3",
    "prioclass": "2", "randseed": "9", "rate": "1m", "rate_iops": "100", "runtime": "1s",
    "random_distribution": "zipf:1.2", "thinktime": "50us", "offset": "4k", "offset_increment": "4k",
    "ramp_time": "100ms", "startdelay": "10ms", "size": "1m", "filename": "x", "cgroup": "x",
    "cgroup_weight": "100", "clocksource": "clock_gettime", "description": "x", "percentile_list": "99",
    "cpus_allowed": "0", "fallocate": "none", "random_generator": "lfsr", "log_avg_msec": "100",
    "log_hist_msec": "100", "iodepth_batch_complete": "1", "iodepth_batch_complete_min": "1",
    "iodepth_low": "1", "sync": "dsync", "rate_process": "poisson", "readwrite": "randrw",
    "time_based": "0", "hipri": "0", "hipri_percentage": "0", "sqthread_poll": "0", "sqthread_poll_cpu": "0",
    "bsrange": "4k-16k", "cmdprio_bssplit": "4k/20/1/0", "directory": "/x", "filesize": "1m", "nrfiles": "1",
    "wait_for": "first", "zonemode": "none", "zonerange": "4k", "zonesize": "4k", "name": "x",
    "unified_rw_reporting": "both", "kb_base": "1024", "write_bw_log": "x", "write_lat_log": "y/x",
    "write_iops_log": "x", "write_hist_log": "x", "write_iolog": "x", "unit_base": "8", "numjobs": "2",
    "buffer_pattern": "0x5a", "dedupe_mode": "repeat", "verify_pattern": "0x5a", "verify_async_cpus": "0",
    "continue_on_error": "all", "ignore_error": "ENOSPC", "filename_format": "x", "threads": "1",
    "file_service_type": "random", "cpumask": "1", "cpus_allowed_policy": "split", "numa_cpu_nodes": "0",
    "numa_mem_policy": "default", "mem": "malloc", "hugepage-size": "2m", "thp": "0", "lockmem": "4k",
    "io_submit_mode": "inline", "max_latency": "1s", "thinktime_spin": "0", "steadystate": "iops:10%",
    "steadystate_duration": "1s", "steadystate_ramp_time": "1s", "write_hint": "none", "lockfile": "none",
    "sync_file_range": "write:8", "thinktime_blocks_type": "complete", "thinktime_iotime": "0",
    "zonecapacity": "0", "zone_reset_threshold": "0", "zone_reset_frequency": "0", "log_entries": "1024",
    "log_compression": "64k", "bwavgtime": "500", "iopsavgtime": "500", "clat_percentiles": "1",
    "log_alternate_epoch": "0", "log_alternate_epoch_clock_id": "0", "latency_window": "1s",
    "log_compression_cpus": "0", "log_unix_epoch": "0", "log_store_compressed": "0", "per_job_logs": "1",
    "verify_backlog": "8", "verify_backlog_batch": "4", "buffer_compress_chunk": "4k", "gtod_cpu": "1",
    "verify_interval": "512", "verify_offset": "64", "verify_async": "1", "openfiles": "1",
    "stats": "1", "nonvectored": "1", "force_async": "1", "mem_align": "4k", "flow_sleep": "10",
}  # fmt: skip
BESIDE = {
    "size": "", "filesize": "", "cgroup_weight": "size=1m\ncgroup=x\n",
    "zonerange": "zonemode=strided\nzonesize=4k\n",
    "zonesize": "zonemode=strided\n", "zoneskip": "zonemode=strided\nzonesize=4k\n",
    "cmdprio_percentage": "size=1m\nioengine=libaio\n", "cmdprio_bssplit": "size=1m\nioengine=libaio\n",
    "cmdprio_class": "size=1m\nioengine=libaio\n", "cmdprio": "size=1m\nioengine=libaio\n",
    "userspace_reap": "size=1m\nioengine=libaio\n", "hipri_percentage": "size=1m\nioengine=pvsync2\n",
    "nowait": "size=1m\nioengine=libaio\n", "uncached": "size=1m\nioengine=pvsync2\n",
    "thp": "size=1m\nioengine=mmap\n",
    "latency_target": "size=1m\nlatency_window=1s\n", "hipri": "size=1m\nioengine=pvsync2\n",
    "mem": "size=1m\n",
}  # fmt: skip
"""Lines that an option needs beside it; by default a size."""
IO_URING = ("fixedbufs", "registerfiles", "sqthread_poll", "sqthread_poll_cpu", "nonvectored", "force_async")


def _job_with(option: Any) -> str:
    """The lines of a job that has an option, with the name and type of value that the parser passes on."""
    name = option["name"]
    beside = BESIDE.get(name, "size=1m\n")
    if name in IO_URING:
        beside = "size=1m\nioengine=io_uring\n"
    if "zone" in beside:
        beside += "size=1m\n"
    return f"{beside}{name}={EXAMPLES.get(name, option['default'] or '1')}\n"


def _check_jobs(jobs: dict[str, str], folder: Path) -> None:
    """Has fio check jobs; one of them may wait for the job ``first``."""
    work = workload("[first]\nsize=1m\n" + "".join(f"[{name}]\n{lines}" for name, lines in jobs.items()))
    groups = {"x": "/sys/fs/cgroup/x/cgroup.procs"}
    text = job_file_text(work, regions_in_directory(work), seed=1, group_joins=groups)
    check_job_file(find_fio(), work, text, folder)


@needs_fio
def test_fio_takes_every_option_that_the_parser_takes(tmp_path: Path) -> None:
    options = [one for one in json.loads(_core.job_options()) if one["support"] != "refused"]
    jobs = {f"with-{option['name']}": _job_with(option) for option in options}
    try:
        _check_jobs(jobs, tmp_path)
    except JobFileError:
        # One by one, so that the first one that fails is named.
        for name, lines in jobs.items():
            _check_jobs({name: lines}, tmp_path)
        raise


@needs_fio
def test_every_option_of_fio_has_its_place() -> None:
    """Those of fio itself and of the engines that it was built with."""
    known = set()
    for option in json.loads(_core.job_options()):
        known |= {option["name"], *option["aliases"]}
        assert option["help"], option["name"]
    fio = find_fio().path

    def printed(argument: str) -> list[str]:
        answer = subprocess.run([fio, argument], capture_output=True, text=True, timeout=60, check=False)
        return answer.stdout.splitlines()

    def named(lines: list[str]) -> set[str]:
        return {line.split()[0].rstrip(":") for line in lines if re.match(r" *[a-z_-]+ *: ", line)}

    own = named(printed("--cmdhelp=all"))
    assert len(own) > 200
    assert own <= known, own - known
    for engine in printed("--enghelp")[1:]:
        of_engine = named(printed(f"--enghelp={engine.strip()}"))
        assert of_engine <= known, (engine, of_engine - known)


@needs_fio
def test_what_fio_refuses_is_an_error_in_its_words(tmp_path: Path) -> None:
    work = workload("[a]\nsize=1m\n")
    with pytest.raises(JobFileError, match=r"fio 3.* rejects it: .*no_such_option"):
        check_job_file(find_fio(), work, "[a]\nno_such_option=1\n", tmp_path)


# Versions


def fake_fio(folder: Path, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("setpriv", "unshare", "sh"):
        real = shutil.which(name)
        assert real is not None
        (folder / name).symlink_to(real)
    if version:
        program = folder / "fio"
        program.write_text(f"#!/bin/sh\necho {version}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(folder))


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="util-linux is not installed")
@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("", "fio is not installed"),
        ("fio-3.17", "too old"),
        ("fio-2.99", "too old"),
        ("hello", "not a version"),
    ],
)
def test_a_missing_or_old_fio_is_an_error(
    version: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_fio(tmp_path, version, monkeypatch)
    with pytest.raises(MissingToolError, match=message):
        find_fio()


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="util-linux is not installed")
@pytest.mark.parametrize("version", ["fio-3.18", "fio-3.33", "fio-3.40-12-gabcdef", "fio-4.0"])
def test_newer_versions_will_do(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_fio(tmp_path, version, monkeypatch)
    assert find_fio().version == version.removeprefix("fio-")


# Reports


@runs_fio
def test_a_run_gives_a_sample_for_each_section(folder: Path) -> None:
    report = run(workload(SMALL), folder)
    assert report.error is None
    reader, writers = report.jobs
    assert (reader.name, reader.clones, writers.name, writers.clones) == ("reader", 1, "writers", 2)
    assert [entry.direction for entry in reader.directions] == ["read"]
    assert [entry.direction for entry in writers.directions] == ["read", "write", "sync"]
    assert (reader.directions[0].ios, reader.directions[0].bytes) == (200, 200 * 4096)
    assert sum(entry.ios for entry in writers.directions if entry.direction != "sync") == 2 * 80
    assert reader.cpu_user_ns is not None
    assert reader.cpu_system_ns is not None


@runs_fio
def test_time_based_jobs_take_their_runtime(folder: Path) -> None:
    """At least that; a busy machine takes longer. A ramp time does not count."""
    report = run(workload(TIMED), folder)
    assert report.error is None
    reader, writers = report.jobs
    assert reader.runtime_ns > 0.29e9
    assert writers.runtime_ns > 0.19e9
    # fio tells the time of a processor in hundredths of a percent of the runtime, and rounds both.
    for job in report.jobs:
        assert job.cpu_user_ns is not None
        assert job.cpu_system_ns is not None
        assert 0 <= job.cpu_user_ns + job.cpu_system_ns <= 1.1 * job.clones * job.runtime_ns


@runs_fio
def test_bins_give_the_percentiles_that_fio_gives(folder: Path) -> None:
    """Fio's own percentiles of total latency are computed from the same bins."""
    run(workload(SMALL), folder)
    jobs = json.loads((folder / "output.json").read_text())["jobs"]
    compared = 0
    for job in jobs:
        for block in (job["read"]["lat_ns"], job["write"]["lat_ns"], job["sync"]["lat_ns"]):
            if not block["N"]:
                continue
            histogram = latency_histogram(block)
            assert sum(histogram.bins.values()) == block["N"] == histogram.count
            for percent, value_ns in block["percentile"].items():
                # Ours stays within the observed extremes, which a bin's middle may lie beyond.
                expected = min(max(value_ns, histogram.min_ns), histogram.max_ns)
                assert histogram.percentile_ns(float(percent) / 100) == expected, percent
                compared += 1
    assert compared >= 5 * 15


@runs_fio
def test_merged_clones_agree_with_fio_s_own_grouping(folder: Path) -> None:
    """A fixed number of I/Os, once merged by fio and once by us: every I/O is counted, in bins too."""
    work = workload("[w]\nrw=randread\nbs=4k\nsize=2m\nnumjobs=3\ndirect=1\nnumber_ios=400\n")
    lay_out(work, folder)
    text = job_file_text(work, regions_in_directory(work), seed=7)
    (folder / "grouped.fio").write_text(text.replace("[global]", "[global]\ngroup_reporting=1"))
    subprocess.run(
        ["fio", "--output-format=json+", "--output=grouped.json", "grouped.fio"], cwd=folder, check=True
    )
    (grouped,) = json.loads((folder / "grouped.json").read_text())["jobs"]
    sample = run(work, folder).jobs[0]
    latency = sample.directions[0].latency
    assert grouped["read"]["total_ios"] == sample.directions[0].ios == 1200
    assert grouped["read"]["lat_ns"]["N"] == latency.count == sum(latency.bins.values()) == 1200
    assert sum(grouped["read"]["lat_ns"]["bins"].values()) == 1200


def entry(name: str, bins: dict[str, int], **changes: Any) -> dict[str, Any]:
    count = sum(bins.values())
    mean = sum(int(value) * number for value, number in bins.items()) / count
    block = {"N": count, "mean": mean, "min": min(map(int, bins)), "max": max(map(int, bins)), "bins": bins}
    return {
        "jobname": name,
        "error": 0,
        "read": {"total_ios": count, "io_bytes": 4096 * count, "runtime": 100, "lat_ns": block},
        "sync": {"total_ios": 0, "lat_ns": {"N": 0, "mean": 0.0, "min": 0, "max": 0}},
        "job_runtime": 100,
        "usr_cpu": 10.0,
        "sys_cpu": 20.0,
        "ctx": 5,
        **changes,
    }


def test_clones_are_merged_bin_by_bin_and_never_averaged() -> None:
    work = workload("[a]\nsize=1m\nnumjobs=2\n")
    output = {"jobs": [entry("a", {"100": 90, "200": 10}), entry("a", {"100": 5, "9000": 95})]}
    report = read_fio_report(json.dumps(output, indent=1), messages="", returncode=0, workload=work)
    latency = report.jobs[0].directions[0].latency
    assert latency.bins == {100: 95, 200: 10, 9000: 95}
    assert (latency.count, latency.min_ns, latency.max_ns) == (200, 100, 9000)
    assert latency.percentile_ns(0.5) == 200
    assert latency.mean_ns == pytest.approx((95 * 100 + 10 * 200 + 95 * 9000) / 200)
    assert report.jobs[0].cpu_user_ns == 2 * 10_000_000
    assert report.jobs[0].cpu_system_ns == 2 * 20_000_000
    assert report.jobs[0].context_switches == 10


@pytest.mark.parametrize(
    ("output", "messages", "returncode", "expected"),
    [
        ("", "fio: engine libfoo not loadable", 1, "libfoo not loadable"),
        ('{\n"jobs": [', "", 0, "fio failed"),
        (json.dumps({"jobs": []}, indent=1), "", 0, "0 of 1 jobs"),
        (json.dumps({"jobs": [entry("a", {"1": 1}, error=28)]}, indent=1), "", 1, "No space left on device"),
        ("", "", -9, "signal 9"),
    ],
)
def test_failures_are_told_in_words(output: str, messages: str, returncode: int, expected: str) -> None:
    report = read_fio_report(
        output, messages=messages, returncode=returncode, workload=workload("[a]\nsize=1m\n")
    )
    assert report.error is not None
    assert expected in report.error
    assert report.jobs == []


def test_messages_before_the_json_are_warnings() -> None:
    output = "fio: something odd\n" + json.dumps({"jobs": [entry("a", {"1": 1})]}, indent=1)
    report = read_fio_report(
        output, messages="note: x\nnote: x\n", returncode=0, workload=workload("[a]\nsize=1m\n")
    )
    assert report.error is None
    assert report.warnings == ["note: x", "fio: something odd"]


# Running fio


@runs_fio
def test_a_missing_file_is_a_failure_and_is_not_created(folder: Path) -> None:
    work = workload("[a]\nsize=1m\n")
    text = job_file_text(work, regions_in_directory(work), seed=7)
    report = run_fio(find_fio(), work, text, folder, read_only=False, runtime_ns=None)
    assert report.error is not None
    assert not (folder / "read-0").exists()


@runs_fio
def test_read_only_keeps_fio_from_writing(folder: Path) -> None:
    report = run(workload("[a]\nrw=write\nsize=1m\n"), folder, read_only=True)
    assert report.error is not None
    assert "read-only" in report.error or "readonly" in report.error


@runs_fio
def test_priorities_take_effect(folder: Path) -> None:
    """As the kernel sees them, asked from outside while the job runs."""
    if shutil.which("ionice") is None:
        pytest.skip("ionice (util-linux) is not installed")
    seen: list[tuple[str, int]] = []
    # nice=4 adds to the nice value that fio inherits, and the tests may run under nice.
    wanted = ("best-effort: prio 6", min(19, os.getpriority(os.PRIO_PROCESS, 0) + 4))

    def priority_is_seen() -> bool:
        for pid in processes_in(folder):
            answer = subprocess.run(["ionice", "-p", str(pid)], capture_output=True, text=True, check=False)
            with suppress(ProcessLookupError):
                seen.append((answer.stdout.strip(), os.getpriority(os.PRIO_PROCESS, pid)))
        return wanted in seen

    with terminated_once(priority_is_seen, "a task of fio has the priority"):
        run(workload(f"{LONG}prioclass=2\nprio=6\nnice=4\n"), folder)
    assert wanted in seen


def processes_in(folder: Path) -> list[int]:
    """Processes in this working folder."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with suppress(OSError):
            if link.readlink() == folder:
                found.append(int(link.parent.name))
    return found


LONG = "[a]\nrw=randread\nsize=1m\nnumjobs=3\ntime_based\nruntime=1h\n"
"""Ended by the tests themselves."""


@contextmanager
def terminated_once(condition: Callable[[], bool], awaited: str) -> Iterator[None]:
    """Sends this process a SIGTERM once a condition holds, which must end the work in the context."""
    waits = threading.get_ident()

    def send() -> None:
        try:
            wait_until(condition, awaited)
        finally:
            # Any thread can take a signal to the process, and then the one that waits is not woken.
            signal.pthread_kill(waits, signal.SIGTERM)

    sender = threading.Thread(target=send)
    with pytest.raises(InterruptedRunError), signals_as_exceptions():
        sender.start()
        yield
    sender.join()


@runs_fio
def test_a_signal_ends_fio_and_all_its_tasks(folder: Path) -> None:
    with terminated_once(lambda: len(processes_in(folder)) >= 5, "all tasks of fio are alive"):
        run(workload(LONG), folder)
    assert processes_in(folder) == []


@runs_fio
def test_fio_that_hangs_is_ended(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fio_module, "_GRACE_S", 0.2)
    with pytest.raises(RunFailedError, match="still running"):
        run(workload(LONG), folder, runtime_ns=500_000_000)
    assert processes_in(folder) == []


@runs_fio
def test_nothing_is_started_once_blklab_is_dead(folder: Path) -> None:
    """The shell starts no program if its parent is not the process that asked for it."""
    marker = folder / "started"
    answer = subprocess.run(
        [
            "setpriv",
            "--pdeathsig",
            "KILL",
            "sh",
            "-c",
            load_process._ONLY_UNDER_PARENT,
            "1",
            "touch",
            str(marker),
        ],
        check=False,
    )
    assert answer.returncode != 0
    assert not marker.exists()


def test_a_fio_command_names_no_place() -> None:
    command = Fio(path="/usr/bin/fio", version="3.33").command(read_only=True)
    assert command[0] == "/usr/bin/fio"
    assert "--readonly" in command
    assert command[-1] == "job.fio"
