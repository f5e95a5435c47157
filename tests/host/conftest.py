"""Targets for the host backend's tests: loop devices, so that no test touches a real disk's queue."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from blklab.backends.host import BACKEND
from blklab.backends.protocol import Session, SessionOptions
from blklab.linux.disks.disk import read_disk
from blklab.linux.queue.snapshot import restore_snapshot, snapshot
from blklab.spec.plan import Cell, CellKey
from blklab.spec.schedulers import parse_scheduler_choice
from blklab.spec.targets import parse_target
from blklab.spec.workloads import Workload, parse_workload

PROGRAMS = ("fio", "losetup", "mkfs.ext4")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    reason = "needs root" if os.geteuid() != 0 else f"{', '.join(missing)} not installed" if missing else None
    if reason is not None:
        for item in items:
            if item.get_closest_marker("root") and "tests/host" in str(item.path):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Journals and locks apart from this machine's own."""
    folder = tmp_path / "state"
    monkeypatch.setenv("BLKLAB_STATE_DIR", str(folder))
    return folder


@pytest.fixture
def disk_folder() -> Iterator[Path]:
    """A folder on a disk."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="blklab-test-") as name:
        yield Path(name)


def queue_of(device: str) -> dict[str, str]:
    """Every setting of a queue that can be written."""
    found = {}
    for path in sorted(Path(f"/sys/block/{Path(device).name}/queue").rglob("*")):
        if path.is_file() and path.stat().st_mode & 0o200:
            with suppress(OSError):
                found[path.name] = path.read_text()
    return found


def loops_over(folder: Path) -> list[str]:
    """Loop devices whose file is, or was, in a folder."""
    found = []
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        with suppress(OSError):
            if path.read_text().startswith(f"{folder}/"):
                found.append(path.parts[3])
    return found


@dataclass
class LoopDevice:
    """A loop device that was there before blklab: not one of its own."""

    device: str
    backing: Path
    before: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return Path(self.device).name

    def assert_unchanged(self) -> None:
        assert queue_of(self.device) == self.before


@contextmanager
def loop_device(backing: Path, mebibytes: int) -> Iterator[LoopDevice]:
    backing.write_bytes(os.urandom(1 << 20) * mebibytes)
    made = subprocess.run(
        ["losetup", "--find", "--show", "--direct-io=on", str(backing)],
        check=True,
        capture_output=True,
        text=True,
    )
    device = made.stdout.strip()
    folder = Path(f"/sys/block/{Path(device).name}").resolve()
    before = snapshot(read_disk(folder))
    try:
        yield LoopDevice(device, backing, queue_of(device))
    finally:
        # A test may have detached it, or failed: the number is somebody else's next.
        restore_snapshot(read_disk(folder), before)
        subprocess.run(["losetup", "--detach", device], check=False, capture_output=True)


@pytest.fixture
def raw(disk_folder: Path) -> Iterator[LoopDevice]:
    """A block device with data on it that nobody uses."""
    with loop_device(disk_folder / "raw.img", 32) as device:
        yield device


@dataclass
class Filesystem:
    folder: Path
    devices: list[LoopDevice]

    def assert_untouched(self) -> None:
        """Settings as before, and nothing of ours left in the folder."""
        for device in self.devices:
            device.assert_unchanged()
        assert [entry.name for entry in self.folder.iterdir() if "blklab" in entry.name] == []


@pytest.fixture
def ext4(disk_folder: Path) -> Iterator[Filesystem]:
    """A directory on ext4 on a device of its own."""
    with loop_device(disk_folder / "ext4.img", 160) as device:
        subprocess.run(["mkfs.ext4", "-q", device.device], check=True)
        with mounted(device.device, disk_folder / "ext4") as folder:
            yield Filesystem(folder, [device])


@pytest.fixture
def btrfs(disk_folder: Path) -> Iterator[Filesystem]:
    """A directory on btrfs over two devices."""
    if shutil.which("mkfs.btrfs") is None or "btrfs" not in Path("/proc/filesystems").read_text():
        pytest.skip("btrfs is not to be had here")
    with (
        loop_device(disk_folder / "one.img", 160) as one,
        loop_device(disk_folder / "two.img", 160) as two,
    ):
        make = ["mkfs.btrfs", "-q", "-f", "-d", "raid0", "-m", "raid1", one.device, two.device]
        subprocess.run(make, check=True, capture_output=True)
        with mounted(one.device, disk_folder / "btrfs") as folder:
            yield Filesystem(folder, [one, two])


@contextmanager
def mounted(device: str, folder: Path) -> Iterator[Path]:
    folder.mkdir()
    subprocess.run(["mount", device, str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def cell(scheduler: str, workload: Workload, seed: int = 1) -> Cell:
    choice = parse_scheduler_choice(scheduler)
    key = CellKey(block=0, sequence=0, position=0, workload=workload.name, scheduler=choice.label, seed=seed)
    return Cell(key=key, scheduler=choice, workload=workload)


def work(text: str, name: str = "test") -> Workload:
    return parse_workload(text, name=name, source=f"{name}.fio")


READ = "[r]\nrw=randread\nbs=4k\nsize=8m\ndirect=1\ntime_based\nruntime=200ms\n"
WRITE = "[w]\nrw=randwrite\nbs=4k\nsize=8m\ndirect=1\ntime_based\nruntime=200ms\n"


@contextmanager
def opened(target: str, run_id: str = "test", **options: object) -> Iterator[Session]:
    settled = SessionOptions(run_id=run_id, **options)
    with BACKEND.open(parse_target(target), settled) as session:
        yield session
