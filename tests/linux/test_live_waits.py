"""`blklab top TARGET` on a real loop device: each I/O is in one sample, with its waits."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from blklab.cli import run
from blklab.errors import ExitCode
from blklab.linux.disks.resolution import resolve
from blklab.linux.recording.live import live_waits
from real_devices import LoopMaker
from waiting import wait_until

BLOCKS = 500


def _read(path: Path) -> subprocess.Popen[bytes]:
    command = ["dd", f"if={path}", "of=/dev/null", "bs=4k", "iflag=direct", f"count={BLOCKS}", "status=none"]
    return subprocess.Popen(command)


@pytest.mark.root
@pytest.mark.usefixtures("needs_loop")
def test_each_io_is_in_one_window(make_loop: LoopMaker) -> None:
    disk = make_loop(64)
    with live_waits(resolve(str(disk.dev_path))) as (capture, _):
        assert capture.window(20_000_000).facts.devices[0].name == disk.name
        reader = _read(disk.dev_path)
        found = []

        def is_over() -> bool:
            found.append(capture.window(20_000_000))
            return reader.poll() is not None

        wait_until(is_over, "the end of dd")
        found.append(capture.window(20_000_000))
    mine = [task for waits in found for task in waits.tasks if task.tgid == reader.pid]
    lost = sum(waits.tally.lost for waits in found)
    assert BLOCKS - lost <= sum(task.ios for task in mine) <= BLOCKS
    assert {task.command for task in mine} == {"dd"}
    assert all(0 < task.device_ns.mean <= task.latency_ns.max for task in mine)


@pytest.mark.root
@pytest.mark.usefixtures("needs_loop")
def test_samples_are_lines_of_json(make_loop: LoopMaker, capsys: pytest.CaptureFixture[str]) -> None:
    disk = make_loop(64)
    arguments = ["top", str(disk.dev_path), "--samples", "3", "--delay", "50ms", "--json"]
    with _read(disk.dev_path):
        assert run(arguments) == ExitCode.OK
    samples = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [sample["sample"] for sample in samples] == [1, 2, 3]
    assert {sample["schema"] for sample in samples} == {"blklab.top-waits/1"}
    for sample in samples:
        assert sample["seconds"] >= 0.05
        assert sum(task["ios"] for task in sample["tasks"]) == sample["all"]["ios"]
        assert {device["name"] for device in sample["devices"]} <= {disk.name}


@pytest.mark.root
@pytest.mark.usefixtures("needs_loop")
def test_samples_are_tables(make_loop: LoopMaker, capsys: pytest.CaptureFixture[str]) -> None:
    disk = make_loop(64)
    assert run(["top", str(disk.dev_path), "--samples", "1", "--delay", "30ms", "--batch"]) == ExitCode.OK
    printed = capsys.readouterr().out
    assert printed.startswith("sample 1: ")
    assert "QUEUE MEAN" in printed


def test_a_model_has_no_waits_to_show(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["top", "sim:hdd-7200"]) == ExitCode.USAGE
    assert "no path of this machine" in capsys.readouterr().err


def test_processes_are_of_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["top", "/", "--processes"]) == ExitCode.USAGE
    assert "leave out --processes" in capsys.readouterr().err
