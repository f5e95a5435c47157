"""Rules and profiles for classes of drives, and `apply` for all disks of a model."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from sysfs_tree import SysfsTree

from blklab.errors import UsageError
from blklab.linux.apply import application
from blklab.linux.apply.class_rule import class_of, class_rule, is_class_rule, tuned_profile
from blklab.linux.disks.disk import Disk
from blklab.linux.disks.stack import all_disks
from blklab.spec.drive_classes import DriveClass
from blklab.spec.schedulers import parse_scheduler_choice
from real_devices import LoopMaker, in_private_machine, tool

BFQ = parse_scheduler_choice("bfq:slice_idle=0")


@pytest.fixture
def tree(tmp_path: Path) -> SysfsTree:
    return SysfsTree(tmp_path)


def _disk(tree: SysfsTree, name: str, number: str, model: str = "", **files: str) -> Disk:
    contents = {"device/model": f"{model}   \n"} if model else {}
    tree.disk(name, number, files=contents | files)
    return next(disk for disk in all_disks(tree.roots) if disk.name == name)


def _body(text: str) -> str:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return " ".join(" ".join(lines).replace("\\", "").split())


def test_the_class_of_a_disk_is_its_model(tree: SysfsTree) -> None:
    disk = _disk(tree, "sda", "8:0", "EXAMPLE [SSD] 1TB")
    drive_class = class_of(disk)
    assert drive_class == DriveClass(model="EXAMPLE ?SSD? 1TB", kind="scsi", rotational=False)
    assert drive_class.includes(name="sdb", model=disk.model, rotational=False)
    assert not drive_class.includes(name="sdb", model="OTHER", rotational=False)
    with pytest.raises(UsageError, match="no model"):
        class_of(_disk(tree, "sdb", "8:16"))
    with pytest.raises(UsageError, match="no model"):
        class_of(_disk(tree, "loop0", "7:0", "x"))


def test_text_of_a_rule_for_a_class() -> None:
    drive_class = DriveClass(model="EXAMPLE SSD*", rotational=False)
    rule = class_rule(drive_class, ["nvme", "scsi"], BFQ, ["Evidence: seven drives.\nRUN+=x"])
    assert str(rule.path) == "/etc/udev/rules.d/89-blklab-class-EXAMPLE_SSD_-non-rotational.rules"
    assert is_class_rule(rule.path)
    assert "# Evidence: seven drives. RUN+=x\n" in rule.text
    assert "for non-rotational drives of model EXAMPLE SSD*" in rule.text
    common = 'ACTION=="add", SUBSYSTEM=="block", ENV{DEVTYPE}=="disk", KERNEL=="%s", '
    rest = (
        'ATTRS{model}=="EXAMPLE SSD*", ATTR{queue/rotational}=="0", '
        'ATTR{queue/scheduler}="bfq", ATTR{queue/iosched/slice_idle}="0"'
    )
    assert _body(rule.text) == " ".join(common % name + rest for name in ("nvme*", "sd*"))


def test_a_virtual_disk_that_says_it_rotates_stands_for_all_virtual_disks(tree: SysfsTree) -> None:
    """Another of the same kind may say the opposite, and is no other kind of disk."""
    disk = _disk(tree, "vda", "254:0", "virtio disk")
    drive_class = class_of(replace(disk, rotational=True))
    assert drive_class == DriveClass(kind="virtio")
    assert drive_class.includes(name="vdb", model="", rotational=False)
    assert not DriveClass(rotational=True).includes(name="vda", model="", rotational=True)


def test_attributes_of_the_queue_come_before_tunables() -> None:
    choice = parse_scheduler_choice("bfq:slice_idle=0:nr_requests=64")
    text = _body(class_rule(DriveClass(kind="nvme"), ["nvme"], choice, []).text)
    assert text.endswith(
        'ATTR{queue/scheduler}="bfq", ATTR{queue/nr_requests}="64", ATTR{queue/iosched/slice_idle}="0"'
    )


def test_odd_patterns_cannot_break_out_of_the_rule() -> None:
    rule = class_rule(DriveClass(model='a|b"\nRUN+="/bin/rm', kind="scsi"), ["scsi"], BFQ, [])
    assert 'ATTRS{model}=="a?b??RUN+=?/bin/rm"' in rule.text
    assert not [line for line in rule.text.splitlines() if line.startswith("RUN")]


def test_only_what_udev_can_match_has_a_rule() -> None:
    with pytest.raises(UsageError, match="virtio drives tell udev no model"):
        class_rule(DriveClass(model="x"), ["virtio"], BFQ, [])
    with pytest.raises(UsageError, match="models only"):
        class_rule(DriveClass(model="x"), [""], BFQ, [])
    assert 'KERNEL=="vd*"' in class_rule(DriveClass(kind="virtio"), ["virtio"], BFQ, []).text
    assert 'ATTRS{name}=="SD*"' in class_rule(DriveClass(model="SD*"), ["mmc"], BFQ, []).text


def test_text_of_a_tuned_profile() -> None:
    profile = tuned_profile(DriveClass(model="Sam SSD 9?0*"), parse_scheduler_choice("none"), ["Evidence."])
    assert "# Evidence.\n" in profile
    assert profile.endswith(
        "[disk_blklab]\ntype=disk\ndevices_udev_regex=^ID_MODEL=Sam_SSD_9.0.*$\nelevator=none\n"
    )
    with pytest.raises(UsageError, match="not its tunables"):
        tuned_profile(DriveClass(model="x"), BFQ, [])
    with pytest.raises(UsageError, match="needs a model"):
        tuned_profile(DriveClass(kind="nvme"), parse_scheduler_choice("none"), [])


def test_disks_of_a_class_are_planned_with_one_rule(tree: SysfsTree, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, number, model in (("sda", "8:0", "A"), ("sdb", "8:16", "A"), ("sdc", "8:32", "B")):
        _disk(tree, name, number, model, serial=f"serial-{name}\n")
    monkeypatch.setattr(application, "all_disks", lambda: all_disks(tree.roots))
    drive_class = DriveClass(model="A", kind="scsi", rotational=False)
    members = application.disks_of(drive_class)
    assert [disk.name for disk in members] == ["sda", "sdb"]
    plans = application.plan_class(members, drive_class, BFQ, ["Why."])
    assert len({plan.rule.path for plan in plans if plan.rule}) == 1
    assert {plan.goes_by for plan in plans} == {"non-rotational scsi drives of model A"}
    assert len({plan.identity for plan in plans}) == 2, "each disk keeps a record of its own"
    assert not any(plan.warning for plan in plans)


_SET = """
import sys
from blklab.linux.apply import application
from blklab.linux.apply.udev import RULES_DIRECTORY
from blklab.linux.disks.resolution import resolve
from blklab.spec.drive_classes import DriveClass
from blklab.spec.schedulers import parse_scheduler_choice
choice = parse_scheduler_choice("bfq:slice_idle=0")
disks = [resolve(path).leaves[0] for path in sys.argv[1:]]
plans = application.plan_class(disks, DriveClass(kind="loop"), choice, ["Why."])
for remark in application.apply(plans, choice):
    print(remark)
print("rules", [path.name for path in RULES_DIRECTORY.iterdir()])
print("in force", [(disk.sys_path / "queue/scheduler").read_text().strip() for disk in disks])
together = application.sharing(disks[:1])
print("together", [disk.name for disk in together])
application.undo([application.plan_undo(disk, force=False) for disk in together])
print("rules", [path.name for path in RULES_DIRECTORY.iterdir()])
"""


@pytest.mark.root
def test_udev_applies_a_rule_for_a_class_and_undo_restores_all_its_disks(make_loop: LoopMaker) -> None:
    tool("udevadm", "udev")
    disks = [make_loop(16), make_loop(16)]
    for disk in disks:
        (disk.sys_path / "queue" / "scheduler").write_text("none")
    command = [sys.executable, "-c", _SET, *(str(disk.dev_path) for disk in disks)]
    answer = in_private_machine(command, disks)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.count("udevadm test accept it and apply it to this disk") == 2
    assert "rules ['89-blklab-class-loop.rules']" in answer.stdout
    assert answer.stdout.count("[bfq]") == 2
    assert f"together {[disk.name for disk in disks]}" in answer.stdout
    assert answer.stdout.rstrip().endswith("rules []")
    for disk in disks:
        assert "[none]" in (disk.sys_path / "queue" / "scheduler").read_text()
