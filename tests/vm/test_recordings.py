"""Recordings through BPF and tracefs, on a kernel as Debian builds it."""

from __future__ import annotations

import json

import pytest

from vm.commands import document
from vm.machine import Machine

pytestmark = [pytest.mark.vm, pytest.mark.usefixtures("as_before")]

NUMBER_OF_IOS = 64
READER = "fio --name=reader --filename={} --rw=randread --bs=4k --size=8m --direct=1"
LOAD = f"{READER} --number_ios={NUMBER_OF_IOS}"
# Collected when it has stopped: the next test starts a unit of this name.
ENDLESS = f"systemd-run --quiet --collect --unit reader {READER} --time_based --runtime=3600s"


@pytest.fixture(scope="module")
def disk(machine: Machine) -> str:
    """A SATA disk."""
    return f"/dev/{machine.names()['sata1']}"


@pytest.mark.parametrize("capture", ["bpf", "tracefs"])
def test_every_io_of_a_command_is_recorded(machine: Machine, disk: str, capture: str) -> None:
    """Those of others are listed separately."""
    path = f"/root/{capture}.blkrecord"
    machine.run(f"blklab record {disk} --capture {capture} --output {path} -- {LOAD.format(disk)}")
    found = document(machine, f"where {path}")
    ios = {task["command"]: task["ios"] for task in found["waits"]["tasks"]}
    assert ios["fio"] == NUMBER_OF_IOS, ios


def test_bpf_is_taken_by_default(machine: Machine, disk: str) -> None:
    done = machine.run(f"blklab record {disk} --output /root/default.blkrecord -- {LOAD.format(disk)}")
    assert "tracefs" not in done.text + done.errors


def test_top_shows_who_uses_a_disk(machine: Machine, disk: str) -> None:
    machine.run(ENDLESS.format(disk))
    try:
        shown = machine.run(
            f"blklab top {disk} --batch --samples 2 --json /root/top.json; cat /root/top.json"
        ).text
    finally:
        machine.run("systemctl stop reader")
    lines = [json.loads(line) for line in shown.splitlines() if line.startswith("{")]
    assert len(lines) == 2
    assert "fio" in json.dumps(lines[-1])


def test_top_shows_tasks_without_a_disk(machine: Machine, disk: str) -> None:
    machine.run(ENDLESS.format(disk))
    try:
        shown = machine.run("blklab top --batch --samples 2").text
    finally:
        machine.run("systemctl stop reader")
    assert "fio" in shown
