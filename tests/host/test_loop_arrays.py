"""btrfs over loop devices of our own: made, used, and taken down however the run ends."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from blklab.errors import RequirementError, RestoreError, SpaceError
from blklab.experiment.blocks import NullRunObserver
from blklab.experiment.pipeline import compare
from blklab.labs.studies.iozone_raid10.experiments import experiments
from blklab.labs.studies.iozone_raid10.rates import measured_rates
from blklab.labs.studies.replication.options import StudyOptions
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.linux.directories.mounts import read_mounts
from blklab.linux.journal.recovery import preview, raise_for_failures, recover
from blklab.linux.scratch import loop_array
from blklab.records.store import Store
from blklab.simulator.benchmark_emulation import IOZONE_TESTS
from blklab.spec.schedulers import parse_scheduler_choices
from host.conftest import RUN_ID, WRITE, cell, opened, work
from host.test_kill import start
from real_devices import own_loops
from waiting import wait_until

pytestmark = pytest.mark.root


@pytest.fixture
def folder(disk_folder: Path) -> Iterator[Path]:
    """A folder with room, which must be empty in the end."""
    if shutil.which("mkfs.btrfs") is None or "btrfs" not in Path("/proc/filesystems").read_text():
        pytest.skip("this machine has no btrfs")
    if shutil.disk_usage(disk_folder).free < 3 << 30:
        pytest.skip("no room for four devices of 256 MiB")
    yield disk_folder
    _assert_nothing_is_left(disk_folder)


def _mounts() -> list[str]:
    points = [mount.mount_point for mount in read_mounts(Path("/proc"))]
    return [point for point in points if point.startswith("/run/blklab-") and RUN_ID in point]


def _assert_nothing_is_left(folder: Path) -> None:
    assert _mounts() == []
    assert own_loops(folder) == []
    assert list(folder.iterdir()) == []


def _target(folder: Path) -> str:
    return f"loop:256m,btrfs=raid10,dir={folder}"


def test_an_array_is_made_and_removed(folder: Path) -> None:
    with opened(_target(folder)) as session:
        assert len(session.target.disks) == len(own_loops(folder)) == 4
        (point,) = _mounts()
        workload = work(WRITE)
        session.check([], [workload])
        session.prepare([workload], lambda line: None)
        sample = session.run(cell("kyber", workload))
        assert sample.status == "ok", sample.error
        assert sample.jobs[0].directions[0].ios > 0
        # Every member has the scheduler, and each was written to: two copies, spread over two pairs.
        for disk in session.target.disks:
            assert sample.settings[f"{disk.name}/scheduler"] == "kyber"
            written = Path(f"/sys/block/{disk.name}/stat").read_text().split()[6]
            assert int(written) * 512 > 4 << 20
        assert any(Path(point, "files").iterdir())
    _assert_nothing_is_left(folder)


def test_a_failure_half_way_takes_down_what_there_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_array.ScratchLoopArray, "_mount", lambda self: ["false"])
    with pytest.raises(RequirementError, match="false"), opened(_target(folder)):
        pass
    _assert_nothing_is_left(folder)


def test_too_little_room_is_said_beforehand(folder: Path) -> None:
    with pytest.raises(SpaceError), opened(f"loop:100t,btrfs=raid1,members=2,dir={folder}"):
        pass


def test_a_killed_run_is_taken_down_by_the_next(folder: Path, state: Path) -> None:
    for attempt, seconds in enumerate((0.2, 0.6, 1.2, 4.0)):
        process = start(_target(folder), f"arraykill{attempt}-{RUN_ID}")
        time.sleep(seconds)  # into different phases; none of the assertions depends on which
        process.kill()
        process.wait()
        for report in preview(state):
            assert report.error is None
        wait_until(lambda: _recovered(state), "all is put back")
        _assert_nothing_is_left(folder)


def _recovered(state: Path) -> bool:
    try:
        raise_for_failures(recover(state))
    except RestoreError:  # a mount that was under way when its process was killed has just appeared
        return False
    return True


def test_the_study_on_four_loop_devices(folder: Path) -> None:
    """A tiny version of iozone-raid10: one record size under two schedulers, once."""
    options = StudyOptions("host", quick=True)
    printed, *_ = experiments(options, StudyFolder("iozone-raid10"))
    assert printed.spec.target == "loop:512m,btrfs=raid10,members=4"
    spec = printed.spec.model_copy(
        update={
            "target": f"{printed.spec.target},dir={folder}",
            "schedulers": parse_scheduler_choices("none,mq-deadline"),
            "workloads": [one for one in printed.spec.workloads if one.name.endswith("-1024k")],
        }
    )
    with Store.opened("sqlite://") as store:
        record = compare(spec, store, NullRunObserver())
    assert [sample.error for sample in record.samples] == [None] * 4
    rates = measured_rates(record)
    assert set(rates) == {(one, test, 1024) for one in ("none", "mq-deadline") for test in IOZONE_TESTS}
    assert all(rate > 0 for rate in rates.values())
    _assert_nothing_is_left(folder)
