"""`blklab advise` on a file system of the test's own: within a budget, and with a load that is watched."""

from __future__ import annotations

import json
import mmap
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from blklab.cli import run
from blklab.errors import ExitCode
from blklab.labs.advice import questions
from blklab.records.store import Store
from blklab.shipped import guest_program
from host.conftest import Filesystem

pytestmark = pytest.mark.root

JOB = (
    "; purpose: Random reads.\n[reader]\nrw=randread\nbs=4k\nsize=16m\ndirect=1\nioengine=libaio\niodepth=8\n"
    "time_based\nruntime=300ms\n"
)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return str(tmp_path / "runs.sqlite")


def _advised(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[dict[str, Any], str]:
    assert run(["advise", *words, "--yes", "--no-apply", "-q", "--json", "-"]) == ExitCode.OK
    captured = capsys.readouterr()
    return json.loads(captured.out), captured.err


def test_a_disk_is_compared_within_the_budget_and_left_as_it_was(
    ext4: Filesystem,
    store: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    job = tmp_path / "reads.fio"
    job.write_text(JOB)
    monkeypatch.setattr(questions, "workloads_for", lambda use: [str(job)])
    monkeypatch.setattr(questions, "shipped_workloads", lambda: {str(job): job})
    document, told = _advised(capsys, str(ext4.folder), "--for", "files", "--budget", "6s", "--store", store)
    assert "at most 6 s" in told
    assert document["plan"]["budget_ns"] == 6_000_000_000
    assert document["recommendation"]["subject"] == "disk"
    assert document["answer"]
    with Store.opened(store) as opened:
        assert opened.load(document["run"]).successes()
    ext4.assert_untouched()


def test_a_budget_that_cannot_suffice_is_named_before_the_start(
    ext4: Filesystem, store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A log has runs, of which a few seconds hold too few; by default the budget is one that suffices."""
    words = ["advise", str(ext4.folder), "--for", "database", "--dry-run"]
    assert run([*words, "--budget", "20s"]) == ExitCode.OK
    assert "an answer needs" in capsys.readouterr().out
    assert run(words) == ExitCode.OK
    assert "an answer needs" not in capsys.readouterr().out


@pytest.fixture
def load(ext4: Filesystem) -> Iterator[None]:
    """Reads past the page cache, as long as the test runs."""
    ended = threading.Event()
    path = ext4.folder / "data"
    path.write_bytes(os.urandom(8 << 20))

    def read() -> None:
        file = os.open(path, os.O_RDONLY | os.O_DIRECT)
        block = mmap.mmap(-1, 4096)
        number = 0
        while not ended.wait(0.002):
            os.preadv(file, [block], 4096 * (number * 97 % 2048))
            number += 1
        os.close(file)

    reader = threading.Thread(target=read)
    reader.start()
    yield
    ended.set()
    reader.join()
    path.unlink()


@pytest.mark.skipif(guest_program() is None, reason="the program blkguest is not built (make build)")
def test_what_runs_is_recorded_and_replayed(
    ext4: Filesystem, load: None, store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(ext4.folder), "--for", "watch", "--watch", "2s", "--budget", "10s", "--store", store]
    document, told = _advised(capsys, *words)
    (recording,) = tmp_path.glob("*.blkrecord")
    assert document["plan"]["workloads"] == [f"trace:{recording.name}"]
    assert "recording for 2.00 s" in told
    with Store.opened(store) as opened:
        record = opened.load(document["run"])
    (workload,) = record.spec.workloads
    assert workload.replays
    reads = sum(direction.ios for one in record.successes()[0].jobs for direction in one.directions)
    assert reads > 200, "2 s of a read every 2 ms or so"


def test_an_idle_disk_is_said_and_leaves_no_recording(
    ext4: Filesystem, store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.sync()
    words = ["advise", str(ext4.folder), "--for", "watch", "--watch", "300ms"]
    words += ["--budget", "2s", "--yes", "--no-apply", "--store", store]
    code = run(words)
    error = capsys.readouterr().err
    if code == ExitCode.OK or "say little" in error:
        pytest.skip("the file system wrote something of its own")
    assert code == ExitCode.RUN_FAILED
    assert "nothing reached loop" in error
    assert not list(tmp_path.glob("*.blkrecord"))
