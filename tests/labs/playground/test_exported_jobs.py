"""The exported job file and command are such as blklab takes."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from blklab.cli import run
from blklab.spec.workloads import parse_workload
from playground_page import Playground

pytestmark = pytest.mark.browser

_LINK = (
    "#device=hdd-7200&scheduler=bfq,slice_idle:0,low_latency:0&scheduler=mq-deadline&"
    "task=reader,randread,class:rt,level:1,group:fast&task=writers,write,block:64k,processes:2,buffered:1,fsync:16&"
    "group=fast,300"
)


def test_the_job_file_is_one_that_blklab_reads(playground: Playground) -> None:
    playground.open(_LINK)
    workload = parse_workload(playground.text("#jobs"), name="exported", source="exported.fio")
    assert [job.name for job in workload.jobs] == ["reader", "writers"]
    playground.set("export-size", "256m")
    assert playground.text("#jobs").count("size=256m") == 2


def test_the_command_compares_the_same_schedulers(
    playground: Playground,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    playground.open(_LINK)
    playground.set("export-target", "sim:hdd-7200")
    playground.set("export-size", "256m")
    (tmp_path / "playground.fio").write_text(playground.text("#jobs"), "utf-8")
    words = shlex.split(playground.text("#line"))
    assert words[0] == "blklab"
    monkeypatch.chdir(tmp_path)
    code = run([*words[1:], "--dry-run"])
    printed = capsys.readouterr()
    assert code == 0, printed.err
    assert "bfq:slice_idle=0:low_latency=0" in printed.out
    assert "mq-deadline" in printed.out


def test_the_file_is_saved_and_texts_are_copied(playground: Playground) -> None:
    playground.evaluate(
        "navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); };"
        "URL.createObjectURL = (blob) => { window.saved = blob; return 'data:,'; }; 0"
    )
    playground.click("save-jobs")
    assert playground.evaluate("window.saved.text()") == playground.text("#jobs")
    for identity, expected in (("copy-line", "#line"), ("copy-jobs", "#jobs")):
        playground.click(identity)
        assert playground.evaluate("window.copied") == playground.text(expected)
    playground.click("copy-link")
    assert playground.evaluate("window.copied") == playground.evaluate("location.href")
