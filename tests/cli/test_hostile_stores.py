"""Stores that others wrote to: their texts reach no rule, shell, path or terminal as they are."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from blklab.cli import run
from blklab.errors import DataError, ExitCode
from blklab.records.experiment import ExperimentRecord
from blklab.records.run_files import default_report_file, run_files_folder
from blklab.records.run_ids import recent_run_ids
from blklab.records.store import Store
from blklab.testing.experiments import make_experiment, make_spec
from fleet_records import make_fleet

VALUES = [
    "50;id>/tmp/PWN;",
    '64"',
    "64$env{PATH}\\",
    "$(id>/tmp/x)'\"",
    '1\nRUN+="/bin/sh"',
    "1' ; id #",
    "%k",
    "",
    "9" * 5000,
]
STEERING = "\x1b]0;own\x07[red]x\n\u202ey"
CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
RUN = "20240517-093000-test1"
TRAVERSAL = "../../../../outside/TRAV"

Edit = Callable[[Any], Any]


def _store(tmp_path: Path, records: list[ExperimentRecord]) -> str:
    url = str(tmp_path / "runs.sqlite")
    with Store.opened(url) as store:
        for record in records:
            store.begin(record)
            store.add_samples(record.run_id, record.samples)
    return url


def _edit(url: str, column: str, edit: Edit) -> None:
    """Changes a column of JSON in all runs, as another program would."""
    with closing(sqlite3.connect(url)) as connection:
        select = f"SELECT run_id, {column} FROM blklab_experiment"  # noqa: S608 - a column named here
        update = f"UPDATE blklab_experiment SET {column} = ? WHERE run_id = ?"  # noqa: S608 - likewise
        for run_id, text in connection.execute(select).fetchall():
            connection.execute(update, (json.dumps(edit(json.loads(text))), run_id))
        connection.commit()


def _rename(url: str, name: str) -> None:
    with closing(sqlite3.connect(url)) as connection:
        connection.execute("UPDATE blklab_experiment SET run_id = ?", (name,))
        connection.execute("UPDATE blklab_sample SET run_id = ?", (name,))
        connection.commit()


def _with_value(value: str) -> Edit:
    def edit(spec: Any) -> Any:
        spec["schedulers"][1]["tunables"] = {"/io.cost.qos.min": value}
        return spec

    return edit


@pytest.fixture
def fleet(tmp_path: Path) -> str:
    return _store(tmp_path, make_fleet({"none": 0.0, "bfq:slice_idle=0": 0.15}, drives=1))


@pytest.mark.parametrize("value", VALUES)
def test_a_value_of_a_stored_choice_becomes_no_rule(
    fleet: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _edit(fleet, "spec", _with_value(value))
    rule = tmp_path / "x.rules"
    command = ["fleet", "--model", "EXAMPLE*", "--force", "--store", fleet, "--udev-rule", str(rule)]
    assert run(command) == ExitCode.DATA
    assert not rule.exists()
    said = capsys.readouterr().err
    assert "run 20260102-0304-a000 in" in said
    assert "/io.cost.qos.min" in said
    assert "`blklab runs --remove 20260102-0304-a000`" in said


@pytest.mark.parametrize(
    "edit",
    [
        lambda spec: spec["schedulers"][1] | {"name": "bfq; id"},
        lambda spec: spec["schedulers"][1] | {"kernel": "../../x"},
        lambda spec: spec["schedulers"][1] | {"label": "x\ny"},
        lambda spec: spec["schedulers"][1] | {"tunables": {'x"': "1"}},
        lambda spec: spec["schedulers"][1] | {"tunables": {"../../nr_requests": "1"}},
    ],
)
def test_other_parts_of_a_choice_follow_their_grammar_too(
    fleet: str, edit: Edit, capsys: pytest.CaptureFixture[str]
) -> None:
    _edit(fleet, "spec", lambda spec: spec | {"schedulers": [spec["schedulers"][0], edit(spec)]})
    assert run(["report", "latest", "--store", fleet]) == ExitCode.DATA
    assert "the other runs are not affected" in capsys.readouterr().err


@pytest.mark.parametrize(
    "changed",
    [
        {"queue": {"nr_requests": "1; id"}},
        {"cgroups": {"batch": {"io.max": "rbps=1 > /etc/passwd"}}},
        {"changes": [{"kind": "queue", "at_ns": 1, "name": "nr_requests", "value": "$(id)"}]},
        {"changes": [{"kind": "group", "at_ns": 1, "group": "b", "attribute": "io.max", "value": "`id`"}]},
        {"changes": [{"kind": "scheduler", "at_ns": 1, "scheduler": "bfq", "tunables": {"a": "'"}}]},
        {"runtime_ns": 10**30},
    ],
)
def test_conditions_and_changes_follow_their_grammar_too(
    tmp_path: Path, changed: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    url = _store(tmp_path, [make_experiment(make_spec(("none", "bfq"), blocks=4))])
    _edit(url, "spec", lambda spec: spec | changed)
    for command in (["report"], ["compare", "--resume", "latest"], ["apply", "latest", "--dry-run"]):
        assert run([*command, "--store", url]) == ExitCode.DATA
        assert f"run {RUN} in" in capsys.readouterr().err


def test_one_bad_run_hides_no_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = [make_experiment(make_spec(("none", "bfq"), blocks=4, seed=seed)) for seed in (1, 2)]
    url = _store(tmp_path, records)
    with closing(sqlite3.connect(url)) as connection:
        connection.execute(
            "UPDATE blklab_experiment SET spec = replace(spec, '\"bfq\"', '\"b;q\"') WHERE run_id = ?", (RUN,)
        )
        connection.commit()
    assert run(["runs", "--store", url]) == 0
    shown = capsys.readouterr()
    assert records[1].run_id in shown.out
    assert RUN not in shown.out
    assert f"left out: run {RUN}" in " ".join(shown.err.split())
    assert run(["report", records[1].run_id, "--store", url]) == 0
    assert run(["runs", "--remove", RUN, "--store", url]) == 0


def test_a_name_of_a_run_leads_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "outside").mkdir()
    folder = tmp_path / "outside" / "TRAV"
    folder.mkdir()
    url = _store(tmp_path, [make_experiment(make_spec(("none", "bfq"), blocks=4))])
    _rename(url, TRAVERSAL)
    against = ["compare", "--against", "latest", "sim:fixed"]
    for command in (["compare", "--resume", "latest", "--blocks", "5"], ["report"], against):
        assert run([*command, "--store", url]) == ExitCode.DATA
        assert "cannot be the name of a run" in capsys.readouterr().err
    for place in (run_files_folder, default_report_file):
        with pytest.raises(DataError, match="cannot be the name of a run"):
            place(TRAVERSAL)
    monkeypatch.setenv("BLKLAB_STORE", url)
    assert recent_run_ids() == []
    assert run(["runs", "--remove", TRAVERSAL, "--store", url]) == 0
    assert folder.is_dir()
    assert list((tmp_path / "outside").iterdir()) == [folder]


def test_texts_of_a_store_steer_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of machines, disks, workloads and messages."""
    url = _store(tmp_path, make_fleet({"none": 0.0, "bfq": 0.15}, drives=2, blocks=4))

    def target(target: Any) -> Any:
        disks = [disk | {"model": f"M{STEERING}"} for disk in target["disks"]]
        return target | {"summary": STEERING, "disks": disks, "details": {STEERING: STEERING}}

    def machine(machine: Any) -> Any:
        return machine | {"cpu": STEERING, "kernel": STEERING, "details": {"host": STEERING}}

    _edit(url, "target", target)
    _edit(url, "machine", machine)
    with closing(sqlite3.connect(url)) as connection:
        connection.execute("UPDATE blklab_experiment SET warnings = ?", (STEERING,))
        connection.commit()
    rule = tmp_path / "x.rules"
    class_options = ["--kind", "nvme", "--force", "--store", url]
    for command in (
        ["runs", "--store", url],
        ["fleet", "--store", url],
        ["fleet", *class_options],
        ["fleet", *class_options, "--json"],
        ["fleet", *class_options, "--udev-rule", "-"],
        ["fleet", *class_options, "--udev-rule", str(rule)],
        ["report", "--store", url],
        ["report", "--json", "--store", url],
        ["report", "--html", str(tmp_path / "x.html"), "--store", url],
        ["runs", "--store", url, "compare", "20260102-0304-a000", "20260102-0304-a001"],
    ):
        assert run(command) in (0, ExitCode.SLOWER), command
        shown = capsys.readouterr()
        assert CONTROLS.search(shown.out + shown.err) is None, command
        assert not re.search(r"^[\u202ey]", shown.out, re.MULTILINE), "a name has forged a line"
    assert CONTROLS.search(rule.read_text("utf-8")) is None
    assert all(line.startswith(("#", "ACTION", "  ")) for line in rule.read_text("utf-8").splitlines())
