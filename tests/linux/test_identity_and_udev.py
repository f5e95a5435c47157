"""The identity that a udev rule matches, the rule's text, and that udev applies it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from sysfs_tree import SysfsTree

from blklab.errors import RequirementError, UsageError
from blklab.linux.apply.identity import Identity, identify
from blklab.linux.apply.udev import Rule, build_rule, write_rule
from blklab.linux.apply.udev_text import assigned, comment, run_for_device
from blklab.linux.disks.disk import Disk, read_disk
from blklab.linux.disks.stack import all_disks
from blklab.spec.schedulers import parse_scheduler_choice
from real_devices import LoopMaker, in_private_machine, tool


@pytest.fixture
def tree(tmp_path: Path) -> SysfsTree:
    return SysfsTree(tmp_path)


def _identity(tree: SysfsTree, name: str) -> Identity:
    disks = all_disks(tree.roots)
    return identify(next(disk for disk in disks if disk.name == name), disks)


def test_world_wide_name_comes_first(tree: SysfsTree) -> None:
    files = {"device/wwid": "naa.5002538e\n", "device/serial": "S1\n"}
    tree.disk("sda", "8:0", files=files)
    assert _identity(tree, "sda").matches == (("ATTRS{wwid}", "naa.5002538e"),)


def test_nvme_has_it_on_the_disk_itself(tree: SysfsTree) -> None:
    tree.disk("nvme0n1", "259:0", files={"wwid": "eui.1\n", "device/serial": "S1\n"})
    assert _identity(tree, "nvme0n1").matches == (("ATTR{wwid}", "eui.1"),)


def test_then_the_serial_number(tree: SysfsTree) -> None:
    tree.disk("vda", "254:0", files={"serial": "volume-1"})
    identity = _identity(tree, "vda")
    assert identity.matches == (("ATTR{serial}", "volume-1"),)
    assert identity.description == "serial number volume-1"
    assert identity.warning is None


def test_a_serial_number_that_two_disks_share_identifies_neither(tree: SysfsTree) -> None:
    for name, number in (("vda", "254:0"), ("vdb", "254:16")):
        tree.disk(name, number, files={"serial": "same"})
    identity = _identity(tree, "vdb")
    assert identity.matches == (("KERNEL", "vdb"),)
    assert "may belong to another disk" in str(identity.warning)


def test_last_resort_is_the_name_with_a_warning(tree: SysfsTree) -> None:
    tree.disk("vdc", "254:32")
    identity = _identity(tree, "vdc")
    assert identity.matches == (("KERNEL", "vdc"),)
    assert identity.warning is not None


def test_device_mapper_goes_by_its_uuid(tree: SysfsTree) -> None:
    tree.disk("dm-0", "253:0", files={"dm/uuid": "mpath-3600\n", "dm/name": "mpatha\n"})
    assert _identity(tree, "dm-0").matches == (("ATTR{dm/uuid}", "mpath-3600"),)


def test_hidden_paths_have_no_rule(tree: SysfsTree) -> None:
    folder = tree.disk("nvme0c0n1", None, files={"hidden": "1\n"})
    with pytest.raises(RequirementError, match="NVMe multipath") as caught:
        identify(read_disk(folder, tree.roots), [])
    assert "--now-only" in str(caught.value.hint)


@pytest.mark.root
def test_the_place_of_a_virtual_disk_is_known_to_udev() -> None:
    """Queries udev's own built-in, which works without its daemon."""
    tool("udevadm", "udev")
    disk = next((disk for disk in all_disks() if disk.name.startswith(("vd", "sd", "nvme"))), None)
    if disk is None:
        pytest.skip("this machine has no disk on a bus")
    nameless = Disk(disk.name, disk.device_number, disk.sys_path, disk.dev_path, "", "", "", 1, None)
    identity = identify(nameless, [])
    assert identity.matches[0][0] == "ENV{ID_PATH}"
    assert identity.warning is not None


def _rule(disk: Disk, identity: Identity, choice: str) -> Rule:
    return build_rule(
        disk, identity, parse_scheduler_choice(choice), written_by="a test", undo="delete this file"
    )


def test_text_of_a_rule(tree: SysfsTree) -> None:
    tree.disk("sda", "8:0", files={"device/wwid": "naa.5\n", "device/model": "Disk 1TB\n"})
    disk = all_disks(tree.roots)[0]
    rule = _rule(disk, _identity(tree, "sda"), "bfq:slice_idle=0:low_latency=0")
    assert str(rule.path) == "/etc/udev/rules.d/90-blklab-naa.5.rules"
    head, body = rule.text.split("ACTION", 1)
    assert all(line.startswith("# ") for line in head.splitlines())
    for words in (
        "Written by a test.",
        "sda (Disk 1TB)",
        "bfq:slice_idle=0:low_latency=0",
        "To undo it: delete",
    ):
        assert words in head
    assert " ".join(body.replace("\\\n", "").split()) == (
        '=="add", SUBSYSTEM=="block", ENV{DEVTYPE}=="disk", ATTRS{wwid}=="naa.5", '
        'ATTR{queue/scheduler}="bfq", ATTR{queue/iosched/slice_idle}="0", ATTR{queue/iosched/low_latency}="0"'
    )


def test_odd_characters_of_an_identity_cannot_break_out_of_the_rule(tree: SysfsTree) -> None:
    nasty = 'a"*?[x]|b\\\nRUN+="/bin/rm'
    tree.disk("sda", "8:0")
    rule = _rule(all_disks(tree.roots)[0], Identity((("ATTR{serial}", nasty),), f"serial {nasty}"), "none")
    assert 'ATTR{serial}=="a????x??b??RUN+=??bin/rm"'.replace("??bin", "?/bin") in rule.text
    assert [line for line in rule.text.splitlines() if line.startswith("RUN")] == []
    assert "/" not in rule.path.name
    assert "\n" not in rule.path.name


def test_a_rule_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    rule = Rule(tmp_path / "rules.d" / "90-blklab-x.rules", "text\n")
    write_rule(rule)
    assert rule.path.read_text() == "text\n"
    assert [path.name for path in rule.path.parent.iterdir()] == [rule.path.name]
    blocked = tmp_path / "file"
    blocked.touch()
    with pytest.raises(RequirementError, match="cannot be written"):
        write_rule(Rule(blocked / "90-blklab-x.rules", "text\n"))


_TRY = """
import sys
from blklab.linux.disks.resolution import resolve
from blklab.linux.apply.identity import identify
from blklab.linux.apply.udev import build_rule, check_rule, write_rule
from blklab.spec.schedulers import parse_scheduler_choice
from blklab.errors import RunFailedError
disk = resolve(sys.argv[1]).leaves[0]
rule = build_rule(disk, identify(disk), parse_scheduler_choice(sys.argv[2]), written_by="a test", undo="")
if len(sys.argv) > 3:
    rule = type(rule)(rule.path, rule.text.replace("loop/backing_file", sys.argv[3]))
write_rule(rule)
try:
    print(check_rule(rule, disk))
except RunFailedError as error:
    print("refused:", error.message)
"""


@pytest.mark.root
def test_udev_applies_the_rule(make_loop: LoopMaker) -> None:
    """With udev's real rule engine (`udevadm test`), in a mount namespace with its own /run and /dev."""
    tool("udevadm", "udev")
    disk = make_loop(16)
    queue = disk.sys_path / "queue"
    (queue / "scheduler").write_text("none")
    command = [sys.executable, "-c", _TRY, str(disk.dev_path)]
    answer = in_private_machine([*command, "bfq:slice_idle=0"], [disk])
    assert "udevadm test accept it and apply it to this disk" in answer.stdout, answer.stderr
    assert "[bfq]" in (queue / "scheduler").read_text()
    assert (queue / "iosched" / "slice_idle").read_text() == "0\n"


@pytest.mark.root
def test_udev_refuses_a_rule_for_another_disk(make_loop: LoopMaker) -> None:
    tool("udevadm", "udev")
    disk = make_loop(16)
    (disk.sys_path / "queue" / "scheduler").write_text("none")
    command = [sys.executable, "-c", _TRY, str(disk.dev_path), "bfq", "loop/offset"]
    answer = in_private_machine(command, [disk])
    assert "refused: udev does not apply" in answer.stdout, answer.stderr
    assert "[none]" in (disk.sys_path / "queue" / "scheduler").read_text()


@pytest.mark.root
def test_the_private_machine_leaves_no_trace(make_loop: LoopMaker) -> None:
    answer = in_private_machine(["sh", "-c", "touch /run/x /dev/x /etc/udev/x"], [make_loop(16)])
    assert answer.returncode == 0, answer.stderr
    assert not [path for path in ("/run/x", "/dev/x", "/etc/udev/x") if Path(path).exists()]


@pytest.mark.parametrize(
    ("value", "written"),
    [("64", '"64"'), ('6"4', r'"6\"4"'), ("$env{PATH}", '"$$env{PATH}"'), ("%k", '"%%k"'), ("a b", '"a b"')],
)
def test_an_assigned_value_stays_in_its_string(value: str, written: str) -> None:
    assert assigned(value) == written


@pytest.mark.parametrize("value", ["64\\", "6\n4", "\x1b", "µ"])
def test_what_a_string_cannot_hold_is_refused(value: str) -> None:
    with pytest.raises(UsageError, match="cannot stand in a udev rule"):
        assigned(value)


def test_a_command_for_a_device_has_plain_words_only() -> None:
    written = run_for_device("min=50.00 enable=1", "/sys/fs/cgroup/io.cost.qos")
    assert written == ("RUN+=\"/bin/sh -c 'echo %M:%m min=50.00 enable=1 > /sys/fs/cgroup/io.cost.qos'\"")
    for words in ("min=50;id", "min=$(id)", "min='", 'min="', "min=50 > /etc/x", "a`id`"):
        with pytest.raises(UsageError, match="cannot be written by a udev rule"):
            run_for_device(words, "/sys/fs/cgroup/io.cost.qos")


def test_a_comment_ends_with_its_line() -> None:
    assert comment("model\nRUN+=x \x1b[2J") == "# model RUN+=x \\x1b[2J\n"
    assert comment("EXAMPLE\\") == "# EXAMPLE\\ .\n"
