"""The program that replays on hosts: its request, and answers whole and damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from blklab.errors import JobFileError
from blklab.linux.load.replay import (
    OwnPath,
    OwnPaths,
    PathOfSize,
    check_replay,
    read_replay_report,
    replay_request,
)
from blklab.linux.load.replay_path import ios_in_turn
from blklab.linux.queue.hardware import SegmentLimits
from blklab.linux.scratch.layout import regions_in_directory, regions_on_device
from blklab.shipped import guest_program
from blklab.spec.workloads import Workload, load_workload, parse_workload
from plain_simulation import simulate

TRACE = """\
  8,0 0 1 0.000000000 100 Q R 8 + 8 [a]
  8,0 0 2 0.000100000 100 C R 8 + 8 [0]
  8,0 0 3 0.000300000 200 Q WS 8000 + 16 [b]
  8,0 0 4 0.000900000 200 C WS 8000 + 16 [0]
"""


@pytest.fixture
def workload(tmp_path: Path) -> Workload:
    path = tmp_path / "two.txt"
    path.write_text(TRACE)
    return load_workload(f"trace:{path}")


def test_each_task_gets_its_place_and_its_group(workload: Workload) -> None:
    regions = regions_in_directory(workload)
    path = OwnPath(PathOfSize(7, 8), PathOfSize(9, 10))
    paths = OwnPaths(synchronous=path, asynchronous=path)
    text = replay_request(
        workload,
        regions,
        folder=Path("/w/data"),
        group_files={"g": "/g/cgroup.procs"},
        own_paths=paths,
        segment_limits=SegmentLimits(254, 65_536),
    )
    request = json.loads(text)
    assert request["text"] == workload.text
    assert request["places"] == [{"path": "/w/data/written-0", "offset": 0, "bytes": 24576}] * 2
    assert request["groups"] == {"g": "/g/cgroup.procs"}
    asked = {"read": {"fixed_ns": 7, "per_mib_ns": 8}, "write": {"fixed_ns": 9, "per_mib_ns": 10}}
    assert request["own_paths"] == {"synchronous": asked, "asynchronous": asked}
    assert request["segment_limits"] == {"number": 254, "bytes": 65_536}
    on_device = regions_on_device(workload, "/dev/loop9", 1 << 30)
    text = replay_request(
        workload, on_device, folder=None, group_files={}, own_paths=OwnPaths(), segment_limits=None
    )
    places = json.loads(text)["places"]
    assert {place["path"] for place in places} == {"/dev/loop9"}


def test_an_answer_without_jobs_is_an_error() -> None:
    report = read_replay_report('{"error": {"message": "no room"}}', messages="", returncode=1)
    assert (report.jobs, report.error) == ([], "the replay failed: no room")
    for text in ("", "{", "[]", "{}", '{"jobs": [{}]}', '{"error": 3}'):
        report = read_replay_report(text, messages="killed", returncode=-9)
        assert report.error == "the replay failed (exit code -9): killed", text


@pytest.mark.skipif(guest_program() is None, reason="the program blkguest is not built (make build)")
def test_jobs_of_fio_beside_a_replay_are_refused_on_hosts(workload: Workload) -> None:
    check_replay(workload)
    mixed = parse_workload(workload.text + "\n[fio]\nrw=randread\nnumber_ios=3\n", name="m", source="m")
    with pytest.raises(JobFileError, match=r"\[fio\] replays nothing"):
        check_replay(mixed)


@pytest.mark.parametrize("writes", [False, True])
def test_its_own_time_is_measured_by_ios_in_turn_without_think_time(*, writes: bool) -> None:
    # A disk of 100 µs, which would serve many at once.
    (job,) = simulate("fixed", ios_in_turn(1 << 20, 4096, writes=writes)).jobs
    (done,) = job.data_directions()
    assert (done.direction, done.ios) == ("write" if writes else "read", 2000)
    assert job.runtime_ns == pytest.approx(2000 * 100_000, rel=0.001)


def test_its_own_time_is_measured_for_a_second_at_most() -> None:
    (job,) = simulate("fixed,latency=5ms", ios_in_turn(1 << 20, 4096, writes=False)).jobs
    (done,) = job.data_directions()
    assert done.ios == 200


def test_a_time_grows_with_the_data() -> None:
    path = PathOfSize.through((4096, 13_000), (128 << 10, 44_000))
    assert path.ns(4096) == pytest.approx(13_000, abs=2)
    assert path.ns(128 << 10) == pytest.approx(44_000, abs=2)
    assert PathOfSize.through((4096, 13_000), (128 << 10, 9_000)) == PathOfSize(13_000, 0)
