"""Real loop devices and mounts for tests as root; all is taken down again."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from blklab.linux.disks.disk import Disk, read_disk

_LOOP_CTL_REMOVE = 0x4C81
_numbers = itertools.count(100 + os.getpid() % 50000)
"""Of loop devices: far from those that others use, and from those of test runs beside this one."""


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory of the test's own."""
    folder = tmp_path / "state"
    monkeypatch.setenv("BLKLAB_STATE_DIR", str(folder))
    monkeypatch.setenv("BLKLAB_LOCK_DIR", str(folder / "locks"))
    return folder


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder on a disk: /tmp may be memory, on which a loop device has no direct I/O."""
    folder = Path(tempfile.mkdtemp(prefix="blklab-test-", dir="/var/tmp"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def needs_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")


@pytest.fixture
def needs_loop(needs_root: None) -> None:
    if not Path("/dev/loop-control").exists():
        pytest.skip("this kernel has no loop driver")


LoopMaker = Callable[[int], Disk]


@pytest.fixture
def make_loop(needs_loop: None, scratch: Path) -> Iterator[LoopMaker]:
    """Makes loop devices of their own (not those that others may use) with a size in MiB."""
    made: list[int] = []

    def make(size_mib: int) -> Disk:
        # A `losetup --find` of somebody else may be faster to take a device that was just made.
        for _ in range(20):
            number = next(_numbers)
            if not Path(f"/sys/block/loop{number}").exists() and attach(number, size_mib):
                made.append(number)
                return read_disk(Path(f"/sys/block/loop{number}").resolve())
        raise AssertionError("no loop device is to be had")

    def attach(number: int, size_mib: int) -> bool:
        image = scratch / f"image-{number}"
        with image.open("wb") as file:
            file.truncate(size_mib << 20)
        return not subprocess.run(["losetup", f"/dev/loop{number}", image], check=False).returncode

    yield make
    for number in made:
        remove_loop(number)


def remove_loop(number: int) -> None:
    """Detaches and removes a loop device."""
    if not Path(f"/sys/block/loop{number}").exists():
        return
    subprocess.run(["losetup", "--detach", f"/dev/loop{number}"], check=False, capture_output=True)
    with Path("/dev/loop-control").open("rb") as control:
        for _ in range(200):
            try:
                fcntl.ioctl(control, _LOOP_CTL_REMOVE, number)
                return
            except OSError:  # noqa: PERF203 - udev may have it open for a moment
                time.sleep(0.02)
    raise AssertionError(f"loop{number} cannot be removed")


Mounter = Callable[..., Path]


@pytest.fixture
def mount(needs_root: None, scratch: Path) -> Iterator[Mounter]:
    """Mounts something (arguments of mount(8)) on a new folder."""
    mounted: list[Path] = []

    def make(*arguments: str | Path) -> Path:
        folder = scratch / f"mounted-{len(mounted)}"
        folder.mkdir()
        answer = subprocess.run(["mount", *arguments, folder], check=False, capture_output=True, text=True)
        if answer.returncode:
            pytest.skip(
                f"this kernel does not mount {' '.join(map(str, arguments))}: {answer.stderr.strip()}"
            )
        mounted.append(folder)
        return folder

    yield make
    for folder in reversed(mounted):
        subprocess.run(["umount", folder], check=True)


def tool(name: str, package: str) -> str:
    """The path of a program; the test is skipped where it is missing."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed (Debian: {package})")
    return path


def own_loops(scratch: Path) -> list[str]:
    """Names of the loop devices over files in a folder."""
    found = []
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):
            if path.read_text().startswith(f"{scratch}/"):
                found.append(path.parent.parent.name)
    return sorted(found)


SHARED_VARIABLE = "BLKLAB_TEST_SHARED_MACHINE"
"""Set while other work goes on: then only the queues of the test's own disks are compared."""


def queues(own: Disk) -> dict[str, bytes]:
    """Everything that can be read of all queues of this machine, byte for byte."""
    if os.environ.get(SHARED_VARIABLE):
        return queue_of(own)
    return {
        path: content
        for folder in sorted(Path("/sys/block").iterdir())
        for path, content in _readable_files(folder.resolve() / "queue").items()
    }


def queue_of(disk: Disk) -> dict[str, bytes]:
    """The same of one disk."""
    return _readable_files(disk.sys_path / "queue")


def _readable_files(folder: Path) -> dict[str, bytes]:
    content: dict[str, bytes] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with contextlib.suppress(OSError):
                content[str(path)] = path.read_bytes()
    return content


def changed(
    before: dict[str, bytes], after: dict[str, bytes]
) -> dict[str, tuple[bytes | None, bytes | None]]:
    """What differs between two answers of `queues` or `queue_of`, over the disks that both have."""
    common = _disks_of(before) & _disks_of(after)
    return {
        path: (before.get(path), after.get(path))
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path) and _disks_of([path]) <= common
    }


def _disks_of(paths: Iterable[str]) -> set[str]:
    return {path.partition("/queue/")[0] for path in paths}


def write_partition_table(disk: Disk) -> None:
    """Writes an MBR with one Linux partition from 1 MiB to 17 MiB."""
    entry = bytes([0, 0, 0, 0, 0x83, 0, 0, 0]) + (2048).to_bytes(4, "little") + (32768).to_bytes(4, "little")
    with disk.dev_path.open("r+b") as device:
        device.write(bytes(446) + entry + bytes(48) + b"\x55\xaa")


_PRIVATE = """
set -e
mount -t tmpfs tmpfs /run
mkdir -p /run/udev /run/dev
: > /run/udev/control
mkdir -p /etc/udev
mount -t tmpfs tmpfs /etc/udev
mkdir /etc/udev/rules.d
mount -t tmpfs tmpfs /run/dev
cp -a /dev/null /dev/urandom /dev/loop-control $DEVICES /run/dev
mount --bind /run/dev /dev
exec "$@"
"""


def in_private_machine(command: list[str], disks: list[Disk]) -> subprocess.CompletedProcess[str]:
    """Runs a command in a mount namespace with a /run, /dev and /etc/udev of its own.

    So udev's tools can be let loose: they make links, nodes and notes as the daemon would.
    """
    unshare = tool("unshare", "util-linux")
    environment = {**os.environ, "DEVICES": " ".join(str(disk.dev_path) for disk in disks)}
    return subprocess.run(
        [unshare, "--mount", "sh", "-c", _PRIVATE, "sh", *command],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
    )
