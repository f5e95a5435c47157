"""Planned changes on loop devices: blklab writes beneath the running fio, and leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

from blklab.errors import RequirementError, SpecError, TunableError, UnknownNameError, UsageError
from blklab.linux.cgroups.hierarchy import find_hierarchy
from blklab.linux.journal.recovery import raise_for_failures, recover
from blklab.linux.processes.job_processes import processes_by_inner_number, set_io_priority
from blklab.records.samples import RunSample
from blklab.spec.changes import Change, parse_changes
from blklab.spec.schedulers import parse_scheduler_choices
from host.conftest import RUN_ID, LoopDevice, cell, opened, work
from host.test_kill import wait_until_no_fio, wait_until_running
from waiting import wait_until

pytestmark = pytest.mark.root

JOBS = """
[global]
rw=randread
bs=4k
size=8m
direct=1
time_based
runtime=1500ms
[reader]
ioengine=libaio
iodepth=4
numjobs=2
[other]
"""
CHANGES = ("300ms reader: ionice=rt/1", "600ms nr_requests=32", "900ms scheduler=kyber")


def _run(device: LoopDevice, changes: Sequence[str], scheduler: str = "bfq", jobs: str = JOBS) -> RunSample:
    load, choices = work(jobs), parse_scheduler_choices(scheduler)
    with opened(device.device, changes=parse_changes(changes)) as session:
        session.check(choices, [load])
        device.assert_unchanged()
        session.prepare([load], lambda _: None)
        samples = [session.run(cell(scheduler, load)) for _ in range(2)]
    device.assert_unchanged()
    assert [sample.error for sample in samples] == [None, None]
    # The second run begins under the same settings, whatever the first has left.
    assert samples[0].settings == samples[1].settings
    return samples[1]


def test_changes_come_at_their_moments_and_nothing_is_left(raw: LoopDevice) -> None:
    sample = _run(raw, CHANGES)
    assert [made.change for made in sample.changes] == list(CHANGES)
    for made in sample.changes:
        assert made.planned_ns <= made.begun_ns <= made.made_ns
        late = any(made.change in warning for warning in sample.warnings)
        assert late == (made.begun_ns - made.planned_ns > 50_000_000)
    # What was in force at the beginning.
    assert {value for name, value in sample.settings.items() if name.endswith("/scheduler")} == {"bfq"}


def test_phases_tell_what_the_jobs_did_between_changes(raw: LoopDevice) -> None:
    sample = _run(raw, ["700ms nr_requests=32"])
    total = {job.name: sum(entry.ios for entry in job.directions) for job in sample.jobs}
    for before, after in zip(sample.phases, sample.phases[1:], strict=False):
        assert before.from_ns < before.to_ns <= after.from_ns
    for phase in sample.phases:
        assert [job.name for job in phase.jobs] == ["reader", "other"]
        assert [job.clones for job in phase.jobs] == [2, 1]
    for name, ios in total.items():
        parts = [
            sum(entry.ios for entry in job.directions)
            for phase in sample.phases
            for job in phase.jobs
            if job.name == name
        ]
        assert sum(parts) <= 1.01 * ios


def test_every_thread_of_a_jobs_processes_gets_the_priority() -> None:
    """The namespace's numbers are translated, and only its own processes are taken."""
    program = (
        "import threading, time\n[threading.Thread(target=time.sleep, args=(60,)).start() for _ in range(2)]"
    )
    with subprocess.Popen(
        ["unshare", "--pid", "--fork", "--kill-child", sys.executable, "-c", program]
    ) as outer:
        try:
            wait_until(lambda: psutil.Process(outer.pid).children(), "the program is there", process=outer)
            (inner,) = psutil.Process(outer.pid).children()
            wait_until(lambda: inner.num_threads() == 3, "its threads are there", process=outer)
            assert processes_by_inner_number(inner.pid, [1]) == [inner.pid]
            assert processes_by_inner_number(inner.pid, [2, 77]) == []
            assert set_io_priority(inner.pid, "idle", 4)
            priorities = {psutil.Process(thread.id).ionice().ioclass for thread in inner.threads()}
            assert priorities == {psutil.IOPRIO_CLASS_IDLE}
            assert psutil.Process().ionice().ioclass != psutil.IOPRIO_CLASS_IDLE
        finally:
            outer.kill()
    assert not set_io_priority(outer.pid, "be", 4)


def test_fios_processes_have_the_new_priority_while_they_run(raw: LoopDevice) -> None:
    """A later change fails unless the job's processes are found, and `set_io_priority` reads back."""
    sample = _run(raw, ["200ms reader: ionice=be/1", "400ms reader: ionice=idle", "600ms other: ionice=rt/0"])
    assert len(sample.changes) == 3


def test_groups_change_and_change_back(raw: LoopDevice) -> None:
    try:
        hierarchy = find_hierarchy()
    except RequirementError as error:
        pytest.skip(error.message)
    weight = "blkio.bfq.weight" if hierarchy.version == 1 else "io.bfq.weight"
    sample = _run(raw, [f"400ms batch: {weight}=250"], jobs=JOBS + "cgroup=batch\ncgroup_weight=100\n")
    assert sample.settings[f"cgroup/batch/{weight}"].endswith("100")
    assert len(sample.changes) == 1


def test_a_load_that_ends_too_early_fails_and_says_so(raw: LoopDevice) -> None:
    jobs = "[reader]\nrw=randread\nbs=4k\nsize=8m\ndirect=1\nnumber_ios=8\nruntime=20s\n"
    load, changes = work(jobs), parse_changes(["10s nr_requests=32"])
    with opened(raw.device, changes=changes) as session:
        session.check(parse_scheduler_choices("bfq"), [load])
        session.prepare([load], lambda _: None)
        sample = session.run(cell("bfq", load))
    assert sample.status == "failed"
    assert "before the change '10s nr_requests=32'" in str(sample.error)
    raw.assert_unchanged()


@pytest.mark.parametrize(
    ("change", "jobs", "error", "reason"),
    [
        ("1s nobody: ionice=idle", JOBS, UnknownNameError, "no job 'nobody'"),
        ("1s lost: io.weight=3", JOBS, UnknownNameError, "no control group 'lost'"),
        ("2s nr_requests=32", JOBS, UsageError, "after the end"),
        (
            "1s nr_requests=32",
            JOBS.replace("time_based\nruntime=1500ms", "number_ios=9"),
            UsageError,
            "no runtime",
        ),
        ("1s reader: ionice=rt", JOBS.replace("direct=1", "direct=1\nthread"), SpecError, "thread"),
        ("1s slice_idle=0", JOBS, TunableError, "slice_idle"),
    ],
)
def test_what_cannot_come_about_is_refused_before_the_first_run(
    raw: LoopDevice, change: str, jobs: str, error: type[Exception], reason: str
) -> None:
    """The last one: kyber has no such tunable, and all schedulers get all changes."""
    planned: list[Change] = parse_changes([change])
    with opened(raw.device, changes=planned) as session, pytest.raises(error, match=reason):
        session.check(parse_scheduler_choices("bfq,kyber"), [work(jobs)])
    raw.assert_unchanged()


SESSION = """
import sys
from blklab.backends.host import BACKEND
from blklab.backends.protocol import SessionOptions
from blklab.spec.changes import parse_changes
from blklab.spec.plan import Cell, CellKey
from blklab.spec.schedulers import parse_scheduler_choices
from blklab.spec.targets import parse_target
from blklab.spec.workloads import parse_workload

target, run_id, *changes = sys.argv[1:]
text = "[r]\\nrw=randread\\nbs=4k\\nsize=4m\\nnumjobs=3\\ndirect=1\\ntime_based\\nruntime=600s\\n"
workload = parse_workload(text, name="w", source="w.fio")
choices = parse_scheduler_choices("mq-deadline")
options = SessionOptions(run_id=run_id, changes=parse_changes(changes))
with BACKEND.open(parse_target(target), options) as session:
    session.prepare([workload], lambda line: None)
    key = CellKey(block=0, sequence=0, position=0, workload="w", scheduler="mq-deadline", seed=1)
    session.run(Cell(key=key, scheduler=choices[0], workload=workload))
"""


def test_a_run_that_is_killed_amid_its_changes_is_restored(raw: LoopDevice, state: Path) -> None:
    """At the last planned change kyber is in force and another value in its tunable."""
    run_id = f"changing-{RUN_ID}"
    changes = ["100ms r: ionice=idle", "200ms nomerges=2", "300ms scheduler=kyber", "400ms read_lat_nsec=777"]
    process = subprocess.Popen([sys.executable, "-c", SESSION, raw.device, run_id, *changes], text=True)
    wait_until_running(process, run_id)
    tunable = Path(f"/sys/block/{raw.name}/queue/iosched/read_lat_nsec")
    wait_until(
        lambda: tunable.exists() and tunable.read_text() == "777\n",
        "the last change is made",
        process=process,
    )
    process.kill()
    process.wait()
    wait_until_no_fio(run_id)
    with pytest.raises(AssertionError):
        raw.assert_unchanged()
    raise_for_failures(recover(state))
    raw.assert_unchanged()
