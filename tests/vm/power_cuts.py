"""A comparison whose machine loses its power: what the next boot finds, and what is left to do."""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import dataclass
from typing import Any

import pytest

from vm.accelerator import EMULATION, Accelerator
from vm.commands import READ, document, put_file
from vm.machine import Machine
from vm.settings import differences, queues_of, read_settings
from waiting import wait_until

FOLDER = "/mnt/data"
MOMENTS = 10
_MOMENTS_OF_EMULATION = {1, 4, 7}
"""An emulated processor boots for minutes after each cut."""
_DISK = "sata1"
_FILESYSTEM = (
    f"mkdir -p {FOLDER} && mkfs.ext4 -q -L data {{}} && "
    f"echo 'LABEL=data {FOLDER} ext4 defaults,nofail 0 2' >> /etc/fstab && "
    f"systemctl daemon-reload && mount {FOLDER}"
)
_COMPARE = (
    f"blklab compare {FOLDER} -w /root/read.fio -s bfq,kyber,mq-deadline:fifo_batch=1 "
    "--blocks 2 --queue nr_requests=32"
)


@dataclass(frozen=True)
class Undisturbed:
    """A comparison that nothing happened to."""

    seconds: float
    run: str
    settings: list[str]


def compare_undisturbed(machine: Machine) -> Undisturbed:
    """Makes the file system and a comparison; its time is the measure of those that are cut."""
    machine.run(_FILESYSTEM.format(f"/dev/{machine.names()[_DISK]}"))
    put_file(machine, "/root/read.fio", READ)
    settings = read_settings(machine)
    start = time.monotonic()
    result = document(machine, _COMPARE.removeprefix("blklab "))
    seconds = time.monotonic() - start
    assert not result["failed_runs"]
    machine.run("sync")
    return Undisturbed(seconds, result["run"], settings)


def skip_unless_chosen(moment: int, accelerator: Accelerator) -> None:
    """An emulated processor takes only some moments, unless all are asked for."""
    chosen = accelerator != EMULATION or moment in _MOMENTS_OF_EMULATION or "BLKLAB_VM_ALL" in os.environ
    if not chosen:
        pytest.skip(f"an emulated processor takes moments {_MOMENTS_OF_EMULATION}; BLKLAB_VM_ALL=1 takes all")


def cut_power_at(machine: Machine, moment: int, undisturbed: Undisturbed) -> None:
    """Cuts the power in the middle of a tenth of a comparison, and looks at what is left after the boot."""
    comparison = machine.begin(_COMPARE)
    time.sleep(undisturbed.seconds * (moment + 0.5) / MOMENTS)
    _cut_power(machine, comparison)
    booted = read_settings(machine)
    restored = machine.run("blklab restore --json -", check=False)
    assert restored.code == 0, restored
    runs = runs_of(machine)
    assert all(run["state"] in {"complete", "interrupted"} for run in runs), runs
    assert undisturbed.run in {run["run_id"] for run in runs if run["state"] == "complete"}, runs
    after = read_settings(machine)
    assert not (changed := differences(queues_of(undisturbed.settings), queues_of(booted))), changed
    left = [line for line in after if "blklab" in line]
    assert not left, left


def cut_power_under_load(machine: Machine) -> None:
    """Cuts the power as soon as a comparison's load runs."""
    comparison = machine.begin(_COMPARE)
    wait_until(lambda: machine.load_runs_on(FOLDER), "the load runs", process=comparison)
    _cut_power(machine, comparison)


def _cut_power(machine: Machine, comparison: subprocess.Popen[str]) -> None:
    machine.cut_power()
    comparison.kill()
    comparison.communicate()
    machine.run(f"mountpoint -q {FOLDER} || systemctl start $(systemd-escape --path --suffix=mount {FOLDER})")


def runs_of(machine: Machine) -> list[Any]:
    """The stored runs."""
    runs = json.loads(machine.run("blklab runs --json -").text)["runs"]
    assert isinstance(runs, list)
    return runs
