"""Disks in trouble: commands that time out in mid-run, and arrays that lack a member."""

from __future__ import annotations

import json

import pytest

from vm.commands import READ, document, put_file
from vm.machine import Machine
from waiting import wait_until

pytestmark = [pytest.mark.vm, pytest.mark.usefixtures("as_before")]


def test_a_timeout_in_the_kernel_s_log_marks_the_run(machine: Machine) -> None:
    """The disk stops in mid-run for longer than the kernel waits for a command.

    A SATA disk: the driver of virtio-scsi leaves timeouts to the host. The kernel gives a command up after
    six timeouts in a row: on a busy host the run may fail, and then its error names the log.
    """
    name = machine.names()["sata1"]
    waits = f"/sys/block/{name}/device/timeout"
    load = put_file(machine, "/root/read.fio", READ.replace("runtime=1s", "runtime=15s"))
    machine.run(f"dmesg --clear; echo 6 > {waits}")
    command = f"blklab compare /dev/{name} -w {load} -s none,mq-deadline --blocks 1 --json /root/timeout.json"
    comparison = machine.begin(command)
    try:
        wait_until(lambda: machine.load_runs_on(f"/dev/{name}"), "the load runs", process=comparison)
        machine.slow_down("sata1", iops=1)
        wait_until(
            lambda: "exception Emask" in machine.run("dmesg").text, "a command times out", process=comparison
        )
    finally:
        machine.slow_down("sata1", iops=0)
        printed, _ = comparison.communicate()
        machine.run(f"echo 30 > {waits}")
    assert comparison.returncode == 0, printed
    result = json.loads(machine.run("cat /root/timeout.json").text)
    found = result["during_runs"]
    assert found["marked_blocks"] == [0] or "the kernel's log: " in json.dumps(result["failed_runs"])
    assert [message for run in found["runs"] for message in run["events"]["kernel_messages"]], found


@pytest.fixture(scope="module")
def degraded(machine: Machine) -> None:
    """A mirror and a btrfs raid10, each without a member."""
    names = machine.names()
    scsi = [f"/dev/{names[f'scsi{number}']}" for number in range(4)]
    mirror = [f"/dev/{names['sata1']}", f"/dev/{names['blk0']}"]
    machine.run(
        f"set -e; mdadm --quiet --create /dev/md/mirror --run -l1 -n2 --assume-clean {' '.join(mirror)}; "
        f"mdadm --quiet /dev/md/mirror --fail {mirror[1]} --remove {mirror[1]}; "
        f"mdadm --zero-superblock {mirror[1]}; "
        "mkfs.ext4 -q /dev/md/mirror; mkdir -p /mnt/mirror /mnt/striped; mount /dev/md/mirror /mnt/mirror; "
        f"mkfs.btrfs -q -f -d raid10 -m raid10 {' '.join(scsi)}; wipefs -qa {scsi[3]}; "
        f"btrfs device scan --forget; btrfs device scan {' '.join(scsi[:3])} >/dev/null; "
        f"mount -o degraded {scsi[0]} /mnt/striped; udevadm settle"
    )


@pytest.mark.parametrize("folder", ["/mnt/mirror", "/mnt/striped"])
def test_a_degraded_array_is_named(machine: Machine, degraded: None, folder: str) -> None:
    load = put_file(machine, "/root/read.fio", READ)
    result = document(machine, f"compare {folder} -w {load} -s none,mq-deadline --blocks 1")
    assert any("degraded" in warning for warning in result["warnings"]), result["warnings"]


def test_targets_names_degraded_arrays(machine: Machine, degraded: None) -> None:
    shown = machine.run("blklab targets").text
    assert "degraded" in shown
