"""Tuning of a real device: a model is searched, the device confirms and stays as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.cli import run
from blklab.linux.queue.settings import QueueSettings
from blklab.spec.schedulers import SchedulerChoice
from command_runs import json_of
from host.conftest import Filesystem
from reader_beside_writer import reader_beside_writer

JOBS = reader_beside_writer(runtime="300ms", size="8m")


def test_the_device_confirms_and_stays_as_it_was(
    ext4: Filesystem, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    disk = ext4.devices[0].disk
    before = {path.name: path.read_text() for path in _attributes(disk.sys_path)}
    jobs = tmp_path / "jobs.fio"
    jobs.write_text(JOBS)
    arguments = [str(ext4.folder), "-w", str(jobs), "-s", "mq-deadline", "--model", "sim:ssd-sata"]
    arguments += ["--vary", "async_depth,max_sectors_kb,read_ahead_kb", "--trials", "12", "-n", "2"]
    document = json_of(capsys, "tune", *arguments, "-q")
    assert document["model"] == "sim:ssd-sata"
    assert {path.name: path.read_text() for path in _attributes(disk.sys_path)} == before
    if document["confirmation"] is None:
        pytest.skip("with this kernel's defaults the model finds no candidate")
    measured = [len(one["measured"]) for one in document["finalists"]]
    assert measured == [1] * len(document["finalists"])


def test_a_dry_run_switches_nothing(
    ext4: Filesystem, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(self: QueueSettings, choice: SchedulerChoice, *, anew: bool = False) -> dict[str, str]:
        raise AssertionError(f"a dry run set {choice.label}")

    monkeypatch.setattr(QueueSettings, "apply", refuse)
    jobs = tmp_path / "jobs.fio"
    jobs.write_text(JOBS)
    arguments = ["tune", str(ext4.folder), "-w", str(jobs), "--model", "sim:ssd-sata", "--dry-run"]
    assert run(arguments) == 0
    assert "searched on sim:ssd-sata" in capsys.readouterr().out


def _attributes(sys_path: Path) -> list[Path]:
    names = ("scheduler", "nr_requests", "max_sectors_kb", "read_ahead_kb", "nomerges", "rq_affinity")
    return [sys_path / "queue" / name for name in names]
