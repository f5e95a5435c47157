"""`blklab doctor`'s checks of settings that do not do what they seem to, on machines made up."""

from __future__ import annotations

from pathlib import Path

import pytest
from sysfs_tree import WITHOUT_SCHEDULER, SysfsTree

from blklab.linux.disks.disk import read_disk
from blklab.linux.doctor.advice import arrays, elevator, encryption, group_weights, lockdown

CIPHER = "0 3129344 crypt aes-xts-plain64 :32:logon:cryptsetup:x 0 8:2 32768"


@pytest.mark.parametrize(
    ("line", "release", "named"),
    [
        ("root=/dev/sda1 elevator=bfq quiet", "6.12.0", "elevator=bfq"),
        ("elevator=deadline", "5.0.0", "elevator=deadline"),
        ("elevator=noop elevator=cfq", "5.10", "elevator=cfq"),
        ("elevator=cfq", "4.19.0", None),
        ("root=/dev/sda1 my.elevator=bfq", "6.12.0", None),
        ("", "6.12.0", None),
    ],
)
def test_elevator_on_the_command_line(tmp_path: Path, line: str, release: str, named: str | None) -> None:
    (tmp_path / "cmdline").write_text(f"{line}\n")
    findings = elevator.check(tmp_path, release)
    assert [finding.text.split()[0] for finding in findings] == ([] if named is None else [named])
    assert all("udev rule" in str(finding.remedy) for finding in findings)


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("none [integrity] confidentiality", ["signature"]),
        ("none integrity [confidentiality]", ["signature", "BPF", "tracefs"]),
        ("[none] integrity confidentiality", None),
        (None, None),
    ],
)
def test_lockdown(tmp_path: Path, mode: str | None, words: list[str] | None) -> None:
    if mode is not None:
        (tmp_path / "lockdown").write_text(f"{mode}\n")
    findings = lockdown.check(tmp_path)
    assert len(findings) == (0 if words is None else 1)
    for finding in findings:
        assert all(word in finding.text for word in words or [])


def _encrypted(folder: Path) -> SysfsTree:
    tree = SysfsTree(folder)
    tree.disk("sda", "8:0")
    tree.partition("sda", "sda2", "8:2")
    about = {"dm/name": "secret\n", "dm/uuid": "CRYPT-LUKS2-1234-secret\n"}
    tree.disk(
        "dm-0",
        "253:0",
        parent="devices/virtual/block",
        scheduler=WITHOUT_SCHEDULER,
        slaves=("sda2",),
        files=about,
    )
    return tree


@pytest.mark.parametrize(
    ("table", "hides"),
    [
        (f"secret: {CIPHER}\n", True),
        (f"secret: {CIPHER} 1 allow_discards\n", True),
        (f"secret: {CIPHER} 1 no_read_workqueue\n", True),
        (f"secret: {CIPHER} 2 no_read_workqueue no_write_workqueue\n", False),
        (f"other: {CIPHER}\n", False),
        ("", False),
    ],
)
def test_threads_of_dm_crypt(tmp_path: Path, table: str, hides: bool) -> None:
    findings = encryption.check(_encrypted(tmp_path).roots, table)
    assert [finding.subject for finding in findings] == (["encryption"] if hides else [])
    assert all("writes through secret" in finding.text for finding in findings)


@pytest.mark.parametrize(
    ("scheduler", "cost", "bfq", "costs", "deaf"),
    [
        ("mq-deadline", "default 200", "default 100", "", "io.weight"),
        ("none", "default 100\n8:0 50", "100", "", "io.weight"),
        ("kyber", "default 200", "", "8:16 enable=1 ctrl=user", "io.weight"),
        ("kyber", "default 200", "", "8:0 enable=0 ctrl=auto", "io.weight"),
        ("kyber", "default 200", "", "8:0 enable=1 ctrl=user", None),
        ("bfq", "default 200", "default 100", "", "io.weight"),
        ("bfq", "default 200", "default 200", "", None),
        ("bfq", "", "default 200", "", None),
        ("none", "default 200", "default 200", "8:0 enable=1", None),
        ("none", "default 200", "default 200", "", "io.weight and io.bfq.weight"),
        ("none", "", "200", "8:0 enable=1", "io.bfq.weight"),
        ("none", "default 100", "default 100", "", None),
    ],
)
def test_weights_that_nothing_honours(
    tmp_path: Path, scheduler: str, cost: str, bfq: str, costs: str, deaf: str | None
) -> None:
    disk = read_disk(SysfsTree(tmp_path).disk("sda", "8:0"))
    groups = tmp_path / "cgroup"
    group = groups / "system.slice" / "db.service"
    group.mkdir(parents=True)
    (groups / "cgroup.controllers").write_text("cpu io memory\n")
    (groups / "io.cost.qos").write_text(f"{costs}\n")
    (groups / "system.slice" / "io.weight").write_text("default 100\n")
    (group / "io.weight").write_text(f"{cost}\n")
    (group / "io.bfq.weight").write_text(f"{bfq}\n")
    findings = group_weights.check([(disk, scheduler)], groups)
    expected = [] if deaf is None else [f"{deaf} of /system.slice/db.service: no effect on sda ({scheduler})"]
    assert [finding.text for finding in findings] == expected


def test_control_groups_v1_have_no_io_weight(tmp_path: Path) -> None:
    assert group_weights.check([], tmp_path) == []


def test_degraded_arrays_are_named(tmp_path: Path) -> None:
    tree = SysfsTree(tmp_path)
    tree.disk("sda", "8:0")
    files = {"md/level": "raid1\n", "md/raid_disks": "2\n", "md/degraded": "1\n"}
    tree.disk("md0", "9:0", scheduler=WITHOUT_SCHEDULER, slaves=("sda",), files=files)
    (finding,) = arrays.check(tree.roots)
    assert finding.text == "md0 (raid1) is degraded: it lacks 1 of 2 members"
    assert finding.state == "lacking"
