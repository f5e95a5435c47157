"""hdparm's output as a sample, and workloads that declare themselves to be one of its tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.errors import JobFileError
from blklab.linux.load.hdparm import Hdparm, read_hdparm_report
from blklab.spec.workloads import Workload, parse_workload


def workload(tool: str) -> Workload:
    text = f"; tool: {tool}\n[reader]\nrw=read\nbs=2m\nsize=1g\n"
    return parse_workload(text, name="test", source="test.fio")


BUFFERED = "\n/dev/loop0:\n Timing buffered disk reads: 684 MB in  3.01 seconds = 227.32 MB/sec\n"
CACHED = "\n/dev/loop0:\n Timing cached reads:   26492 MB in  1.99 seconds = 13312.07 MB/sec\n"
SLOW = " Timing buffered disk reads:   2 MB in  4.00 seconds = 512.00 kB/sec\n"


def test_buffered_reads() -> None:
    report = read_hdparm_report(BUFFERED, returncode=0, workload=workload("hdparm -t"))
    (job,) = report.jobs
    (reads,) = job.directions
    assert (job.name, reads.direction, reads.bytes, reads.ios) == ("reader", "read", 684 << 20, 342)
    assert reads.bytes / (1 << 20) / (reads.runtime_ns / 1e9) == pytest.approx(227.32)
    assert reads.latency.count == 0
    slow = read_hdparm_report(SLOW, returncode=0, workload=workload("hdparm -t")).jobs[0]
    assert slow.runtime_ns == pytest.approx(4e9)


def test_cached_reads_are_counted_once() -> None:
    (job,) = read_hdparm_report(CACHED, returncode=0, workload=workload("hdparm -T")).jobs
    assert job.directions[0].bytes == 26492 << 19
    assert job.runtime_ns == pytest.approx(1.99e9, rel=1e-3)


@pytest.mark.parametrize(
    ("said", "returncode"),
    [("/dev/loop0: No such file or directory", 2), (BUFFERED, 1), (" Timing buffered disk reads: ", 0)],
)
def test_a_test_that_failed(said: str, returncode: int) -> None:
    report = read_hdparm_report(said, returncode=returncode, workload=workload("hdparm -t"))
    assert report.jobs == []
    assert report.error is not None and report.error.startswith("hdparm -t failed")


def test_a_test_that_was_killed() -> None:
    report = read_hdparm_report("/dev/loop0:", returncode=-9, workload=workload("hdparm -t"))
    assert report.error == "hdparm -t was killed by signal 9: /dev/loop0:"


def test_the_command_names_the_device() -> None:
    assert Hdparm("/sbin/hdparm", "9.65").command("hdparm -t", Path("/dev/loop0")) == [
        "/sbin/hdparm",
        "-t",
        "/dev/loop0",
    ]


def test_a_workload_is_a_test_or_none() -> None:
    assert workload("hdparm -T").tool == "hdparm -T"
    assert workload("").tool == ""
    with pytest.raises(JobFileError, match="tool takes hdparm -t or hdparm -T"):
        workload("rm -rf")
    two = "; tool: hdparm -t\n[a]\nrw=read\nsize=1m\n[b]\nrw=read\nsize=1m\n"
    with pytest.raises(JobFileError, match="with a single section"):
        parse_workload(two, name="two", source="two.fio")
