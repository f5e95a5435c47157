"""A SCSI disk that the kernel has given up is refused with the way back, and measured again after it."""

from __future__ import annotations

import pytest

from vm.commands import READ, document, put_file
from vm.machine import Machine

pytestmark = [pytest.mark.vm, pytest.mark.usefixtures("as_before")]


def test_an_offline_disk_is_refused(machine: Machine) -> None:
    name = machine.names()["scsi0"]
    state = f"/sys/block/{name}/device/state"
    load = put_file(machine, "/root/read.fio", READ)
    machine.run(f"echo offline > {state}")
    try:
        refused = machine.run(f"blklab run /dev/{name} {load}", check=False)
        entries = {disk["name"]: disk for disk in document(machine, "targets")["disks"]}
    finally:
        machine.run(f"echo running > {state}")
    assert refused.code == 3, refused.errors
    assert f"{name} is offline" in refused.errors
    assert state in refused.errors
    assert any("offline" in warning for warning in entries[name]["warnings"])
    assert document(machine, f"run /dev/{name} {load}")["jobs"][0]["iops"] > 0
