"""`blklab runs` and `blklab fleet`: verdicts in the list, and runs of studies left out of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.cli import browser, run
from blklab.records.store import Store
from blklab.testing.experiments import make_experiment
from command_runs import json_of

JOB = "[reader]\nrw=randread\nbs=4k\ndirect=1\ntime_based\nruntime=100ms\nsize=16m\n"
OWN, OF_A_STUDY = "20261125-2122-mkxd", "20261125-2124-8guw"


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store with a run of its own and one of a study."""
    url = str(tmp_path / "runs.sqlite")
    with Store.opened(url) as store:
        store.begin(make_experiment().model_copy(update={"run_id": OWN, "samples": []}))
        store.note_verdict(OWN, "best: bfq")
        with store.part_of("ionice"):
            store.begin(make_experiment().model_copy(update={"run_id": OF_A_STUDY, "samples": []}))
    return url


def test_runs_show_their_verdicts_and_no_runs_of_studies(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["runs", "--store", store]) == 0
    shown = capsys.readouterr().out
    assert OWN in shown
    assert "best: bfq" in shown
    assert OF_A_STUDY not in shown
    assert "1 run of studies is left out; --all shows it" in shown
    assert run(["runs", "--all", "--store", store]) == 0
    assert OF_A_STUDY in capsys.readouterr().out
    (one,) = json_of(capsys, "runs", "--store", store)["runs"]
    assert (one["run_id"], one["verdict"], one["study"]) == (OWN, "best: bfq", "")


def test_long_targets_leave_every_column_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    url = str(tmp_path / "runs.sqlite")
    made = make_experiment()
    long = made.spec.model_copy(
        update={"target": "sim:fixed,latency=658282ns,depth=1,rotational=no,jitter=1ms"}
    )
    with Store.opened(url) as store:
        store.begin(made.model_copy(update={"run_id": OWN, "samples": [], "spec": long}))
        store.note_verdict(OWN, "equal: none, mq-deadline, kyber, bfq")
    assert run(["runs", "--store", url]) == 0
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith(OWN)]
    assert "equal: none" in row
    assert "sim:fix" in row
    assert len(row) <= 80


def test_a_fleet_has_no_drives_of_studies(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    counts = [
        sum(row["experiments"] for row in json_of(capsys, "fleet", *flags, "--store", store)["classes"])
        for flags in ((), ("--all",))
    ]
    assert counts == [1, 2]


def test_a_removed_run_leaves_no_remark(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["runs", "--remove", OF_A_STUDY, "--store", store]) == 0
    capsys.readouterr()
    runs = json_of(capsys, "runs", "--all", "--store", store)["runs"]
    assert [one["run_id"] for one in runs] == [OWN]


def test_a_comparison_notes_its_verdict(job: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("compare", "sim:fixed", "-w", job, "-s", "none,mq-deadline", "-n", "3", "-q")
    document = json_of(capsys, *words)
    (listed,) = json_of(capsys, "runs")["runs"]
    assert listed["verdict"].partition(":")[0] == document["verdict"]["status"]


def test_pages_are_opened(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    opened: list[str] = []

    def open_address(address: str) -> bool:
        opened.append(address)
        return True

    monkeypatch.setattr("webbrowser.open", open_address)
    browser.open_page("page.html")
    assert opened == [(tmp_path / "page.html").as_uri()]
    monkeypatch.setattr("webbrowser.open", lambda _: False)
    browser.open_page("page.html")
    assert "no browser to open page.html" in capsys.readouterr().err


@pytest.mark.parametrize("width", [80, 120])
def test_each_run_is_one_line_that_fits_the_terminal(
    width: int, store: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert run(["runs", "--all", "--store", store]) == 0
    heading, *rows = capsys.readouterr().out.splitlines()
    assert [row[: len(OWN)] for row in rows] == [OF_A_STUDY, OWN]
    assert all(len(row.rstrip()) <= width for row in rows)
    assert ("made" in heading.split()) == ("schedulers" in heading.split()) == (width == 120)


def test_a_run_that_did_not_end_says_so_in_place_of_a_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = str(tmp_path / "runs.sqlite")
    with Store.opened(url) as store:
        store.begin(make_experiment().model_copy(update={"run_id": OWN, "state": "running"}))
    assert run(["runs", "--store", url]) == 0
    assert " running " in capsys.readouterr().out
