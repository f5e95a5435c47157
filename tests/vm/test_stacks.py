"""Comparisons on what file systems are made of: the disks beneath each stack, and nothing left changed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from vm.commands import READ, document, put_file
from vm.machine import Machine

pytestmark = [pytest.mark.vm, pytest.mark.usefixtures("as_before")]

LUKS = "--pbkdf pbkdf2 --pbkdf-force-iterations 1000"
SET_UP = f"""
mkdir -p /mnt/plain /mnt/encrypted /mnt/mirror /mnt/striped
mkfs.ext4 -q /dev/$nvme0 && mount /dev/$nvme0 /mnt/plain
printf secret | cryptsetup luksFormat --batch-mode {LUKS} --key-file - /dev/$sata0
printf secret | cryptsetup open --key-file - /dev/$sata0 secret
pvcreate -q /dev/mapper/secret
vgcreate -q group /dev/mapper/secret
lvcreate -q --size 400m --name data group
mkfs.ext4 -q /dev/group/data && mount /dev/group/data /mnt/encrypted
mdadm --quiet --create /dev/md/mirror --run --level 1 --raid-devices 2 --assume-clean /dev/$sata1 /dev/$blk0
mkfs.ext4 -q /dev/md/mirror && mount /dev/md/mirror /mnt/mirror
mkfs.btrfs -q -d raid10 -m raid10 /dev/$scsi0 /dev/$scsi1 /dev/$scsi2 /dev/$scsi3
mount /dev/$scsi0 /mnt/striped
udevadm settle
"""
DISKS_BENEATH = {
    "/mnt/plain": {"nvme0"},
    "/mnt/encrypted": {"sata0"},
    "/mnt/mirror": {"sata1", "blk0"},
    "/mnt/striped": {"scsi0", "scsi1", "scsi2", "scsi3"},
}
MODULES = {"bfq", "kyber"}


@pytest.fixture(scope="module", autouse=True)
def stacks(machine: Machine) -> Iterator[dict[str, str]]:
    """All stacks, mounted; the kernel's names of the disks by their serial numbers."""
    machine.plug_in_nvme()
    names = machine.names()
    variables = " ".join(f"{serial}={name}" for serial, name in names.items())
    machine.run(f"set -e; {variables}; {SET_UP}")
    put_file(machine, "/root/read.fio", READ)
    yield names


@pytest.mark.parametrize("folder", DISKS_BENEATH)
def test_a_comparison_tests_the_disks_beneath(machine: Machine, stacks: dict[str, str], folder: str) -> None:
    """With bfq, a module that is not loaded."""
    result = document(machine, f"compare {folder} -w /root/read.fio -s none,bfq --blocks 1")
    assert result["state"] == "complete"
    assert not result["failed_runs"]
    assert {disk["name"] for disk in result["target_description"]["disks"]} == {
        stacks[serial] for serial in DISKS_BENEATH[folder]
    }
    assert {row["scheduler"] for row in result["results"]} == {"none", "bfq"}


def test_schedulers_that_are_modules_are_compared_without_being_named(machine: Machine) -> None:
    result = document(machine, "compare /mnt/plain -w /root/read.fio --blocks 1")
    assert not result["failed_runs"]
    assert {row["scheduler"] for row in result["results"]} == {"none", "mq-deadline"} | MODULES


def test_a_raw_disk_is_written_if_that_is_allowed(machine: Machine, stacks: dict[str, str]) -> None:
    load = put_file(machine, "/root/write.fio", READ.replace("randread", "randwrite"))
    disk = f"/dev/{stacks['blk1']}"
    refused = machine.run(f"blklab compare {disk} -w {load} -s none,kyber --blocks 1", check=False)
    assert refused.code == 4
    assert "--allow-writes" in refused.errors
    result = document(machine, f"compare {disk} -w {load} -s none,kyber --blocks 1 --allow-writes")
    assert not result["failed_runs"]
    assert {disk["name"] for disk in result["target_description"]["disks"]} == {stacks["blk1"]}


def test_a_disk_in_use_is_never_written(machine: Machine, stacks: dict[str, str]) -> None:
    """Not even if its only user is an array, an encrypted device, or a file system over several disks."""
    disks = [stacks[name] for name in ("nvme0", "sata0", "blk0", "scsi3")]
    command = "blklab compare /dev/{} -w /root/write.fio -s none,mq-deadline --blocks 1 --allow-writes"
    for disk in disks:
        refused = machine.run(command.format(disk), check=False)
        assert refused.code == 4, refused
