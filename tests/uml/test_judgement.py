"""`blklab kernel judge` on real kernels: the stock one against itself and against one whose kyber waits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from blklab.cli import run
from blklab.errors import ExitCode
from blklab.guests.kernels.store import find
from blklab.labs.judgement import judge, loads, questions

PATCHED = "kyber-busy-wait"
JUDGE = ["kernel", "judge", "--disk", "ssd-sata", "-q"]


@pytest.fixture(autouse=True)
def few_questions(real_guest: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del real_guest
    few = {"random-readers": loads.LOADS["random-readers"]}
    for module in (judge, questions):
        monkeypatch.setattr(module, "LOADS", few)
    monkeypatch.setattr(judge, "SCHEDULERS", ("mq-deadline", "kyber"))


def test_a_kernel_equals_itself_without_a_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge, "open_session", None)
    assert run([*JUDGE, "--kernel", "stock,stock"]) == ExitCode.OK
    page = capsys.readouterr().out
    assert page.startswith("The same bytes") and "2 questions, 2 the same to the bit." in page


def test_a_kernel_equals_itself(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run anew and kept, since the same bytes must not be what makes them equal."""
    monkeypatch.setattr(judge, "_same_bytes", lambda *_: False)
    monkeypatch.setattr(judge, "KeepingWorkers", lambda workers, _: workers)
    assert run([*JUDGE, "--kernel", "stock,stock"]) == ExitCode.OK
    page = capsys.readouterr().out
    assert page.startswith("The same to the bit") and "2 questions, 2 the same to the bit." in page


def test_conditions_of_a_load_reach_the_guest(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Control groups, io.cost and a weight that changes while the load runs; and bfq's other mode."""
    monkeypatch.setattr(judge, "LOADS", loads.LOADS)
    monkeypatch.setattr(questions, "LOADS", loads.LOADS)
    monkeypatch.setattr(judge, "SCHEDULERS", ("bfq",))
    monkeypatch.setattr(judge, "_same_bytes", lambda *_: False)
    asked = ["kernel", "judge", "-q", "--disk", "hdd-7200", "--load", "groups", "--load", "levels"]
    assert run([*asked, "--kernel", "stock,stock"]) == ExitCode.OK
    assert "4 questions, 4 the same to the bit." in capsys.readouterr().out


def test_a_slower_kernel_is_slower_where_its_code_is_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    find(PATCHED)
    page = tmp_path / "page.txt"
    arguments = [*JUDGE, "--kernel", f"stock,{PATCHED}", "--output", str(page)]
    assert run([*arguments, "--json", str(tmp_path / "first.json")]) == ExitCode.SLOWER
    assert capsys.readouterr().out == page.read_text()
    assert run([*arguments, "--json", str(tmp_path / "second.json"), "--bisect"]) == 1
    texts = [(tmp_path / name).read_text() for name in ("first.json", "second.json")]
    assert texts[0] == texts[1]
    document = json.loads(texts[0])
    assert (document["outcome"], document["questions"], document["identical"]) == ("slower", 2, 1)
    assert {answer["scheduler"] for answer in document["answers"]} == {"kyber"}


def test_errors_stop_a_bisection_or_skip_a_commit(tmp_path: Path) -> None:
    """125 leaves the commit out, 128 and above stop; any other code would call the commit slower."""
    patch = tmp_path / "wrong.patch"
    patch.write_text("--- a/block/elevator.c\n+++ b/block/elevator.c\n@@ -1 +1 @@\n-no such line\n+another\n")
    assert run([*JUDGE, "--patch", str(patch), "--bisect"]) == 125
    assert run([*JUDGE, "--patch", str(patch)]) == ExitCode.USAGE
    assert run([*JUDGE, "--kernel", "stock,nonsense", "--bisect"]) == 128 + ExitCode.USAGE
    assert run([*JUDGE, "--kernel", "stock", "--bisect"]) == 128 + ExitCode.USAGE
