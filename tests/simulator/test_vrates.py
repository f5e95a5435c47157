"""Benches of real drives: latencies over the vrate (vrates.py), and figure 11 as a picture (drawing.py)."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from blklab.spec.atlas import require_drive

DRIVES = Path(__file__).parents[2] / "benches" / "drives"


def _bench(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    spec = spec_from_file_location(f"drive_{name}", DRIVES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def test_results_of_few_vrates_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "coefficients.csv").write_text("result,model\na,One\nb,Two\n")
    rows = [f"a,rlat-99-mean,{vrate},{vrate / 1e4}" for vrate in range(10, 111, 10)]
    rows += ["b,rlat-99-mean,100,0.5", "a,wlat-99-mean,100,9", "unknown,rlat-99-mean,100,9"]
    (tmp_path / "vrate-curves.csv").write_text("\n".join(["result,curve,vrate_percent,value", *rows]))
    bench = _bench("vrates", monkeypatch)
    expected = {vrate: vrate / 1e4 for vrate in (20, 40, 60, 80, 100)}
    assert bench.measured(tmp_path) == {"One": {"p50": {}, "p99": expected}}


def test_a_lower_vrate_spares_reads_of_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = _bench("vrates", monkeypatch)
    found = bench.predicted(require_drive("Samsung SSD 970 PRO 512GB"))
    assert found["p50"][20] < found["p50"][100] < found["p99"][100]


def test_the_bench_says_that_its_data_are_missing() -> None:
    environment = {name: text for name, text in os.environ.items() if name != "BLKLAB_DRIVE_DATA"}
    command = [sys.executable, str(DRIVES / "vrates.py")]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "--data or BLKLAB_DRIVE_DATA" in ended.stderr


def test_the_picture_has_every_cell_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = _bench("drawing", monkeypatch)
    tables = bench.read_tables(bench.TABLES)
    cells = sum(len(rows) for points in tables.values() for rows in points.values())
    assert cells > 60
    assert {scheduler for points in tables.values() for scheduler in points} == set(bench.COLOURS)
    drawn = bench.draw(tables)
    assert drawn.count("<circle") == cells + 1
    assert bench.PICTURE.read_text("utf-8").startswith("<svg")
