"""Replays on a real block device: each recorded I/O once, by one process for each task."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.errors import MissingToolError
from blklab.shipped import guest_program
from blklab.spec.workloads import Workload, load_workload
from host.conftest import Filesystem, cell, opened

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(guest_program() is None, reason="the program blkguest is not built (make build)"),
]

TARGET = "loop:64m,dir=/dev/shm"
READS, WRITES = 200, 100


@pytest.fixture
def recorded(tmp_path: Path) -> Workload:
    """Two tasks: a reader, and a writer that flushes after every tenth write."""
    events = []
    for number in range(READS):
        at_us = number * 400
        events += [
            (at_us, "Q", 1, f"R {number * 64} + 8 [reader]"),
            (at_us + 150, "C", 1, f"R {number * 64} + 8 [0]"),
        ]
    for number in range(WRITES):
        at_us = number * 500 + 7
        place = f"{20_000 + number * 16} + 16"
        letters = "FWFS" if number % 10 == 9 else "WS"
        events += [(at_us, "Q", 2, f"{letters} {place} [writer]"), (at_us + 130, "C", 2, f"WS {place} [0]")]
    path = tmp_path / "two.txt"
    path.write_text(
        "".join(
            f"  8,0 0 {number} {at_us // 1_000_000}.{at_us % 1_000_000:06d}000 {task} {action} {rest}\n"
            for number, (at_us, action, task, rest) in enumerate(sorted(events))
        )
    )
    return load_workload(f"trace:{path}")


def check(target: str, workload: Workload) -> None:
    with opened(target) as session:
        session.check([cell("mq-deadline", workload).scheduler], [workload])
        told: list[str] = []
        session.prepare([workload], told.append)
        sample = session.run(cell("mq-deadline", workload))
    assert sample.status == "ok", sample.error
    assert sample.engine["name"] == "blkguest replay"
    assert any(line.startswith("recorded think times are cut by") for line in told), told
    assert any(sample.engine["own_path"] in line for line in told), told
    done = {(job.name, one.direction): one.ios for job in sample.jobs for one in job.directions}
    assert done == {("reader", "read"): READS, ("writer", "write"): WRITES, ("writer", "sync"): WRITES // 10}
    times = {job.name: job.runtime_ns for job in sample.jobs}
    # Think times are kept, however fast the disk is.
    assert times["reader"] > (READS - 1) * 250_000
    assert times["writer"] > (WRITES - 1) * 370_000


def test_every_io_is_made_once_on_a_device(recorded: Workload) -> None:
    check(TARGET, recorded)


def test_every_io_is_made_once_on_files(recorded: Workload, ext4: Filesystem) -> None:
    check(str(ext4.folder), recorded)


def test_a_recording_of_one_block(tmp_path: Path) -> None:
    # Too small for the replay's own time to be measured by two sizes.
    rows = []
    for number in range(0, 2 * READS, 2):
        for row, rest in ((number, "Q R 8 + 8 [one]"), (number + 1, "C R 8 + 8 [0]")):
            rows.append(f"  8,0 0 {row} 0.{row * 100:09d} 7 {rest}\n")
    path = tmp_path / "one.txt"
    path.write_text("".join(rows))
    workload = load_workload(f"trace:{path},scale-to=touched")
    with opened(TARGET) as session:
        session.check([cell("none", workload).scheduler], [workload])
        session.prepare([workload], lambda _: None)
        sample = session.run(cell("none", workload))
    assert sample.status == "ok", sample.error
    assert "own_path" in sample.engine
    assert [one.ios for one in sample.jobs[0].data_directions()] == [READS]


def test_a_task_with_several_ios_in_flight(tmp_path: Path) -> None:
    # By fours, each of which waits for the four before.
    rows = []
    for number in range(READS):
        first_us, place = number // 4 * 300 + number % 4, f"R {number * 64} + 8"
        rows += [(first_us, "Q", f"{place} [deep]"), (first_us + 150, "C", f"{place} [0]")]
    path = tmp_path / "deep.txt"
    path.write_text(
        "".join(
            f"  8,0 0 {number} {at_us // 1_000_000}.{at_us % 1_000_000:06d}000 7 {action} {rest}\n"
            for number, (at_us, action, rest) in enumerate(sorted(rows))
        )
    )
    workload = load_workload(f"trace:{path}")
    with opened(TARGET) as session:
        session.check([cell("none", workload).scheduler], [workload])
        session.prepare([workload], lambda _: None)
        sample = session.run(cell("none", workload))
    assert sample.status == "ok", sample.error
    assert [one.ios for one in sample.jobs[0].data_directions()] == [READS]
    assert sample.jobs[0].runtime_ns > (READS // 4 - 1) * 100_000


def test_groups_and_priorities_are_the_tasks(recorded: Workload, tmp_path: Path) -> None:
    text = recorded.text.replace("[reader]\n", "[reader]\ncgroup=fast\nprioclass=2\nprio=1\n")
    workload = recorded.model_copy(
        update={
            "text": text,
            "jobs": [
                job.model_copy(update={"cgroup": "fast", "prioclass": 2, "prio": 1})
                if job.name == "reader"
                else job
                for job in recorded.jobs
            ],
        }
    )
    check(TARGET, workload)


def test_a_missing_program_is_named(recorded: Workload, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("blklab.shipped.guest_program", lambda: None)
    with opened(TARGET) as session, pytest.raises(MissingToolError, match="blkguest"):
        session.check([cell("none", recorded).scheduler], [recorded])


def test_the_steps_can_be_printed(recorded: Workload) -> None:
    with opened(TARGET) as session:
        steps = session.commands(cell("none", recorded))
    assert " replay " in steps[-1]
    assert steps[-2].startswith("cat > replay.json <<'END'\n{")
