"""The disks under a path, with real devices and mounts."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path

import pytest

from blklab.errors import BlklabError, RequirementError, UnknownNameError
from blklab.linux.disks.resolution import resolve
from blklab.linux.disks.stack import all_disks, leaves_of
from real_devices import LoopMaker, Mounter, backing_of, number_of, tool, write_partition_table

pytestmark = pytest.mark.root


def _format(command: str, *arguments: str | Path) -> None:
    subprocess.run([command, *arguments], check=True, capture_output=True)


def test_root_directory_resolves_to_known_disks() -> None:
    try:
        found = resolve("/")
    except RequirementError as error:
        pytest.skip(f"/ is on no disk here: {error.message}")
    known: set[str] = set()
    for disk in all_disks():
        # Other programs detach their loop devices meanwhile.
        with contextlib.suppress(RequirementError):
            known |= {leaf.key for leaf in leaves_of(disk)}
    assert found.leaves
    assert {leaf.key for leaf in found.leaves} <= known
    assert found.source != "/dev/root"
    assert found.mount_point == "/"


def test_loop_device_is_its_own_leaf(make_loop: LoopMaker, tmp_path: Path) -> None:
    disk = make_loop(64)
    found = resolve(str(disk.dev_path))
    assert found.leaves == [disk]
    assert (found.kind, found.filesystem) == ("block", None)
    link = tmp_path / "by-id" / "virtio-something"
    link.parent.mkdir()
    link.symlink_to(disk.dev_path)
    assert resolve(str(link)).leaves == [disk]
    assert disk.size_bytes == 64 << 20
    assert disk in all_disks()


@pytest.mark.parametrize(("command", "size_mib"), [("mkfs.ext4", 64), ("mkfs.xfs", 320)])
def test_directory_and_file_on_a_loop_device(
    make_loop: LoopMaker, mount: Mounter, command: str, size_mib: int
) -> None:
    tool(command, {"mkfs.ext4": "e2fsprogs", "mkfs.xfs": "xfsprogs"}[command])
    disk = make_loop(size_mib)
    _format(command, disk.dev_path)
    folder = mount(disk.dev_path)
    assert resolve(str(folder)).leaves == [disk]
    file = folder / "file"
    file.touch()
    found = resolve(str(file))
    assert (found.kind, found.leaves) == ("file", [disk])
    link = folder.parent / "link"
    link.symlink_to(file)
    assert resolve(str(link)).leaves == [disk]


def test_xfs_with_its_log_elsewhere_has_two_leaves(make_loop: LoopMaker, mount: Mounter) -> None:
    tool("mkfs.xfs", "xfsprogs")
    data, log = make_loop(320), make_loop(128)
    _format("mkfs.xfs", "-l", f"logdev={log.dev_path}", data.dev_path)
    folder = mount("-o", f"logdev={log.dev_path}", data.dev_path)
    assert {leaf.name for leaf in resolve(str(folder)).leaves} == {data.name, log.name}


def test_btrfs_over_two_devices_has_two_leaves(make_loop: LoopMaker, mount: Mounter) -> None:
    tool("mkfs.btrfs", "btrfs-progs")
    first, second = make_loop(128), make_loop(128)
    _format("mkfs.btrfs", "-q", "-d", "raid1", "-m", "raid1", first.dev_path, second.dev_path)
    subprocess.run(
        ["btrfs", "device", "scan", first.dev_path, second.dev_path], check=True, capture_output=True
    )
    folder = mount(second.dev_path)
    expected = {first.name, second.name}
    assert {leaf.name for leaf in resolve(str(folder)).leaves} == expected
    subprocess.run(["btrfs", "subvolume", "create", folder / "sub"], check=True, capture_output=True)
    inside = folder / "sub" / "file"
    inside.touch()
    assert {leaf.name for leaf in resolve(str(inside)).leaves} == expected, (
        "a subvolume has a device number of its own"
    )
    third = make_loop(128)
    subprocess.run(["btrfs", "device", "add", "-f", third.dev_path, folder], check=True, capture_output=True)
    assert {leaf.name for leaf in resolve(str(folder)).leaves} == expected | {third.name}


def test_partition_of_a_loop_device(make_loop: LoopMaker) -> None:
    tool("partx", "util-linux")
    disk = make_loop(64)
    write_partition_table(disk)
    if subprocess.run(["partx", "--update", disk.dev_path], capture_output=True, check=False).returncode:
        pytest.skip("this kernel adds no partitions to loop devices")
    found = resolve(f"{disk.dev_path}p1")
    assert [leaf.name for leaf in found.leaves] == [disk.name]
    assert found.stack == [f"{disk.name}p1 (partition)", disk.name]


def test_bind_mount_and_mount_over_a_mount(make_loop: LoopMaker, mount: Mounter) -> None:
    tool("mkfs.ext4", "e2fsprogs")
    first, second = make_loop(32), make_loop(32)
    for disk in (first, second):
        _format("mkfs.ext4", "-q", disk.dev_path)
    folder = mount(first.dev_path)
    (folder / "inner").mkdir()
    bound = mount("--bind", folder / "inner")
    assert [leaf.name for leaf in resolve(str(bound)).leaves] == [first.name]
    subprocess.run(["mount", second.dev_path, bound], check=True)
    try:
        assert [leaf.name for leaf in resolve(str(bound)).leaves] == [second.name]
    finally:
        subprocess.run(["umount", bound], check=True)


def test_overlay_resolves_to_its_upper_directory(make_loop: LoopMaker, mount: Mounter, scratch: Path) -> None:
    tool("mkfs.ext4", "e2fsprogs")
    disk = make_loop(32)
    _format("mkfs.ext4", "-q", disk.dev_path)
    folder = mount(disk.dev_path)
    lower = scratch / "lower"
    for path in (lower, folder / "upper", folder / "work"):
        path.mkdir()
    options = f"lowerdir={lower},upperdir={folder / 'upper'},workdir={folder / 'work'}"
    merged = mount("-t", "overlay", "-o", options, "overlay")
    assert [leaf.name for leaf in resolve(str(merged)).leaves] == [disk.name]
    hidden = mount("-t", "tmpfs", "tmpfs")
    subprocess.run(["mount", "--bind", hidden, folder], check=True)
    try:
        with pytest.raises(RequirementError, match="not visible from here"):
            resolve(str(merged))
    finally:
        subprocess.run(["umount", folder], check=True)


def test_overlay_that_is_read_only(mount: Mounter, scratch: Path) -> None:
    for name in ("one", "two"):
        (scratch / name).mkdir()
    merged = mount("-t", "overlay", "-o", f"lowerdir={scratch / 'one'}:{scratch / 'two'}", "overlay")
    with pytest.raises(RequirementError, match="read-only"):
        resolve(str(merged))


def test_memory_file_system(mount: Mounter) -> None:
    folder = mount("-t", "tmpfs", "tmpfs")
    with pytest.raises(RequirementError, match="memory"):
        resolve(str(folder))


def test_compressed_memory_is_no_disk() -> None:
    if not Path("/dev/zram0").exists():
        pytest.skip("this machine has no zram device")
    with pytest.raises(RequirementError, match="memory"):
        resolve("/dev/zram0")


def test_empty_loop_device(make_loop: LoopMaker) -> None:
    while True:
        disk = make_loop(16)
        subprocess.run(["losetup", "--detach", disk.dev_path], check=True)
        try:
            resolve(str(disk.dev_path))
        except RequirementError as error:
            assert "no file is attached" in error.message
            return
        # A `losetup --find` of another program took the device meanwhile.
        assert backing_of(number_of(disk)) is not None


@pytest.mark.parametrize("path", ["/nowhere/at/all", "/dev/null", "/dev/nosuchdisk", "a\0b"])
def test_what_is_no_target(path: str) -> None:
    with pytest.raises(UnknownNameError):
        resolve(path)


def test_a_device_node_without_a_device(scratch: Path, needs_root: None) -> None:
    node = scratch / "node"
    os.mknod(node, 0o600 | 0o060000, os.makedev(240, 77))
    with pytest.raises(BlklabError, match="240:77"):
        resolve(str(node))


def test_a_link_that_leads_nowhere(scratch: Path) -> None:
    link = scratch / "link"
    link.symlink_to(scratch / "gone")
    with pytest.raises(UnknownNameError, match="no such file"):
        resolve(str(link))


def test_device_mapper_striped_over_loop_devices(make_loop: LoopMaker) -> None:
    dmsetup = tool("dmsetup", "dmsetup")
    if subprocess.run([dmsetup, "version"], capture_output=True, check=False).returncode:
        pytest.skip("this kernel has no device-mapper; test_disks_in_trees has made-up ones")
    first, second = make_loop(32), make_loop(32)
    name = f"blklab-test-{os.getpid()}"
    table = f"0 65536 striped 2 128 {first.dev_path} 0 {second.dev_path} 0"
    subprocess.run([dmsetup, "create", name, "--table", table], check=True)
    try:
        found = resolve(f"/dev/mapper/{name}")
        assert {leaf.name for leaf in found.leaves} == {first.name, second.name}
    finally:
        subprocess.run([dmsetup, "remove", "--retry", name], check=True)


def test_md_over_loop_devices(make_loop: LoopMaker) -> None:
    mdadm = tool("mdadm", "mdadm")
    if not Path("/proc/mdstat").exists():
        pytest.skip("this kernel has no md; test_disks_in_trees has a made-up one")
    first, second = make_loop(64), make_loop(64)
    node = f"/dev/md/blklab-test-{os.getpid()}"
    create = [mdadm, "--create", node, "--run", "--level=1", "--raid-devices=2", "--metadata=1.2"]
    subprocess.run([*create, first.dev_path, second.dev_path], check=True, capture_output=True)
    try:
        assert {leaf.name for leaf in resolve(node).leaves} == {first.name, second.name}
    finally:
        subprocess.run([mdadm, "--stop", node], check=True, capture_output=True)
