"""Targets for the host backend's tests: loop devices, so that no test touches a real disk's queue."""

from __future__ import annotations

import os
import secrets
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
from blklab.linux.disks.disk import Disk, read_disk
from blklab.spec.plan import Cell, CellKey
from blklab.spec.schedulers import parse_scheduler_choice
from blklab.spec.targets import parse_target
from blklab.spec.workloads import Workload, parse_workload
from real_devices import attach_to_new_loop, remove_loop

PROGRAMS = ("fio", "losetup", "mkfs.ext4")

RUN_ID = f"test-{os.getpid()}-{secrets.token_hex(3)}"
"""Run id of sessions. Run folders and control groups are named after it, and other tests may run beside."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    reason = "needs root" if os.geteuid() != 0 else f"{', '.join(missing)} not installed" if missing else None
    if reason is not None:
        for item in items:
            if item.get_closest_marker("root") and "tests/host" in str(item.path):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def _own_state(state: Path) -> None:
    """Journals and locks apart from this machine's own.

    A loop target locks the disk under its folder too, and another run may be on that disk.
    """


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


@dataclass
class LoopDevice:
    """A loop device that the test, not blklab, created."""

    number: int
    backing: Path
    before: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"loop{self.number}"

    @property
    def device(self) -> str:
        return f"/dev/{self.name}"

    @property
    def disk(self) -> Disk:
        """The device as it is now."""
        return read_disk(Path(f"/sys/block/{self.name}").resolve())

    def assert_unchanged(self) -> None:
        assert queue_of(self.device) == self.before


@contextmanager
def loop_device(backing: Path, mebibytes: int) -> Iterator[LoopDevice]:
    backing.write_bytes(os.urandom(1 << 20) * mebibytes)
    number = attach_to_new_loop(lambda _: backing, "--direct-io=on")
    try:
        yield LoopDevice(number, backing, queue_of(f"/dev/loop{number}"))
    finally:
        remove_loop(number, backing)


@pytest.fixture
def raw(disk_folder: Path) -> Iterator[LoopDevice]:
    """A block device with data on it that is not in use."""
    with loop_device(disk_folder / "raw.img", 32) as device:
        yield device


@dataclass
class Filesystem:
    folder: Path
    devices: list[LoopDevice]

    def assert_untouched(self) -> None:
        """Checks that settings are as before and that no file of ours is left in the folder."""
        for device in self.devices:
            device.assert_unchanged()
        assert [entry.name for entry in self.folder.iterdir() if "blklab" in entry.name] == []


@pytest.fixture
def ext4(disk_folder: Path) -> Iterator[Filesystem]:
    """A directory on ext4 on a separate device."""
    with loop_device(disk_folder / "ext4.img", 160) as device:
        subprocess.run(["mkfs.ext4", "-q", device.device], check=True)
        with mounted(device.device, disk_folder / "ext4") as folder:
            yield Filesystem(folder, [device])


@pytest.fixture
def btrfs(disk_folder: Path) -> Iterator[Filesystem]:
    """A directory on btrfs over two devices."""
    if shutil.which("mkfs.btrfs") is None or "btrfs" not in Path("/proc/filesystems").read_text():
        pytest.skip("this machine has no btrfs")
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


IOS = 64
"""I/Os of the two jobs below. They have no runtime, in which a busy machine may do any number of I/Os."""
READ = f"[r]\nrw=randread\nbs=4k\nsize=8m\ndirect=1\nnumber_ios={IOS}\n"
WRITE = f"[w]\nrw=randwrite\nbs=4k\nsize=8m\ndirect=1\nnumber_ios={IOS}\n"


@contextmanager
def opened(target: str, run_id: str = RUN_ID, **options: object) -> Iterator[Session]:
    settled = SessionOptions(run_id=run_id, **options)
    with BACKEND.open(parse_target(target), settled) as session:
        yield session
