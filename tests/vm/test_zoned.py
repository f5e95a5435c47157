"""Zoned disks: NVMe's, as QEMU has it, and null_blk's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from vm.accelerator import Accelerator
from vm.commands import READ, document, put_file
from vm.frozen import FrozenMachine
from vm.image import Image
from vm.machine import Machine

pytestmark = [pytest.mark.vm, pytest.mark.usefixtures("as_before")]

APPEND = """\
[writer]
rw=write
bs=64k
size=64m
direct=1
ioengine=libaio
iodepth=4
zonemode=zbd
number_ios=100
"""
NULL_BLK = "modprobe null_blk nr_devices=1 zoned=1 zone_size=16 gb=1 memory_backed=0 && udevadm settle"


@pytest.fixture(scope="module")
def machine(image: Image, accelerator: Accelerator, installed: FrozenMachine) -> Iterator[Machine]:
    """One that boots, because QEMU plugs zoned NVMe in only at the start."""
    with Machine(image, accelerator) as machine:
        machine.boot(installed.root, zoned_nvme=True)
        machine.run(f"{NULL_BLK}; systemctl is-system-running --wait", check=False)
        yield machine


@pytest.fixture(scope="module")
def disks(machine: Machine) -> dict[str, str]:
    """The kernel's names of both."""
    return {"nvme": machine.names()["zoned0"], "null_blk": "nullb0"}


def test_targets_says_that_a_disk_is_zoned(machine: Machine, disks: dict[str, str]) -> None:
    found = {disk["name"]: disk for disk in document(machine, "targets")["disks"]}
    for name in disks.values():
        assert found[name]["zoned"]["model"] == "host-managed"
    shown = machine.run("blklab targets").text
    assert shown.count("host-managed") == len(disks)


@pytest.mark.parametrize("kind", ["nvme", "null_blk"])
def test_zones_are_written_in_order(machine: Machine, disks: dict[str, str], kind: str) -> None:
    """Only mq-deadline keeps the order before Linux 6.10, and the block layer itself from then on."""
    load = put_file(machine, "/root/zones.fio", APPEND)
    disk = f"/dev/{disks[kind]}"
    release = tuple(int(part) for part in machine.run("uname -r").text.split(".")[:2])
    schedulers = "none,mq-deadline" if release >= (6, 10) else "mq-deadline,mq-deadline:fifo_batch=1"
    refused = machine.run(f"blklab compare {disk} -w {load} -s {schedulers} --blocks 1", check=False)
    assert refused.code == 4
    assert "--allow-writes" in refused.errors
    result = document(machine, f"compare {disk} -w {load} -s {schedulers} --blocks 1 --allow-writes")
    assert not result["failed_runs"], result["failed_runs"]
    if release < (6, 10):
        command = f"blklab compare {disk} -w {load} -s none,mq-deadline --blocks 1 --allow-writes"
        refused = machine.run(command, check=False)
        assert refused.code in {3, 4}
        assert "zone" in refused.errors


def test_writes_that_no_zone_takes_are_refused_in_words(machine: Machine, disks: dict[str, str]) -> None:
    load = put_file(machine, "/root/random.fio", READ.replace("randread", "randwrite"))
    command = f"blklab compare /dev/{disks['nvme']} -w {load} -s none,mq-deadline --blocks 1 --allow-writes"
    refused = machine.run(command, check=False)
    assert refused.code in {2, 4}
    assert "zone" in refused.errors


def test_reads_are_compared(machine: Machine, disks: dict[str, str]) -> None:
    load = put_file(machine, "/root/read.fio", READ)
    result = document(machine, f"compare /dev/{disks['nvme']} -w {load} -s none,bfq --blocks 1")
    assert not result["failed_runs"], result["failed_runs"]
