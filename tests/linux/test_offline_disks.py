"""Disks that the kernel has given up, in trees made up like sysfs; tests/vm has a real one."""

from __future__ import annotations

from pathlib import Path

import pytest
from sysfs_tree import SysfsTree

from blklab.errors import RequirementError
from blklab.linux.disks.disk import Disk
from blklab.linux.disks.offline import require_online
from blklab.linux.disks.stack import all_disks
from blklab.linux.doctor.advice import offline


def _tree(path: Path, state: str | None) -> SysfsTree:
    tree = SysfsTree(path)
    tree.disk("sda", "8:0", files={} if state is None else {"device/state": f"{state}\n"})
    return tree


def _disks(tree: SysfsTree) -> list[Disk]:
    return all_disks(tree.roots)


@pytest.mark.parametrize("state", [None, "running", "live", "quiesce"])
def test_a_disk_that_works_is_taken(tmp_path: Path, state: str | None) -> None:
    tree = _tree(tmp_path, state)
    require_online(_disks(tree))
    assert offline.check(tree.roots) == []


@pytest.mark.parametrize(
    ("state", "remedy"),
    [
        ("offline", "`echo running > /sys/block/sda/device/state`"),
        ("transport-offline", "`echo running > /sys/block/sda/device/state`"),
        ("dead", "reset"),
    ],
)
def test_a_disk_that_the_kernel_gave_up_is_refused(tmp_path: Path, state: str, remedy: str) -> None:
    tree = _tree(tmp_path, state)
    with pytest.raises(RequirementError, match=f"^sda is {state}: the kernel has given it up") as refused:
        require_online(_disks(tree))
    assert remedy in (refused.value.hint or "")
    (finding,) = offline.check(tree.roots)
    assert finding.state == "lacking"
    assert remedy in (finding.remedy or "")
