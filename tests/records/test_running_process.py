"""Which processes of a shared store are dead: other machines, boots, containers, and PIDs used again."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from blklab.records.running_process import is_alive, this_process


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """This process in a tree like procfs, under the boot ``boot-1``."""
    proc = tmp_path / "proc"
    for folder in ("sys/kernel/random", "self/ns", str(os.getpid()), "4242"):
        (proc / folder).mkdir(parents=True)
    (proc / "sys/kernel/random/boot_id").write_text("boot-1\n")
    (proc / "self/ns/pid").symlink_to("pid:[4026531836]")
    for pid, ticks in ((os.getpid(), 5000), (4242, 777)):
        fields = " ".join(["S", *["0"] * 18, str(ticks), *["0"] * 30])
        (proc / str(pid) / "stat").write_text(f"{pid} (a (strange) name) {fields}\n")
    (tmp_path / "machine-id").write_text("machine-1\n")
    return proc


@pytest.mark.parametrize(
    ("changes", "alive"),
    [
        ({}, True),
        ({"pid": 4242}, False),  # another process has the PID now
        ({"pid": 4242, "start_ticks": "777"}, True),
        ({"pid": 9999}, False),
        ({"boot": "boot-0"}, False),  # this machine was started again
        ({"boot": "boot-0", "machine": "machine-2"}, None),  # another machine
        ({"boot": "boot-0", "host": "elsewhere"}, None),  # a copy of this machine's disk
        ({"pid_namespace": "pid:[4026539999]", "pid": 9999}, None),  # a container
        ({"start_ticks": ""}, None),
        ({"boot": ""}, None),
    ],
)
def test_who_is_dead(proc: Path, changes: dict[str, Any], alive: bool | None) -> None:
    machine_id = proc.parent / "machine-id"
    process = replace(this_process(proc, machine_id), **changes)
    assert is_alive(process, proc, machine_id) is alive


def test_a_system_without_procfs_tells_nothing(tmp_path: Path) -> None:
    assert is_alive(this_process(tmp_path, tmp_path / "none"), tmp_path, tmp_path / "none") is None
