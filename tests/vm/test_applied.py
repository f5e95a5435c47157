"""Choices that last: udev, a restart, tuned beside it, and the way back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from vm.machine import Machine
from vm.settings import differences, queues_of, read_settings

pytestmark = pytest.mark.vm

PROFILE = "[main]\nsummary=disks\n[disk]\nelevator=kyber\n"


@pytest.fixture(scope="module", autouse=True)
def tuned(machine: Machine) -> Iterator[None]:
    """tuned runs, with a profile that leaves schedulers alone, and will at the next boot."""
    machine.plug_in_nvme()
    machine.run("systemctl enable --now tuned && tuned-adm profile virtual-guest && udevadm settle")
    yield


def scheduler_of(machine: Machine, disk: str) -> str:
    """The one in force."""
    line = machine.run(f"cat /sys/block/{machine.names()[disk]}/queue/scheduler").text
    return line.partition("[")[2].partition("]")[0]


def test_a_choice_survives_udev_and_a_restart_until_it_is_undone(machine: Machine) -> None:
    """Of a scheduler that is a module; names of disks may change with the restart."""
    before = read_settings(machine)
    disks = ("nvme0", "sata0")
    for disk in disks:
        machine.run(f"blklab apply bfq:slice_idle=0 --device /dev/{machine.names()[disk]}")
    applied = queues_of(read_settings(machine))
    machine.run("udevadm trigger --subsystem-match=block --action=change; udevadm settle")
    assert not (changed := differences(applied, queues_of(read_settings(machine)))), changed
    machine.run("sync")
    machine.cut_power()
    machine.run("systemctl is-system-running --wait; udevadm settle", check=False)
    for disk in disks:
        assert scheduler_of(machine, disk) == "bfq"
    assert not (changed := differences(applied, queues_of(read_settings(machine)))), changed
    for disk in disks:
        machine.run(f"blklab apply --undo --device /dev/{machine.names()[disk]}")
    after = read_settings(machine)
    assert not (changed := differences(queues_of(before), queues_of(after))), changed
    assert not [line for line in after if "blklab" in line]


@pytest.mark.usefixtures("as_before")
def test_io_cost_is_applied_and_undone(machine: Machine) -> None:
    """The kernel turns writeback throttling off with it, and on again."""
    disk = f"/dev/{machine.names()['sata1']}"
    machine.run(f"blklab apply none:/io.cost.qos.enable=1 --device {disk}")
    assert "enable=1" in machine.run("cat /sys/fs/cgroup/io.cost.qos").text
    machine.run(f"blklab apply --undo --device {disk}")


@pytest.mark.usefixtures("as_before")
def test_a_choice_until_the_next_boot(machine: Machine) -> None:
    disk = f"/dev/{machine.names()['scsi0']}"
    machine.run(f"blklab apply kyber --device {disk} --now-only")
    assert scheduler_of(machine, "scsi0") == "kyber"
    machine.run(f"blklab apply --undo --device {disk}")


@pytest.mark.usefixtures("as_before")
def test_a_profile_of_tuned_that_would_overwrite_it_is_named(machine: Machine) -> None:
    folders = "/etc/tuned/profiles/disks /etc/tuned/disks"
    before = machine.run("cat /etc/tuned/active_profile").text
    for folder in folders.split():
        machine.run(f"mkdir -p {folder} && cat > {folder}/tuned.conf", stdin=PROFILE.encode())
    machine.run("echo disks > /etc/tuned/active_profile")
    try:
        disk = f"/dev/{machine.names()['scsi0']}"
        shown = machine.run(f"blklab apply bfq --device {disk} --dry-run")
    finally:
        machine.run("cat > /etc/tuned/active_profile", stdin=before.encode())
    assert "tuned" in shown.text + shown.errors
