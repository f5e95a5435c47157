"""Replays on a real block device: each recorded I/O once, by one process for each task."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from blklab.errors import MissingToolError
from blklab.linux.disks.resolution import resolve
from blklab.linux.queue.hardware import hardware_queues, segment_limits
from blklab.linux.recording.recorder import recording_of_a_moment
from blklab.linux.recording.request import recording_request
from blklab.recordings.trace import NEVER, Trace, read_trace
from blklab.records.samples import RunSample
from blklab.shipped import guest_program
from blklab.spec.workloads import Workload, load_workload
from host.conftest import Filesystem, cell, opened

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(guest_program() is None, reason="the program blkguest is not built (make build)"),
]

TARGET = "loop:64m,dir=/dev/shm"
READS, WRITES, SINGLE = 200, 100, 20


Events = list[tuple[int, str, int, str]]
"""Each a time in microseconds, blktrace's letter, a task, and the rest of the line."""


def load_of(events: Events, path: Path, options: str = "", processors: Sequence[int] = ()) -> Workload:
    """Writes events as blkparse would print them; the workload that replays them.

    Tasks have their processors in turn.
    """
    on = processors or (0,)
    lines = [
        f"  8,0 {on[task % len(on)]} {number} {at_us / 1e6:.9f} {task} {action} {rest}"
        for number, (at_us, action, task, rest) in enumerate(sorted(events))
    ]
    path.write_text("\n".join([*lines, ""]))
    return load_workload(f"trace:{path}{options}")


def replayed(target: str, workload: Workload, scheduler: str) -> tuple[RunSample, list[str]]:
    """A run that succeeded, and what was announced before it."""
    told: list[str] = []
    with opened(target) as session:
        session.check([cell(scheduler, workload).scheduler], [workload])
        session.prepare([workload], told.append)
        sample = session.run(cell(scheduler, workload))
    assert sample.status == "ok", sample.error
    return sample, told


@pytest.fixture
def recorded(tmp_path: Path) -> Workload:
    """Two tasks: a reader, and a writer that flushes after every tenth write."""
    events: Events = []
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
    return load_of(events, tmp_path / "two.txt")


def check(target: str, workload: Workload) -> None:
    sample, told = replayed(target, workload, "mq-deadline")
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
    events: Events = []
    for number in range(0, 2 * READS, 2):
        events += [(number, "Q", 7, "R 8 + 8 [one]"), (number + 1, "C", 7, "R 8 + 8 [0]")]
    workload = load_of(events, tmp_path / "one.txt", ",scale-to=touched")
    sample, _ = replayed(TARGET, workload, "none")
    assert "own_path" in sample.engine
    assert [one.ios for one in sample.jobs[0].data_directions()] == [READS]


def test_a_task_with_several_ios_in_flight(tmp_path: Path) -> None:
    # By fours, each of which waits for the four before; then one at a time, which are synchronous calls.
    events: Events = []
    for number in range(READS):
        first_us = number // 4 * 300 + number % 4
        if number >= READS - SINGLE:
            first_us = READS // 4 * 300 + (number - READS + SINGLE) * 300
        place = f"R {number * 64} + 8"
        events += [(first_us, "Q", 7, f"{place} [deep]"), (first_us + 150, "C", 7, f"{place} [0]")]
    sample, _ = replayed(TARGET, load_of(events, tmp_path / "deep.txt"), "none")
    assert [one.ios for one in sample.jobs[0].data_directions()] == [READS]
    assert sample.jobs[0].runtime_ns > ((READS - SINGLE) // 4 + SINGLE - 1) * 100_000


def test_each_worker_of_a_pool_has_a_thread(ext4: Filesystem, tmp_path: Path) -> None:
    # Two I/Os in flight, by three workers in irregular turns.
    workers = [number * number % 3 if number % 4 else number // 4 % 3 for number in range(READS)]
    events: Events = []
    for number, worker in enumerate(workers):
        at_us, place = number * 300, f"R {number * 64} + 16"
        events.append((at_us, "Q", worker + 1, f"{place} [kworker/u8:{worker}]"))
        events.append((at_us + 500, "C", worker + 1, f"{place} [0]"))
    workload = load_of(events, tmp_path / "pool.txt")
    trace = recorded_replay(str(ext4.folder), workload, tmp_path / "replay.blkrecord")
    # The replay's own time is measured with other sizes.
    mine = (trace.ios["bytes"] == 8192) & (np.array(trace.names) == "blkguest")[trace.ios["command"]]
    order = np.argsort(trace.ios["queued_ns"][mine])
    threads = trace.ios["tid"][mine][order].tolist()
    numbers = {thread: worker for worker, thread in zip(workers, threads, strict=True)}
    assert [numbers[thread] for thread in threads] == workers
    assert len(numbers) == 3


def test_tasks_keep_to_the_processors_that_they_had_stayed_on(ext4: Filesystem, tmp_path: Path) -> None:
    ours = sorted(os.sched_getaffinity(0))
    if len(ours) < 2 or ours != list(range(len(ours))):
        pytest.skip("this takes two processors, and all that there are")
    first, last = ours[0], ours[-1]
    events: Events = []
    for number in range(READS):
        for task in (1, 2):
            at_us, place = number * 300 + task * 10, f"R {number * 64} + 16"
            events += [(at_us, "Q", task, f"{place} [t{task}]"), (at_us + 100, "C", task, f"{place} [0]")]
    workload = load_of(events, tmp_path / "two.txt", processors=(first, last))
    trace = recorded_replay(str(ext4.folder), workload, tmp_path / "replay.blkrecord")
    # The replay's own time is measured with other sizes.
    mine = (trace.ios["bytes"] == 8192) & (np.array(trace.names) == "blkguest")[trace.ios["command"]]
    tasks, counts = np.unique(trace.ios["tid"][mine], return_counts=True)
    assert counts.tolist() == [READS, READS]
    used = [set(trace.ios["processor"][mine & (trace.ios["tid"] == task)].tolist()) for task in tasks]
    assert sorted(used, key=min) == [{first}, {last}]


def test_large_ios_are_not_split_for_their_buffer(ext4: Filesystem, tmp_path: Path) -> None:
    leaf = resolve(str(ext4.folder)).leaves[0]
    sectors = 2 * hardware_queues(leaf.name).max_sectors_kb
    if sectors < 2 * 8 * segment_limits([leaf.name]).number:
        pytest.skip("from pages that lie apart, the largest request has segments enough, or nearly so")
    if "[never]" in Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text():
        pytest.skip("this kernel gives programs no huge pages")
    events: Events = []
    for number in range(SINGLE):
        place = f"R {number * sectors} + {sectors}"
        at_us = number * 2000
        events += [(at_us, "Q", 1, f"{place} [large]"), (at_us + 1000, "C", 1, f"{place} [0]")]
    workload = load_of(events, tmp_path / "large.txt")
    trace = recorded_replay(str(ext4.folder), workload, tmp_path / "replay.blkrecord")
    whole = (trace.ios["bytes"] == sectors * 512) & (trace.ios["split_ns"] == NEVER)
    # The file system cuts those that lie in two extents.
    assert int(whole.sum()) > 0.8 * SINGLE


def test_the_data_of_a_replay_lie_in_as_many_segments(ext4: Filesystem, tmp_path: Path) -> None:
    if "[never]" in Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text():
        pytest.skip("this kernel gives programs no huge pages")
    wanted = [1, 16, 5, 2, 15, 1]
    leaves = resolve(str(ext4.folder)).leaves
    if segment_limits([leaves[0].name]).number < max(wanted):
        pytest.skip("the device takes fewer segments")
    run = tmp_path / "run.blkrecord"
    with recording_of_a_moment(recording_request(str(ext4.folder), leaves, run, ())):
        read_in_segments(ext4.folder / "data", wanted)
    trace = read_trace(run)
    if trace.facts.capture != "bpf":
        pytest.skip("this kernel takes no BPF programs, which tell segments")
    assert segments_of(trace) == wanted
    replay = recorded_replay(str(ext4.folder), load_workload(f"trace:{run}"), tmp_path / "replay.blkrecord")
    assert segments_of(replay) == wanted


def test_neighbours_of_a_plug_merge_again(ext4: Filesystem, tmp_path: Path) -> None:
    # Two and four neighbours, each queued before the first is inserted.
    events: Events = []
    in_plugs = [2, 4, 2, 4, 2]
    for number, ios in enumerate(in_plugs):
        begun_us = number * 5000
        for place in range(ios):
            sectors = f"WS {number * 64 + place * 8} + 8"
            events += [
                (begun_us + place, "Q", 1, f"{sectors} [journal]"),
                (begun_us + 20, "I", 1, f"{sectors} [journal]"),
                (begun_us + 900, "C", 1, f"{sectors} [0]"),
            ]
    workload = load_of(events, tmp_path / "plugs.txt")
    trace = recorded_replay(str(ext4.folder), workload, tmp_path / "replay.blkrecord")
    blkguest = (np.array(trace.names) == "blkguest")[trace.ios["command"]]
    mine = blkguest & (trace.ios["operation"] == 1)
    # Measuring the replay's own time writes too, one block after the other. A file lies in few extents.
    assert int((mine & (trace.ios["merged_ns"] != NEVER)).sum()) == sum(in_plugs) - len(in_plugs)


SEGMENTED_BYTES = 64 << 10
"""Size of each I/O, of 16 pages: more in one segment are too many for some drivers."""


def read_in_segments(path: Path, numbers: Sequence[int]) -> None:
    """Reads a file in I/Os of so many segments each."""
    page, huge = mmap.PAGESIZE, 2 << 20
    path.write_bytes(bytes(SEGMENTED_BYTES * len(numbers)))
    os.sync()
    with mmap.mmap(-1, 4 * huge, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        memory[:] = bytes(len(memory))
        start = -ctypes.addressof(ctypes.c_char.from_buffer(memory)) % huge
        view = memoryview(memory)[start : start + huge]
        file = os.open(path, os.O_RDONLY | os.O_DIRECT)
        for index, number in enumerate(numbers):
            # Behind a contiguous part, every second page.
            first = SEGMENTED_BYTES - (number - 1) * page
            alone = [view[first + 2 * page * n + page :][:page] for n in range(number - 1)]
            os.preadv(file, [view[:first], *alone], index * SEGMENTED_BYTES)
        os.close(file)
        del view, alone


def segments_of(trace: Trace) -> list[int]:
    """Segments of a recording's I/Os of that size, in the order of queueing."""
    mine = (trace.ios["bytes"] == SEGMENTED_BYTES) & (trace.ios["operation"] == 0)
    order = np.argsort(trace.ios["queued_ns"][mine])
    segments: list[int] = trace.ios["segments"][mine][order].tolist()
    return segments


def recorded_replay(target: str, workload: Workload, file: Path) -> Trace:
    """Replays a workload, and gives what reached the disks beneath meanwhile."""
    with recording_of_a_moment(recording_request(target, resolve(target).leaves, file, ())):
        replayed(target, workload, "none")
    return read_trace(file)


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
