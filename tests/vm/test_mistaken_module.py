"""A module that oopses in its dispatch: the mistake is printed at once, and blklab ends with its report."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from blklab.errors import ExitCode
from vm.commands import READ, put_file
from vm.image import Image
from vm.machine import Machine
from vm.native import TYPES, build_natively

pytestmark = pytest.mark.vm

PATCH = Path(__file__).with_name("oopses.patch").read_text("utf-8")
"""Kyber writes to address 0 with its first dispatch."""
OOPSES = f"""
cat > /root/oopses.patch <<'END'
{PATCH}END
cd /root
blklab kernel module oopses --patch /root/oopses.patch --no-gate --release $(ls /lib/modules) --btf {TYPES}
blklab kernel module kyber-copy --scheduler kyber --release $(ls /lib/modules) --btf {TYPES}
"""


def scheduler_in_force(machine: Machine, disk: str) -> str:
    """Of the list in sysfs, which keeps the module: it cannot be unloaded any more."""
    listed = machine.run(f"cat /sys/block/{disk}/queue/scheduler").text
    found = re.search(r"\[(.+?)\]", listed)
    assert found is not None, listed
    return found[1]


def test_an_oops_ends_the_run_with_its_line(machine: Machine, image: Image) -> None:
    build_natively(image, machine, OOPSES)
    load = put_file(machine, "/root/read.fio", READ)
    names = machine.names()
    before = scheduler_in_force(machine, names["scsi0"])
    command = f"blklab compare /dev/{names['sata0']} -w {load} -s kyber,kyber@oopses --blocks 3 --no-gate"
    done = machine.run(command, check=False)
    assert done.code == ExitCode.RUN_FAILED, done.errors
    line = "the kernel reported a mistake: BUG: kernel NULL pointer dereference"
    assert line in done.errors
    assert "restart the machine" in " ".join(done.errors.split())
    assert scheduler_in_force(machine, names["scsi0"]) == before
    (kept,) = json.loads(machine.run("blklab runs --json -").text)["runs"]
    assert kept["state"] == "failed"
    report = machine.run(f"blklab report {kept['run_id']} --json -").text
    assert "the experiment was ended: the kernel reported a mistake" in report
