"""The disks under a path, for devices that need hardware or kernel options that a test machine lacks.

These sysfs trees are made up after real ones: there is no NVMe here, and device-mapper and md may be missing
from the kernel. test_disks_on_this_machine tests loop, btrfs, overlay and others that every machine has.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from sysfs_tree import WITHOUT_SCHEDULER, SysfsTree

from blklab.errors import RequirementError
from blklab.linux.disks.disk import Roots
from blklab.linux.disks.resolution import Resolution, resolve
from blklab.linux.disks.stack import all_disks, leaves_of


@pytest.fixture
def tree(tmp_path: Path) -> SysfsTree:
    return SysfsTree(tmp_path)


def _resolve_mounted(
    tree: SysfsTree, tmp_path: Path, number: str, filesystem: str = "ext4", source: str = "x"
) -> Resolution:
    """Resolves a directory in a made-up file system on a device of that number."""
    data = tmp_path / "data"
    data.mkdir()
    tree.mounts(
        "22 1 8:99 / / rw - ext4 /dev/root rw",
        f"40 22 {number} / {data} rw,noatime shared:1 - {filesystem} {source} rw,errors=remount-ro",
    )
    return resolve(str(data), tree.roots)


def _names(resolution: Resolution) -> list[str]:
    return [leaf.name for leaf in resolution.leaves]


def test_partition_leads_to_its_disk(tree: SysfsTree, tmp_path: Path) -> None:
    tree.disk("sda", "8:0", files={"device/model": "Samsung SSD 860 \n", "device/wwid": "naa.5002538e\n"})
    tree.partition("sda", "sda2", "8:2")
    found = _resolve_mounted(tree, tmp_path, "8:2", source="/dev/root")
    assert _names(found) == ["sda"]
    assert found.stack[1:] == ["sda2 (partition)", "sda"]
    assert found.source == "/dev/sda2", "the /dev/root of the table of mounts names nothing"
    assert found.mount_options == "rw,noatime,errors=remount-ro"
    disk = found.leaves[0]
    assert (disk.model, disk.wwid, disk.device_number) == ("Samsung SSD 860", "naa.5002538e", "8:0")
    assert (disk.size_bytes, disk.rotational) == (2048000 * 512, False)


def test_lvm_striped_over_an_encrypted_partition_and_a_disk(tree: SysfsTree, tmp_path: Path) -> None:
    tree.disk("sda", "8:0")
    tree.partition("sda", "sda1", "8:1")
    tree.disk("sdb", "8:16")
    tree.disk(
        "dm-0",
        "253:0",
        parent="devices/virtual/block",
        scheduler=None,
        slaves=("sda1",),
        files={"dm/uuid": "CRYPT-LUKS2-aa-secret\n", "dm/name": "secret\n"},
    )
    tree.disk(
        "dm-1",
        "253:1",
        parent="devices/virtual/block",
        scheduler=WITHOUT_SCHEDULER,
        slaves=("dm-0", "sdb"),
        files={"dm/uuid": "LVM-abcdef\n", "dm/name": "vg-striped\n"},
    )
    found = _resolve_mounted(tree, tmp_path, "253:1")
    assert _names(found) == ["sda", "sdb"]
    assert found.stack[1:] == [
        "dm-1 (LVM vg-striped)",
        "dm-0 (encrypted secret)",
        "sda1 (partition)",
        "sda",
        "sdb",
    ]


def test_a_disk_reached_twice_is_one_leaf(tree: SysfsTree, tmp_path: Path) -> None:
    tree.disk("sda", "8:0")
    tree.partition("sda", "sda1", "8:1")
    tree.partition("sda", "sda2", "8:2")
    tree.disk("dm-0", "253:0", scheduler=None, slaves=("sda1", "sda2"), files={"dm/uuid": "LVM-x\n"})
    assert _names(_resolve_mounted(tree, tmp_path, "253:0")) == ["sda"]


def test_md_raid10_leads_to_all_members_in_natural_order(tree: SysfsTree, tmp_path: Path) -> None:
    for index, name in enumerate(("sdb", "sdc", "sdd", "sde")):
        tree.disk(name, f"8:{16 * (index + 1)}")
    md = {"md/level": "raid10\n"}
    tree.disk("md127", "9:127", scheduler=WITHOUT_SCHEDULER, slaves=("sdb", "sdc", "sdd", "sde"), files=md)
    found = _resolve_mounted(tree, tmp_path, "9:127", filesystem="xfs")
    assert _names(found) == ["sdb", "sdc", "sdd", "sde"]
    assert found.stack[1] == "md127 (md raid10)"


def test_request_based_multipath_is_itself_the_leaf(tree: SysfsTree, tmp_path: Path) -> None:
    """It issues requests directly to its paths, past their schedulers."""
    tree.disk("sda", "8:0")
    tree.disk("sdb", "8:16")
    files = {"dm/uuid": "mpath-3600\n", "dm/name": "mpatha\n"}
    tree.disk("dm-0", "253:0", slaves=("sda", "sdb"), files=files)
    found = _resolve_mounted(tree, tmp_path, "253:0")
    assert _names(found) == ["dm-0"]
    assert found.leaves[0].wwid == "mpath-3600"


def test_bio_based_multipath_leads_to_its_paths(tree: SysfsTree, tmp_path: Path) -> None:
    tree.disk("sda", "8:0")
    tree.disk("sdb", "8:16")
    tree.disk(
        "dm-0", "253:0", scheduler=WITHOUT_SCHEDULER, slaves=("sda", "sdb"), files={"dm/uuid": "mpath-3600\n"}
    )
    assert _names(_resolve_mounted(tree, tmp_path, "253:0")) == ["sda", "sdb"]


def test_nvme_multipath_leads_to_the_hidden_paths(tree: SysfsTree, tmp_path: Path) -> None:
    subsystem = "devices/virtual/nvme-subsystem/nvme-subsys0"
    wwid = {"wwid": "eui.0025385\n"}
    tree.disk("nvme0n1", "259:0", parent=subsystem, scheduler=WITHOUT_SCHEDULER, files=wwid)
    tree.partition("nvme0n1", "nvme0n1p1", "259:1")
    for controller in (0, 10, 2):
        name = f"nvme0c{controller}n1"
        tree.disk(name, None, parent=f"devices/pci/nvme{controller}", files={"hidden": "1\n", **wwid})
    tree.disk("nvme0c0n2", None, parent="devices/pci/nvme0", files={"hidden": "1\n"})
    tree.disk("nvme1c0n1", None, parent="devices/pci/nvme9", files={"hidden": "1\n"})
    found = _resolve_mounted(tree, tmp_path, "259:1")
    assert _names(found) == ["nvme0c0n1", "nvme0c2n1", "nvme0c10n1"]
    assert found.stack[1:3] == ["nvme0n1p1 (partition)", "nvme0n1 (NVMe multipath)"]
    assert {leaf.dev_path.name for leaf in found.leaves} == {"nvme0n1"}
    assert len({leaf.key for leaf in found.leaves}) == 3
    heads = all_disks(tree.roots)
    assert [disk.name for disk in heads] == ["nvme0n1"], "hidden paths are not disks of their own"
    assert len(leaves_of(heads[0], tree.roots)) == 3


def test_nvme_without_multipath_is_a_leaf(tree: SysfsTree, tmp_path: Path) -> None:
    files = {"device/model": "Fast 1TB\n", "device/serial": "S1\n", "wwid": "eui.1\n"}
    tree.disk("nvme0n1", "259:0", scheduler="[none] mq-deadline\n", files=files)
    leaf = _resolve_mounted(tree, tmp_path, "259:0").leaves[0]
    assert (leaf.name, leaf.model, leaf.serial, leaf.wwid) == ("nvme0n1", "Fast 1TB", "S1", "eui.1")


def test_bcache_leads_to_cache_and_backing_disk(tree: SysfsTree, tmp_path: Path) -> None:
    tree.disk("sda", "8:0")
    tree.disk("nvme0n1", "259:0")
    tree.disk("bcache0", "251:0", scheduler=WITHOUT_SCHEDULER, slaves=("sda", "nvme0n1"))
    assert sorted(_names(_resolve_mounted(tree, tmp_path, "251:0"))) == ["nvme0n1", "sda"]


def test_serial_number_of_a_scsi_page(tree: SysfsTree) -> None:
    folder = tree.disk("sda", "8:0")
    (folder / "device").mkdir()
    (folder / "device" / "vpd_pg80").write_bytes(b"\x00\x80\x00\x08 WD-1234\x00")
    assert all_disks(tree.roots)[0].serial == "WD-1234"


def test_a_virtual_disk_is_named_by_its_driver(tree: SysfsTree, tmp_path: Path) -> None:
    folder = tree.disk("vda", "254:0")
    (tmp_path / "virtio_blk").mkdir()
    (folder / "device").mkdir()
    (folder / "device" / "driver").symlink_to(tmp_path / "virtio_blk")
    assert all_disks(tree.roots)[0].model == "virtio disk"


def test_persistent_memory_has_no_scheduler(tree: SysfsTree, tmp_path: Path) -> None:
    tree.disk("pmem0", "259:3", scheduler=WITHOUT_SCHEDULER)
    with pytest.raises(RequirementError, match="pmem0 has no I/O scheduler"):
        _resolve_mounted(tree, tmp_path, "259:3")


@pytest.mark.parametrize(
    ("filesystem", "source", "words"),
    [
        ("nfs4", "server:/export", "another machine"),
        ("tmpfs", "tmpfs", "memory"),
        ("virtiofs", "share", "another machine"),
        ("zfs", "tank/home", "zfs"),
        ("fuse.mergerfs", "a:b", "cannot tell which disk"),
    ],
)
def test_file_systems_without_a_disk_say_so(
    tree: SysfsTree, tmp_path: Path, filesystem: str, source: str, words: str
) -> None:
    with pytest.raises(RequirementError, match=words) as caught:
        _resolve_mounted(tree, tmp_path, "0:77", filesystem=filesystem, source=source)
    assert caught.value.hint


def test_overlay_without_upper_directory(tree: SysfsTree, tmp_path: Path) -> None:
    with pytest.raises(RequirementError, match="read-only"):
        _resolve_mounted(tree, tmp_path, "0:50", filesystem="overlay", source="overlay")


def test_a_device_that_the_kernel_does_not_know(tree: SysfsTree, tmp_path: Path) -> None:
    with pytest.raises(RequirementError, match="8:77"):
        _resolve_mounted(tree, tmp_path, "8:77")


def test_the_later_of_two_mounts_on_one_point_counts(tree: SysfsTree, tmp_path: Path) -> None:
    tree.disk("sda", "8:0")
    tree.disk("sdb", "8:16")
    data = tmp_path / "my data"
    data.mkdir()
    escaped = str(data).replace(" ", r"\040")
    tree.mounts(
        f"40 22 8:0 / {escaped} rw - ext4 /dev/sda rw", f"41 22 8:16 / {escaped} rw - ext4 /dev/sdb rw"
    )
    assert _names(resolve(str(data), tree.roots)) == ["sdb"]


def test_a_machine_without_sysfs_has_no_disks(tmp_path: Path) -> None:
    assert all_disks(Roots(sys=tmp_path / "none")) == []
