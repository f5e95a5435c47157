"""A disk that is pulled out in mid-run: the run says so, and what remains is as before."""

from __future__ import annotations

import pytest

from vm.commands import READ, put_file
from vm.machine import Machine
from vm.settings import differences, read_settings
from waiting import wait_until

pytestmark = pytest.mark.vm


@pytest.mark.parametrize("disk", ["scsi0", "nvme0"])
def test_an_unplugged_disk_ends_the_run(machine: Machine, disk: str) -> None:
    if disk == "nvme0":
        machine.plug_in_nvme()
    name = machine.names()[disk]
    load = put_file(machine, "/root/long.fio", READ.replace("runtime=1s", "runtime=600s"))
    before = read_settings(machine)
    comparison = machine.begin(f"blklab compare /dev/{name} -w {load} -s none,bfq --blocks 3")
    wait_until(lambda: machine.load_runs_on(f"/dev/{name}"), "the load runs", process=comparison)
    machine.unplug(disk)
    printed, _ = comparison.communicate()
    assert comparison.returncode == 5, printed
    assert "vanished" in printed
    after = read_settings(machine)
    remaining = [line for line in before if not line.startswith(f"queue {disk}/")]
    assert not (changed := differences(remaining, after)), changed
