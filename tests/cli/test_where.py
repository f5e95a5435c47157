"""`blklab where` and `blklab convert` on other programs' traces."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.cli import run
from blklab.errors import ExitCode
from blklab.recordings.facts import DeviceFacts
from blklab.recordings.trace import UNKNOWN_IOPRIO
from blklab.recordings.waits import Waits, analyse_waits
from blklab.report.waits.document import where_document
from blklab.report.waits.html import where_html
from blklab.report.waits.priorities import priority_findings, priority_text
from command_runs import json_of

BLKPARSE = """\
  8,0    0        1     0.000000000   700  Q   W 8 + 8 [writer]
  8,0    0        2     0.000100000   700  D   W 8 + 8 [writer]
  8,0    0        3     0.000200000   800  Q   R 800 + 8 [<b>reader]
  8,0    0        4     0.001100000     0  C   W 8 + 8 [0]
  8,0    0        5     0.001300000   800  D   R 800 + 8 [<b>reader]
  8,0    0        6     0.001400000     0  C   R 800 + 8 [0]
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "sda.txt"
    path.write_text(BLKPARSE)
    return path


def test_waits_and_holders_in_all_forms(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    document = json_of(capsys, "where", str(trace), "--html", str(page))
    assert document["schema"] == "blklab.where/1"
    reader, writer = sorted(document["waits"]["tasks"], key=lambda task: str(task["command"]))
    assert (writer["command"], writer["tgid"]) == ("writer", 700)
    assert reader["queue_ns"]["sum"] == 1_100_000
    assert reader["device_ns"]["max"] == 100_000
    place = document["waits"]["tasks"].index(writer)
    # 0.2 to 1.1 ms behind the writer, then 0.2 ms before an idle device.
    assert reader["held_in_queue"]["tasks"] == [[place, pytest.approx(900_000)]]
    assert reader["held_in_queue"]["idle_ns"] == pytest.approx(200_000)
    html = page.read_text()
    assert "&lt;b&gt;reader" in html
    assert "<b>reader" not in html
    assert 'data-chart="heat-map"' in html


def test_the_text_names_who_held_the_device(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["where", str(trace)]) == ExitCode.OK
    printed = capsys.readouterr().out
    assert "<b>reader[800]: waiting in the queue 1.10 ms, held by writer[700] 82%" in printed
    assert "nobody (the device was idle) 18%" in printed


def test_traces_without_completions_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log"
    path.write_text("fio version 3 iolog\n5 f read 0 4096\n9 f read 4096 4096\n")
    assert run(["where", str(path)]) == ExitCode.OK
    printed = capsys.readouterr().out
    assert "no completions" in printed
    assert "QUEUE MEAN" not in printed


def test_a_part_that_is_skipped_shows_in_the_exit_code(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace.write_text(BLKPARSE + "nonsense\n")
    assert run(["where", str(trace)]) == ExitCode.PARTIAL
    assert f"warning: {trace}:7: no event of blkparse" in capsys.readouterr().out


def test_bad_input_ends_with_a_typed_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["where", str(tmp_path / "missing")]) == ExitCode.USAGE
    (tmp_path / "empty").touch()
    assert run(["where", str(tmp_path / "empty")]) == ExitCode.DATA
    assert run(["convert", str(tmp_path / "empty"), str(tmp_path / "x.npz")]) == ExitCode.DATA
    assert "Traceback" not in capsys.readouterr().err


def test_convert_counts(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["convert", str(trace), str(tmp_path / "x.npz")]) == ExitCode.OK
    assert capsys.readouterr().out.endswith("x.npz: 2 I/Os\n")


def _recorded(trace: Path, *, scheduler: str, **changes: object) -> Waits:
    """The trace as if blklab had recorded it."""
    waits = analyse_waits(trace)
    device = DeviceFacts(number=8 << 20, name="sda", scheduler=scheduler)
    facts = waits.facts.model_copy(update={"capture": "bpf", "devices": [device], "cgroup_version": 2})
    return waits.model_copy(update={"facts": facts, **changes})


def test_the_chain_from_a_weight_to_the_device(trace: Path) -> None:
    texts = [found.text for found in priority_findings(_recorded(trace, scheduler="kyber"))]
    assert texts[0] == "sda ran kyber, which honours no priorities, and no weights of control groups"
    bfq = priority_findings(_recorded(trace, scheduler="bfq"))
    assert "weights of control groups (bfq.weight)" in bfq[0].text
    assert bfq[0].remedy is None


def test_writeback_is_named(trace: Path) -> None:
    waits = _recorded(trace, scheduler="bfq")
    tasks = [
        task.model_copy(update={"command": "kworker/u4:2"}) if task.command == "writer" else task
        for task in waits.tasks
    ]
    found = priority_findings(waits.model_copy(update={"tasks": tasks}))
    assert any("kernel threads submitted 100%" in finding.text for finding in found)


def test_priorities_are_shown_as_ionice_sets_them() -> None:
    assert [priority_text(number) for number in (0, 0x4004, 0x2000, 0x6007, UNKNOWN_IOPRIO)] == [
        "none",
        "be/4",
        "rt/0",
        "idle",
        "unknown",
    ]


def test_no_priorities_of_other_programs_traces(trace: Path) -> None:
    document = where_document("x", analyse_waits(trace))
    assert document.priorities == []
    assert "Priorities and weights" not in where_html(document)
