"""Sessions end to end: real devices, real schedulers, real fio, everything as before at the end."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from blklab.analysis.metrics import metric_named
from blklab.backends.host import BACKEND
from blklab.errors import (
    DeviceInUseError,
    JobFileError,
    RefusedError,
    RunFailedError,
    SchedulerUnavailableError,
    SpaceError,
    TunableError,
    UnknownNameError,
)
from blklab.linux.queue.attributes import write_attribute
from blklab.linux.queue.schedulers import set_scheduler
from blklab.spec.schedulers import parse_scheduler_choices
from blklab.spec.targets import parse_target
from blklab.spec.workloads import load_workload, shipped_workloads
from host.conftest import IOS, READ, RUN_ID, WRITE, Filesystem, LoopDevice, cell, opened, work
from real_devices import own_loops

pytestmark = pytest.mark.root


def scheduler_of(name: str) -> str:
    match = re.search(r"\[(.+)\]", Path(f"/sys/block/{name}/queue/scheduler").read_text())
    assert match is not None
    return match[1]


def test_a_directory_is_tested_and_left_as_it_was(ext4: Filesystem) -> None:
    reading, writing = work(READ, "reading"), work(WRITE, "writing")
    name = ext4.devices[0].name
    said: list[str] = []
    with opened(str(ext4.folder)) as session:
        assert session.target.schedulers == ["none", "mq-deadline", "kyber", "bfq"]
        assert session.target.details["filesystem"] == "ext4"
        assert session.check(parse_scheduler_choices("bfq,kyber"), [reading, writing]) == []
        ext4.devices[0].assert_unchanged()
        session.prepare([reading, writing], said.append)
        folder = ext4.folder / f".blklab-{RUN_ID}"
        laid_out = {path.name: (path.stat().st_ino, path.stat().st_size) for path in folder.iterdir()}
        assert {name: size for name, (_, size) in laid_out.items()} == {
            "read-0": 8 << 20,
            "written-0": 8 << 20,
        }
        assert (folder / "read-0").read_bytes().count(0) < 1 << 20
        for workload in (reading, writing):
            for scheduler in ("bfq", "kyber"):
                sample = session.run(cell(scheduler, workload))
                assert sample.status == "ok", sample.error
                assert sample.settings[f"{name}/scheduler"] == scheduler == scheduler_of(name)
                assert sample.engine["name"] == "fio"
                assert sample.jobs[0].directions[0].ios == IOS
        assert {path.name: (path.stat().st_ino, path.stat().st_size) for path in folder.iterdir()} == laid_out
    assert len(said) == 1
    assert "16.0 MiB" in said[0]
    ext4.assert_untouched()
    assert not Path(f"/run/blklab-{RUN_ID}").exists()


def test_job_files_are_checked_in_the_run_folder(
    ext4: Filesystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal removes it after a kill, unlike a temporary directory."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    with opened(str(ext4.folder)) as session:
        session.check(parse_scheduler_choices("none"), [work(WRITE)])
        assert Path(f"/run/blklab-{RUN_ID}/job.fio").exists()
    ext4.assert_untouched()


def test_a_file_stands_for_the_directory_it_is_in(ext4: Filesystem) -> None:
    (ext4.folder / "database").write_text("precious")
    with opened(str(ext4.folder / "database")) as session:
        session.prepare([work(WRITE)], print)
        assert session.run(cell("none", work(WRITE))).status == "ok"
    assert (ext4.folder / "database").read_text() == "precious"
    ext4.assert_untouched()


def test_all_leaves_get_the_scheduler(btrfs: Filesystem) -> None:
    reading = work(READ)
    with opened(str(btrfs.folder)) as session:
        names = {device.name for device in btrfs.devices}
        assert {disk.name for disk in session.target.disks} == names
        session.check(parse_scheduler_choices("bfq:slice_idle=0,mq-deadline"), [reading])
        session.prepare([reading], print)
        sample = session.run(cell("bfq:slice_idle=0", reading))
        for name in names:
            assert scheduler_of(name) == "bfq"
            assert sample.settings[f"{name}/iosched/slice_idle"] == "0"
        session.run(cell("mq-deadline", reading))
        assert {scheduler_of(name) for name in names} == {"mq-deadline"}
    btrfs.assert_untouched()


def test_a_raw_device_is_only_read(raw: LoopDevice) -> None:
    before = raw.backing.read_bytes()
    with opened(raw.device) as session:
        assert session.target.details["kind"] == "block"
        with pytest.raises(RefusedError, match="writes"):
            session.check([], [work(WRITE)])
        session.check(parse_scheduler_choices("none"), [work(READ)])
        session.prepare([work(READ)], print)
        assert session.run(cell("none", work(READ))).status == "ok"
        assert "--readonly" in session.commands(cell("none", work(READ)))[-1]
    assert raw.backing.read_bytes() == before
    raw.assert_unchanged()


def test_a_raw_device_is_written_only_if_allowed_and_free(raw: LoopDevice, ext4: Filesystem) -> None:
    with opened(ext4.devices[0].device, allow_writes=True) as session:
        with pytest.raises(DeviceInUseError, match="mounted"):
            session.check([], [work(WRITE)])
        session.check([], [work(READ)])
    before = raw.backing.read_bytes()
    with opened(raw.device, allow_writes=True) as session:
        session.check(parse_scheduler_choices("none"), [work(WRITE)])
        session.prepare([work(WRITE)], print)
        with pytest.raises(OSError, match="busy"):
            os.open(raw.device, os.O_RDONLY | os.O_EXCL)
        assert session.run(cell("none", work(WRITE))).status == "ok"
    assert raw.backing.read_bytes() != before
    raw.assert_unchanged()


def test_a_loop_target_makes_its_device_and_removes_it(disk_folder: Path) -> None:
    with opened(f"loop:24m,dir={disk_folder}") as session:
        (disk,) = session.target.disks
        folder = Path(f"/sys/block/{disk.name}/loop")
        assert (folder / "dio").read_text().strip() == "1"
        backing = Path((folder / "backing_file").read_text().strip())
        session.check(parse_scheduler_choices("kyber,bfq"), [work(WRITE)])
        session.prepare([work(WRITE)], print)
        assert backing.stat().st_blocks * 512 >= 24 << 20
        assert backing.read_bytes()[-(1 << 20) :].count(0) < 1 << 16
        assert session.run(cell("kyber", work(WRITE))).status == "ok"
        assert scheduler_of(disk.name) == "kyber"
    assert own_loops(disk_folder) == []
    assert list(disk_folder.iterdir()) == []


def test_every_shipped_workload_runs_on_a_loop_device(disk_folder: Path) -> None:
    workloads = [load_workload(name) for name in shipped_workloads()]
    with opened(f"loop:516m,dir={disk_folder}", runtime_ns=200_000_000) as session:
        session.check(parse_scheduler_choices("mq-deadline"), workloads)
        session.prepare(workloads, print)
        for workload in workloads:
            sample = session.run(cell("mq-deadline", workload))
            assert sample.status == "ok", sample.error
            assert [job.name for job in sample.jobs] == [job.name for job in workload.jobs]
            focused = [job for job in sample.jobs if job.name in workload.focus]
            # Each has the figure that its verdict is to rest on.
            assert metric_named(workload.decide_by).compute(focused), workload.name


# Settings


def test_a_tunable_does_not_leak_into_the_next_run(raw: LoopDevice) -> None:
    """Two variants of one scheduler in turn; the queue attributes too, which switching resets."""
    reading = work(READ)
    choices = parse_scheduler_choices("bfq:slice_idle=0:low_latency=0,bfq,bfq:back_seek_max=1000,none")
    with opened(
        raw.device, queue={"nr_requests": "64", "read_ahead_kb": "512"}, runtime_ns=20_000_000
    ) as session:
        session.check(choices, [reading])
        seen = {
            choice.label: session.run(cell(choice.canonical, reading)).settings
            for choice in [*choices, *choices]
        }
    name = raw.name
    plain = seen["bfq"]
    assert (plain[f"{name}/iosched/slice_idle"], plain[f"{name}/iosched/low_latency"]) == ("8", "1")
    changed = seen["bfq:slice_idle=0:low_latency=0"]
    assert (changed[f"{name}/iosched/slice_idle"], changed[f"{name}/iosched/low_latency"]) == ("0", "0")
    assert seen["bfq:back_seek_max=1000"][f"{name}/iosched/back_seek_max"] == "1000"
    assert plain[f"{name}/iosched/back_seek_max"] == "16384"
    for settings in seen.values():
        assert settings[f"{name}/nr_requests"] == "64"
        assert settings[f"{name}/read_ahead_kb"] == "512"
    raw.assert_unchanged()


def test_each_run_has_a_scheduler_that_begins_anew(raw: LoopDevice) -> None:
    """Its attributes are other files then, also if it was in force."""
    attributes = Path(f"/sys/block/{raw.name}/queue/iosched")
    inodes = set()
    with opened(raw.device, runtime_ns=20_000_000) as session:
        for label in ("first", "second"):
            sample = session.run(cell(f"{label}=mq-deadline:fifo_batch=2", work(READ)))
            assert sample.settings[f"{raw.name}/iosched/fifo_batch"] == "2"
            inodes.add(attributes.stat().st_ino)
    assert len(inodes) == 2


def test_settings_of_before_do_not_count_as_defaults(raw: LoopDevice) -> None:
    """If a user has tuned the active scheduler, an experiment tests it with the kernel's defaults."""
    disk = raw.disk
    set_scheduler(disk, "bfq")
    write_attribute(disk, "iosched/slice_idle", "3")
    write_attribute(disk, "nr_requests", "32")
    with opened(raw.device) as session:
        settings = session.run(cell("bfq", work(READ))).settings
        assert settings[f"{raw.name}/iosched/slice_idle"] == "8"
        assert settings[f"{raw.name}/nr_requests"] != "32"
    queue = Path(f"/sys/block/{raw.name}/queue")
    assert (queue / "iosched" / "slice_idle").read_text() == "3\n"
    assert (queue / "nr_requests").read_text() == "32\n"
    set_scheduler(disk, "none")


def test_a_setting_that_somebody_else_changes_is_noticed_and_put_right(raw: LoopDevice) -> None:
    disk = raw.disk
    with opened(raw.device, runtime_ns=20_000_000) as session:
        first = session.run(cell("mq-deadline", work(READ))).settings
        write_attribute(disk, "iosched/fifo_batch", "1")
        assert session.run(cell("mq-deadline", work(READ))).settings == first
        # No switch resets this attribute: a program or user changed it; later runs would not be comparable.
        write_attribute(disk, "nomerges", "2" if first[f"{raw.name}/nomerges"] != "2" else "0")
        with pytest.raises(RunFailedError, match="nomerges was"):
            session.run(cell("mq-deadline", work(READ)))
    raw.assert_unchanged()


@pytest.mark.parametrize(
    ("scheduler", "queue", "error", "message"),
    [
        ("bfqq", {}, UnknownNameError, "bfqq"),
        ("cfq", {}, SchedulerUnavailableError, "cfq"),
        ("bfq:slice_idel=0", {}, TunableError, "slice_idel"),
        ("none:slice_idle=0", {}, TunableError, "slice_idle"),
        ("kyber:read_lat_nsec=-5", {}, TunableError, "read_lat_nsec"),
        ("mq-deadline:fifo_batch=many", {}, TunableError, "fifo_batch"),
        ("none", {"nr_requests": "1"}, TunableError, "kept 4"),
        ("none", {"nr_request": "64"}, TunableError, "nr_request"),
        ("none", {"nomerges": "7"}, TunableError, "nomerges"),
        ("none", {"scheduler": "bfq"}, TunableError, "not a queue attribute"),
    ],
)
def test_what_the_kernel_does_not_take_is_an_error_and_changes_nothing(
    raw: LoopDevice, scheduler: str, queue: dict[str, str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message), opened(raw.device, queue=queue) as session:
        session.check(parse_scheduler_choices(["kyber", scheduler]), [work(READ)])
    raw.assert_unchanged()


def test_a_job_without_size_needs_a_device(ext4: Filesystem, raw: LoopDevice) -> None:
    sizeless = work("[a]\nrw=read\nbs=1m\nruntime=50ms\ntime_based\n")
    with opened(str(ext4.folder)) as session, pytest.raises(JobFileError, match="no size"):
        session.check([], [sizeless])
    with opened(raw.device) as session:
        session.check([], [sizeless])
        assert session.run(cell("none", sizeless)).status == "ok"


def test_a_device_that_is_too_small_is_an_error(raw: LoopDevice) -> None:
    with opened(raw.device) as session, pytest.raises(SpaceError, match=r"needs 64\.0 MiB.*has 32\.0 MiB"):
        session.check([], [work("[a]\nsize=64m\n")])


def test_schedulers_without_priorities_are_warned_of(raw: LoopDevice) -> None:
    prioritised = work(f"{READ}prioclass=2\nprio=7\n")
    with opened(raw.device) as session:
        warnings = session.check(parse_scheduler_choices("bfq,kyber,mq-deadline,none"), [prioritised])
    assert warnings == ["test: I/O priorities have no effect under kyber and `none`"]


# Dry run


def test_a_dry_run_lists_every_write_and_the_job_file(ext4: Filesystem) -> None:
    with opened(str(ext4.folder), dry_run=True, queue={"nr_requests": "64"}) as session:
        text = "\n".join(session.commands(cell("bfq:slice_idle=0", work(WRITE), seed=5)))
    queue = Path(f"/sys/block/{ext4.devices[0].name}/queue").resolve()
    for expected in (
        f"echo none > {queue}/scheduler\necho bfq > {queue}/scheduler\necho 64 > {queue}/nr_requests",
        f"echo 0 > {queue}/iosched/slice_idle",
        "echo 1 > /proc/sys/vm/drop_caches",
        f"mkdir -m 700 {ext4.folder}/.blklab-{RUN_ID}",
        f"mount --bind -o nosuid,nodev {ext4.folder}/.blklab-{RUN_ID} /run/blklab-{RUN_ID}/data",
        "randseed=5",
        "readwrite=randwrite",
        "fio --output-format=json+",
    ):
        assert expected in text
    ext4.assert_untouched()


def test_a_dry_run_of_a_loop_device_creates_none(disk_folder: Path) -> None:
    with opened(f"loop:24m,dir={disk_folder}", dry_run=True) as session:
        text = "\n".join(session.commands(cell("kyber", work(WRITE))))
        with pytest.raises(SchedulerUnavailableError):
            session.commands(cell("cfq", work(WRITE)))
    assert "losetup --direct-io=on" in text
    assert "echo kyber > /sys/devices/virtual/block/loop" in text
    assert own_loops(disk_folder) == []
    assert list(disk_folder.iterdir()) == []


def test_a_loop_device_over_memory_says_that_it_is_no_disk() -> None:
    with opened("loop:8m,dir=/dev/shm", dry_run=True) as session:
        assert "in memory: no disk is measured" in session.target.summary
    with pytest.raises(RefusedError, match="device nodes"), opened("loop:8m,dir=/dev"):
        pass


def test_a_dry_run_needs_no_loop_device(disk_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("blklab.backends.host.first_free_index", lambda: 4000)
    readers = work("[reader]\nrw=randread\ndirect=1\nsize=8m\ntime_based\nruntime=1s\n")
    with opened(f"loop:24m,dir={disk_folder}", dry_run=True) as session:
        assert session.unswitchable(readers) is None
        assert "loop4000" in "\n".join(session.commands(cell("bfq", readers)))


def test_describing_changes_nothing(ext4: Filesystem, disk_folder: Path) -> None:
    described = BACKEND.describe(parse_target(str(ext4.folder)))
    assert ext4.devices[0].name in described.summary
    assert described.default_scheduler == scheduler_of(ext4.devices[0].name)
    loop = BACKEND.describe(parse_target(f"loop:1g,dir={disk_folder}"))
    assert "bfq" in loop.schedulers
    assert loop.disks[0].size_bytes == 1 << 30
    ext4.assert_untouched()
