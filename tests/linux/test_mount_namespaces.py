"""Mounts of other namespaces: in use all the same, and named only if a person cannot see the file system."""

from __future__ import annotations

from pathlib import Path

import pytest
from sysfs_tree import SysfsTree

from blklab.linux.disks.device_in_use import mounts_against_writing, why_not_readable

ROOT = "21 1 8:1 / / rw - ext4 /dev/sda1 rw"
PRIVATE = (
    "121 120 8:1 / / ro - ext4 /dev/sda1 rw",
    "122 121 8:1 /etc /etc ro - ext4 /dev/sda1 rw",
    "123 121 8:1 /var/tmp/systemd-private-1/tmp /var/tmp rw - ext4 /dev/sda1 rw",
)


def _machine(folder: Path, own: tuple[str, ...], other: tuple[str, ...]) -> SysfsTree:
    tree = SysfsTree(folder)
    tree.mounts(*own)
    for process, namespace, lines in (("1", "mnt:[1]", own), ("456", "mnt:[2]", other)):
        (tree.roots.proc / process / "ns").mkdir(parents=True)
        (tree.roots.proc / process / "ns/mnt").symlink_to(namespace)
        (tree.roots.proc / process / "mountinfo").write_text("".join(f"{line}\n" for line in lines))
    return tree


@pytest.mark.parametrize(
    ("own", "other", "reasons"),
    [
        ((ROOT,), PRIVATE, ["sda1 is mounted on /"]),
        ((), PRIVATE[2:], ["sda1 is mounted on /var/tmp in another mount namespace"]),
        ((), PRIVATE, ["sda1 is mounted on / in another mount namespace (and in 2 more places)"]),
        ((), (), []),
    ],
)
def test_mounts_of_services(
    tmp_path: Path, own: tuple[str, ...], other: tuple[str, ...], reasons: list[str]
) -> None:
    tree = _machine(tmp_path, own, other)
    assert mounts_against_writing({"8:0": "sda", "8:1": "sda1"}, tree.roots) == reasons


def test_whether_a_device_can_be_read_is_tried(tmp_path: Path) -> None:
    readable = tmp_path / "sda"
    readable.touch()
    assert why_not_readable(readable) is None
    assert why_not_readable(tmp_path / "sdb") == "it cannot be opened: no such file or directory"
