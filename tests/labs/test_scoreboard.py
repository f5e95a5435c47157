"""Schedulers side by side (benches/scoreboard.py): figures, tables, and files of figures."""

from __future__ import annotations

import csv
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from blklab.errors import UnknownNameError
from blklab.guests.kernels.store import find

BENCH = Path(__file__).parents[2] / "benches" / "scoreboard.py"


@pytest.fixture(name="bench")
def bench_of_schedulers(monkeypatch: pytest.MonkeyPatch) -> Any:
    spec = spec_from_file_location("scoreboard", BENCH)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def test_an_arm_is_scored_against_the_first(bench: Any) -> None:
    def one(job: str, arm: str, iops: float, p99: float) -> Any:
        return bench.Figures("emmc", "mixed", job, 0, arm, iops, p99 / 2, p99)

    figures = [
        one("a", "bfq@x", 100, 2e3),
        one("b", "bfq@x", 100, 2e3),
        one("a", "mine@x", 200, 4e3),
        one("b", "mine@x", 50, 1e3),
        bench.Figures("emmc", "mixed", "", 0, "new@x", error="the run failed"),
    ]
    _, _, base, mine, new = bench.score_rows(figures)
    assert base == "| bfq | 1.00; 1.00; 1.00 | 0 |"
    assert mine == "| mine | 1.00; 1.00; 0.50 | 0 |"
    assert new == "| new | - | 1 |"
    heading = bench.job_rows([*figures, one("a", "bfq@y", 1, 1e3)])[0]
    assert heading == "| Disk | Load | Job | bfq@x | mine@x | new@x | bfq@y |"
    assert bench.job_rows(figures)[2] == "| emmc | mixed | a | 100; 2 | 200; 4 | failed |"


def test_a_job_that_starves_does_not_drop_out(bench: Any) -> None:
    figures = [
        bench.Figures("emmc", "classes", "idle", 0, "bfq@x", 10.0, 1e3, 2e3),
        bench.Figures("emmc", "classes", "idle", 0, "mine@x", 0.0),
    ]
    assert bench.score_rows(figures)[3] == "| mine | 0.01; -; 0.01 | 0 |"


def test_runs_of_guests_become_figures_once(bench: Any, tmp_path: Path) -> None:
    try:
        find("stock")
    except UnknownNameError:
        pytest.skip("there is no guest kernel (scripts/build-guest-kernels)")
    file = tmp_path / "figures.csv"
    arms = ["--arm", "mq-deadline@stock", "--arm", "kyber@stock"]
    command = [sys.executable, str(BENCH), *arms, "--disk", "nvme-tlc", "--load", "mixed"]
    printed = []
    for _ in range(2):
        ended = subprocess.run([*command, "--results", str(file)], capture_output=True, text=True, check=True)
        printed.append(ended.stdout)
    assert printed[0] == printed[1]
    with file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [(row["arm"], row["job"]) for row in rows] == [
        ("mq-deadline@stock", "mixed"),
        ("kyber@stock", "mixed"),
    ]
    assert all(float(row["iops"]) > 1000 and not row["error"] for row in rows)
