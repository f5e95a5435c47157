"""`blklab explain` and `blklab run --timeline`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from blklab.cli import run
from blklab.errors import ExitCode

WORKLOAD = "random-read-4k-qd1"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_run_is_drawn_and_summed_up(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["explain", "sim:hdd-7200", "reader-beside-writers", "--runtime", "500ms"]) == ExitCode.OK
    said = capsys.readouterr().out
    assert "page: explain.html" in said
    assert "The slowest request was issued by" in said
    assert all(len(line) <= 80 for line in said.splitlines())
    assert Path("explain.html").read_text().startswith("<!DOCTYPE html>")


def test_a_recorded_run_gives_the_same_page(capsys: pytest.CaptureFixture[str]) -> None:
    same = ["--scheduler", "deadline", "--tunable", "fifo_batch=2", "--seed", "5", "--runtime", "300ms"]
    assert run(["run", "sim:hdd-7200", WORKLOAD, *same, "--timeline", "a.timeline"]) == ExitCode.OK
    assert "blklab explain --from a.timeline" in capsys.readouterr().err
    assert run(["explain", "--from", "a.timeline", "--html", "recorded.html"]) == ExitCode.OK
    assert run(["explain", "sim:hdd-7200", WORKLOAD, *same, "--html", "fresh.html"]) == ExitCode.OK
    assert Path("recorded.html").read_text() == Path("fresh.html").read_text()


def test_figures_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "sim:nvme-tlc", WORKLOAD, "--runtime", "20ms", "--json", "-"]) == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "blklab.explain/1"
    assert document["parties"][0]["requests"] == document["requests"]
    assert not Path("explain.html").exists()


def test_a_window_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["explain", "sim:hdd-7200", WORKLOAD, "--runtime", "300ms"]
    assert run([*asked, "--window", "100ms-150ms"]) == ExitCode.OK
    assert "between 100 ms and 150 ms." in Path("explain.html").read_text()
    for bad in ("100ms", "150ms-100ms", "a-b"):
        assert run([*asked, "--window", bad]) == ExitCode.USAGE


def test_two_schedulers_side_by_side_begin_with_a_finding(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    asked = ["explain", "sim:hdd-7200", "many-readers", "--runtime", "500ms"]
    assert run([*asked, "--scheduler", "bfq,mq-deadline", "--json", "both.json"]) == ExitCode.OK
    said = capsys.readouterr().out
    assert said.startswith("bfq serves ")
    assert all(len(line) <= 80 for line in said.splitlines())
    document = json.loads(Path("both.json").read_text())
    assert document["schema"] == "blklab.explain-pair/1"
    assert (document["better"], document["cause"]["kind"]) == ("bfq", "runs")
    assert document["headline"] == document["cause"]["text"]
    assert [one["scheduler"] for one in document["runs"]] == ["bfq", "mq-deadline"]
    assert run([*asked, "--scheduler", "bfq,mq-deadline", "--html", "both.html"]) == ExitCode.OK
    page = Path("both.html").read_text()
    assert '<h1 class="sentence">bfq serves ' in page
    assert page.count("<h3>bfq</h3>") == page.count("<h3>mq-deadline</h3>") >= 1


def test_equal_schedulers_have_no_finding(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["explain", "sim:hdd-7200", "direct-sequential-write", "--runtime", "300ms"]
    assert run([*asked, "--scheduler", "none,kyber", "--json", "-"]) == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    assert (document["better"], document["cause"]) == (None, None)
    assert document["headline"] == "`none` and kyber give the same throughput within 10 %."


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (
            ["explain", "sim:hdd-7200", WORKLOAD, "-s", "none,bfq,kyber"],
            ExitCode.USAGE,
            "two fit side by side",
        ),
        (["explain", "sim:hdd-7200", WORKLOAD, "-s", "bfq,bfq"], ExitCode.USAGE, "listed twice"),
        (
            ["explain", "sim:hdd-7200", WORKLOAD, "-s", "none,bfq", "--tunable", "slice_idle=0"],
            ExitCode.USAGE,
            "which of the two",
        ),
        (["explain"], ExitCode.USAGE, "name a simulated target"),
        (["explain", "sim:hdd-7200"], ExitCode.USAGE, "name a simulated target"),
        (["explain", ".", WORKLOAD], ExitCode.USAGE, "only simulated devices"),
        (["explain", "loop:1g", WORKLOAD], ExitCode.USAGE, "only simulated devices"),
        (["explain", "sim:hdd", "nonsense"], ExitCode.USAGE, "there is no workload"),
        (["explain", "--from", "missing"], ExitCode.DATA, "cannot be read"),
        (["explain", "--from", "x", "--seed", "1"], ExitCode.USAGE, "leave out"),
        (["run", ".", WORKLOAD, "--timeline", "a"], ExitCode.USAGE, "only simulated devices"),
        (["run", "loop:1g", WORKLOAD, "--timeline", "a"], ExitCode.USAGE, "only simulated devices"),
        (
            ["run", "sim:fixed", WORKLOAD, "--runtime", "9ms", "--timeline", "no/folder"],
            ExitCode.REQUIREMENT,
            "written",
        ),
    ],
)
def test_mistakes(
    arguments: list[str], code: ExitCode, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == code
    assert said in capsys.readouterr().err
    assert list(Path().iterdir()) == []
