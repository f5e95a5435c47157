"""Reasons against writing to a raw device: each is a real one, on a loop device."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from blklab.errors import DeviceInUseError, ExitCode, RequirementError, UnknownNameError
from blklab.linux.disks.device_in_use import check_writable_device, reasons_against_writing
from blklab.linux.disks.disk import Disk
from blklab.linux.disks.resolution import resolve
from real_devices import (
    LoopMaker,
    Mounter,
    attach_to_new_loop,
    remove_loop,
    tool,
    write_partition_table,
)

pytestmark = pytest.mark.root


@pytest.fixture
def disk(make_loop: LoopMaker) -> Disk:
    tool("wipefs", "util-linux")
    return make_loop(64)


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True, capture_output=True)


def test_an_empty_device_is_free(disk: Disk) -> None:
    check_writable_device(disk.dev_path)
    assert reasons_against_writing(str(disk.dev_path)) == []


def test_a_signature_of_a_file_system(disk: Disk) -> None:
    tool("mkfs.ext4", "e2fsprogs")
    _run("mkfs.ext4", "-q", disk.dev_path)
    assert reasons_against_writing(disk.dev_path) == ["it has a signature of ext4"]
    _run("wipefs", "-q", "-a", disk.dev_path)
    check_writable_device(disk.dev_path)


def test_a_mounted_file_system(disk: Disk, mount: Mounter) -> None:
    tool("mkfs.ext4", "e2fsprogs")
    _run("mkfs.ext4", "-q", disk.dev_path)
    folder = mount(disk.dev_path)
    with pytest.raises(DeviceInUseError) as caught:
        check_writable_device(disk.dev_path)
    assert caught.value.exit_code == ExitCode.REFUSED
    assert f"{disk.name} is mounted on {folder}" in caught.value.message
    assert "signature of ext4" in caught.value.message
    assert "O_EXCL" in caught.value.message


def test_a_mount_in_another_namespace(disk: Disk) -> None:
    tool("mkfs.ext4", "e2fsprogs")
    _run("mkfs.ext4", "-q", disk.dev_path)
    script = f"mount {disk.dev_path} /mnt && echo mounted && read _"
    command = ["unshare", "--mount", "sh", "-c", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        if process.stdout.readline() != "mounted\n":
            pytest.skip("mount namespaces are not allowed here")
        reasons = reasons_against_writing(disk.dev_path)
        assert f"{disk.name} is mounted on /mnt in another mount namespace" in reasons
        process.communicate("\n")


def test_swap(disk: Disk) -> None:
    tool("mkswap", "util-linux")
    _run("mkswap", disk.dev_path)
    if subprocess.run(["swapon", disk.dev_path], capture_output=True, check=False).returncode:
        pytest.skip("this kernel takes no swap")
    try:
        reasons = reasons_against_writing(disk.dev_path)
    finally:
        _run("swapoff", disk.dev_path)
    assert f"{disk.name} is in use as swap" in reasons
    assert "it has a signature of swap" in reasons


def test_partitions(disk: Disk) -> None:
    tool("partx", "util-linux")
    write_partition_table(disk)
    if subprocess.run(["partx", "--update", disk.dev_path], capture_output=True, check=False).returncode:
        pytest.skip("this kernel adds no partitions to loop devices")
    reasons = reasons_against_writing(disk.dev_path)
    assert f"it has the partitions {disk.name}p1" in reasons
    assert "it has a signature of dos" in reasons
    assert reasons_against_writing(f"{disk.dev_path}p1") == [], "the partition itself is free"


def test_a_mounted_partition_counts_for_the_whole_disk(disk: Disk, mount: Mounter) -> None:
    tool("partx", "util-linux")
    tool("mkfs.ext4", "e2fsprogs")
    write_partition_table(disk)
    if subprocess.run(["partx", "--update", disk.dev_path], capture_output=True, check=False).returncode:
        pytest.skip("this kernel adds no partitions to loop devices")
    _run("mkfs.ext4", "-q", f"{disk.dev_path}p1")
    folder = mount(f"{disk.dev_path}p1")
    assert f"{disk.name}p1 is mounted on {folder}" in reasons_against_writing(disk.dev_path)


def test_every_member_of_a_mounted_btrfs(make_loop: LoopMaker, mount: Mounter) -> None:
    tool("mkfs.btrfs", "btrfs-progs")
    first, second = make_loop(128), make_loop(128)
    _run("mkfs.btrfs", "-q", first.dev_path, second.dev_path)
    _run("btrfs", "device", "scan", first.dev_path, second.dev_path)
    mount(first.dev_path)
    for disk in (first, second):
        reasons = reasons_against_writing(disk.dev_path)
        assert any(f"{disk.name} belongs to the mounted btrfs" in reason for reason in reasons)


def test_a_loop_device_on_top(disk: Disk) -> None:
    upper = attach_to_new_loop(lambda number: disk.dev_path)
    try:
        assert f"loop{upper} is a loop device on it" in reasons_against_writing(disk.dev_path)
    finally:
        remove_loop(upper, disk.dev_path)


def test_a_process_that_has_it_open(disk: Disk) -> None:
    program = "import sys\nwith open(sys.argv[1], 'rb'):\n    print('open', flush=True)\n    sys.stdin.read()"
    command = [sys.executable, "-c", program, str(disk.dev_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        (reason,) = reasons_against_writing(disk.dev_path)
        assert f"process {process.pid} " in reason
        process.communicate()


def test_exclusive_use_by_somebody(disk: Disk) -> None:
    program = (
        "import os, sys\nos.open(sys.argv[1], os.O_RDONLY | os.O_EXCL)\n"
        "print('open', flush=True)\nsys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(disk.dev_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        assert any("O_EXCL" in reason for reason in reasons_against_writing(disk.dev_path))
        process.communicate()


def test_a_read_only_device(disk: Disk) -> None:
    tool("blockdev", "util-linux")
    _run("blockdev", "--setro", disk.dev_path)
    assert reasons_against_writing(disk.dev_path) == ["it is read-only"]


def test_a_device_mapper_on_top(disk: Disk) -> None:
    dmsetup = tool("dmsetup", "dmsetup")
    if subprocess.run([dmsetup, "version"], capture_output=True, check=False).returncode:
        pytest.skip("this kernel has no device-mapper")
    name = f"blklab-guard-{disk.name}"
    _run(dmsetup, "create", name, "--table", f"0 65536 linear {disk.dev_path} 0")
    try:
        assert any("is held by dm-" in reason for reason in reasons_against_writing(disk.dev_path))
    finally:
        _run(dmsetup, "remove", "--retry", name)


def test_the_disk_under_the_root_directory() -> None:
    try:
        leaf = resolve("/").leaves[0]
    except RequirementError as error:
        pytest.skip(f"/ is on no disk: {error}")
    assert any("mounted on /" in reason for reason in reasons_against_writing(leaf.dev_path))


@pytest.mark.parametrize("path", ["/dev/null", "/etc/hostname", "/dev/nosuchdisk"])
def test_what_is_no_block_device(path: str) -> None:
    with pytest.raises(UnknownNameError):
        check_writable_device(path)
