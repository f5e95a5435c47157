"""Arrays that lack a member or rebuild one, in trees made up like sysfs."""

from __future__ import annotations

from pathlib import Path

import pytest
from sysfs_tree import WITHOUT_SCHEDULER, SysfsTree

from blklab.linux.disks.arrays import array_troubles, raid_troubles

UUID = "6d3f0ed4-59a7-4ea4-8b8c-0a5d5f1c2b3a"


def _md(tree: SysfsTree, **files: str) -> Path:
    disk = tree.disk("sda", "8:0")
    tree.partition("sda", "sda2", "8:2")
    about = {
        "md/level": "raid1\n",
        "md/raid_disks": "2\n",
        **{f"md/{name}": text for name, text in files.items()},
    }
    tree.disk(
        "md0",
        "9:0",
        parent="devices/virtual/block",
        scheduler=WITHOUT_SCHEDULER,
        slaves=("sda2",),
        files=about,
    )
    return disk


@pytest.mark.parametrize(
    ("files", "troubles"),
    [
        ({"degraded": "0\n", "sync_action": "idle\n"}, []),
        ({}, []),
        (
            {"degraded": "1\n", "sync_action": "idle\n"},
            ["md0 (raid1) is degraded: it lacks 1 of 2 members"],
        ),
        (
            {"degraded": "1\n", "sync_action": "recover\n"},
            ["md0 (raid1) is degraded: it lacks 1 of 2 members", "md0 (raid1) is busy with itself: recover"],
        ),
        ({"degraded": "0\n", "sync_action": "check\n"}, ["md0 (raid1) is busy with itself: check"]),
    ],
)
def test_an_md_array_on_a_partition(tmp_path: Path, files: dict[str, str], troubles: list[str]) -> None:
    tree = SysfsTree(tmp_path)
    assert array_troubles([_md(tree, **files)], tree.roots) == troubles


@pytest.mark.parametrize(("missing", "troubled"), [("0", False), ("1", True)])
def test_a_btrfs_that_lacks_a_member(tmp_path: Path, missing: str, troubled: bool) -> None:
    tree = SysfsTree(tmp_path)
    disks = [tree.disk(name, f"8:{16 * number}") for number, name in enumerate(("sda", "sdb", "sdc"))]
    other = tree.disk("sdz", "65:144")
    folder = tree.roots.sys / "fs/btrfs" / UUID
    (folder / "devices").mkdir(parents=True)
    for number, disk in enumerate(disks, 1):
        (folder / "devices" / disk.name).symlink_to(disk)
        (folder / f"devinfo/{number}").mkdir(parents=True)
        (folder / f"devinfo/{number}/missing").write_text("0\n")
    (folder / "devinfo/4").mkdir()
    (folder / "devinfo/4/missing").write_text(f"{missing}\n")
    expected = [f"the btrfs {UUID} is degraded: it lacks 1 of 4 members"] if troubled else []
    assert array_troubles(disks, tree.roots) == expected
    assert array_troubles([other], tree.roots) == []


@pytest.mark.parametrize(
    ("status", "troubles"),
    [
        ("0 2097152 raid raid1 2 AA 2097152/2097152 idle 0 0 -\n", []),
        (
            "0 2097152 raid raid1 2 AD 2097152/2097152 idle 0 0 -\n",
            ["vg-r (raid1) is degraded: it lacks 1 of 2 members"],
        ),
        (
            "0 2097152 raid raid5_ls 3 Aa- 10/2097152 recover 0 0 -\n",
            [
                "vg-r (raid5_ls) is degraded: it lacks 1 of 3 members",
                "vg-r (raid5_ls) is busy with itself: recover",
            ],
        ),
        ("", []),
        ("0 2097152 linear 8:0 2048\n", []),
    ],
)
def test_the_raid_of_lvm(status: str, troubles: list[str]) -> None:
    assert raid_troubles("vg-r", status) == troubles
