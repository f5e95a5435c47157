"""Real loop devices and mounts for tests as root; all are removed afterwards."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from blklab.linux.disks.disk import Disk, read_disk
from waiting import wait_until

_LOOP_CTL_REMOVE = 0x4C81
_MOST_ATTEMPTS = 100
_numbers = itertools.count(100 + os.getpid() % 50000)
"""Numbers of loop devices: far from those of other programs, and of test runs beside this one."""


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory for the test."""
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
    """Makes loop devices for the test, with a size in MiB."""
    made: dict[int, Path] = {}

    def make(size_mib: int) -> Disk:
        number = attach_to_new_loop(lambda number: _image(scratch, number, size_mib))
        made[number] = _image_path(scratch, number)
        return read_disk(Path(f"/sys/block/loop{number}").resolve())

    yield make
    for number, image in made.items():
        remove_loop(number, image)


def _image_path(scratch: Path, number: int) -> Path:
    return scratch / f"image-{number}"


def _image(scratch: Path, number: int, size_mib: int) -> Path:
    path = _image_path(scratch, number)
    with path.open("wb") as file:
        file.truncate(size_mib << 20)
    return path


def attach_to_new_loop(backing: Callable[[int], Path], *options: str) -> int:
    """Attaches a file or device to a loop device that did not exist; returns the device's number.

    Args:
        backing: Gives the file for a number.
        options: Options of losetup(8).
    """
    for number in itertools.islice(_numbers, _MOST_ATTEMPTS):
        # A `losetup --find` of another program may take the device before our file is attached.
        if not Path(f"/sys/block/loop{number}").exists() and attach(number, backing(number), *options):
            return number
    raise AssertionError("no loop device can be attached; see what losetup printed")


def attach(number: int, backing: Path, *options: str) -> bool:
    """Attaches a file or device to a loop device; false if another program has it."""
    return not subprocess.run(["losetup", *options, f"/dev/loop{number}", backing], check=False).returncode


def attach_again(number: int, backing: Path) -> None:
    """Attaches a file to a loop device that was detached before.

    Another program that looks for a free device may get hold of this one for a while.
    """
    wait_until(lambda: attach(number, backing), f"loop{number} is attached again")


def backing_of(number: int) -> str | None:
    """The file under a loop device; None if there is none, or no such device."""
    try:
        text = Path(f"/sys/block/loop{number}/loop/backing_file").read_text()
    except OSError:
        return None
    return text.rstrip("\n").removesuffix(" (deleted)")


def remove_loop(number: int, backing: Path) -> None:
    """Detaches and removes a loop device, unless another program has its number by now."""
    if backing_of(number) == str(backing):
        subprocess.run(["losetup", "--detach", f"/dev/loop{number}"], check=False, capture_output=True)

    def gone() -> bool:
        # udev may have the device open for a moment.
        with contextlib.suppress(OSError), Path("/dev/loop-control").open("rb") as control:
            fcntl.ioctl(control, _LOOP_CTL_REMOVE, number)
        return not Path(f"/sys/block/loop{number}").exists() or backing_of(number) not in (None, str(backing))

    wait_until(gone, f"loop{number} is removed")


def remove_disk(disk: Disk) -> None:
    """Detaches and removes a loop device that `make_loop` made."""
    number = number_of(disk)
    remove_loop(number, Path(backing_of(number) or ""))


def number_of(disk: Disk) -> int:
    """The number in a loop device's name."""
    return int(disk.name.removeprefix("loop"))


def own_loops(scratch: Path) -> list[str]:
    """Names of the loop devices over files in a folder, also over files that were removed."""
    found = []
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):
            if path.read_text().startswith(f"{scratch}/"):
                found.append(path.parent.parent.name)
    return sorted(found)


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


def queue_of(disk: Disk) -> dict[str, bytes]:
    """Every readable attribute of a disk's queue, byte for byte.

    Only disks of the test's own are compared: other programs may change the queues of theirs meanwhile.
    """
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
    """The differences between two answers of `queue_of`."""
    return {
        path: (before.get(path), after.get(path))
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
    }


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

    So udev's tools may run freely: they make links, nodes and records as the daemon would.
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
