"""Jobs on real drives, alone and beside writers, which the simulator is to predict (benches/drives)."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

DRIVES = Path(__file__).parents[2] / "benches" / "drives"


@pytest.fixture(name="alone")
def jobs_alone(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(DRIVES)
    for name in ("cells", "tables", "alone", "alone_tables"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return import_module("alone"), import_module("alone_tables")


@pytest.fixture(name="cells")
def cells_of_bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    spec = spec_from_file_location("drive_cells", DRIVES / "cells.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def test_schedulers_that_keep_the_drives_queue_short_spare_a_reader(cells: Any) -> None:
    chosen = {name: cells.Cell("11-d", 32, name) for name in ("none", "mq-deadline", "kyber")}
    found = cells.simulated(list(chosen.values()), part=0.5)
    mean_us = {name: found[cell].mean_us for name, cell in chosen.items()}
    assert min(mean_us["none"], mean_us["mq-deadline"]) > 4 * mean_us["kyber"], mean_us


def test_published_rows_become_cells(cells: Any, tmp_path: Path) -> None:
    file = tmp_path / "cells.csv"
    file.write_text(
        "experiment,cell,iops,clat_mean_ns,p99\n"
        "fig-11-d-lapp,l_dev_1_sche_mq-deadline_num_t_2,900,1105000,12517000\n"
        "fig-11-d-lapp,t_dev_1_sche_mq-deadline_num_t_2_index_1,100,1,1\n"
        "fig-11-d-lapp,t_dev_1_sche_mq-deadline_num_t_2_index_2,300,1,1\n"
        "table-2,l_dev_1_sche_none_num_t_2,1,1,1\n"
    )
    expected = cells.Figures(mean_us=1105.0, p99_us=12517.0, batch_iops=200.0)
    assert cells.measured(file) == {cells.Cell("11-d", 2, "mq-deadline"): expected}


def test_drives_fill_up_after_they_were_formatted(cells: Any) -> None:
    rates = {("none", 1): 311_109.0, ("bfq", 1): 190_253.0, ("none", 2): 303_463.0, ("none", 32): 49_957.0}
    real = {
        cells.Cell("11-c", jobs, name): cells.Figures(1.0, 1.0, rate) for (name, jobs), rate in rates.items()
    }
    real[cells.Cell("11-d", 1, "bfq")] = cells.Figures(1.0, 1.0, 36_359.0)
    found = {(cell.scheduler, cell.jobs): fill for cell, fill in cells.fills(real).items()}
    assert found == {("bfq", 1): 8, ("none", 2): 33, ("none", 32): 71}
    assert "fill=8," in cells.Cell("11-c", 1, "bfq").request("samsung-980-pro", fill=8).target


def test_more_jobs_are_measured_for_longer_and_bfq_after_its_first_seconds(cells: Any) -> None:
    few, many, bfq = (
        cells.Cell("11-d", jobs, name).request("samsung-980-pro").workload
        for jobs, name in ((2, "none"), (32, "none"), (2, "bfq"))
    )
    assert "ramp_time=220ms\nruntime=920ms" in few
    assert "ramp_time=520ms\nruntime=2720ms" in many
    assert "ramp_time=3220ms\nruntime=920ms" in bfq


def test_the_last_of_two_rows_of_figure_1_is_of_nine_drives(alone: Any, tmp_path: Path) -> None:
    bench, _ = alone
    file = tmp_path / "cells.csv"
    row = "fig-1-samsung-baseline,bs_4_proc_{0}_qd_64,none,4kb,64,{0},{1},2000,4000\n"
    file.write_text(
        "experiment,cell,scheduler,bs,iodepth,numjobs,iops,clat_mean_ns,p99\n"
        + "".join(row.format(jobs, iops) for jobs, iops in ((4, 100), (10, 300), (4, 200)))
        + "fig-1-samsung-baseline,bs_4_proc_4_qd_64_spdk,?,4kb,64,4,900,1,1\n"
        + "fig-9-ssd-scala,proc_10_dev_3_sche_bfq,bfq,4kb,128,10,500,2000,4000\n"
    )
    found = {cell: figures.batch_iops for cell, figures in bench.alone_measured(file).items()}
    assert found == {
        bench.Alone("1", "none", 4, 64, 1): 100,
        bench.Alone("1", "none", 4, 64, 9): 200,
        bench.Alone("1", "none", 10, 64, 9): 300,
        bench.Alone("9", "bfq", 10, 128, 3): 500,
    }


def test_jobs_alone_fill_the_processors_before_eight_drives(alone: Any) -> None:
    bench, tables = alone
    five, eight = (bench.Alone("9", "none", 10, 128, drives) for drives in (5, 8))
    found = bench.alone_simulated([five, eight])
    assert found[eight].batch_iops < 1.02 * found[five].batch_iops
    lines = tables.alone_finding_rows(found, found, found)
    assert [line for line in lines if "Five drives fill" in line and line.count("| yes") == 3]


def test_errors_are_stated_for_the_drive_of_before_and_of_now(alone: Any) -> None:
    bench, tables = alone
    cells = {name: bench.Alone("7", name, 3, 128) for name in ("none", "bfq")}
    real, before, now = (
        {cell: bench.Figures(10.0, 20.0, rate) for cell, rate in zip(cells.values(), rates, strict=True)}
        for rates in ((100.0, 50.0), (200.0, 50.0), (100.0, 40.0))
    )
    rows = {line.split(" | ")[0]: line for line in tables.alone_error_rows(real, before, now)}
    assert "| 1 | 2.00, 2.00 → 1.00, 1.00 |" in rows["| 7, none"]
    assert rows["| 7, bfq"].endswith("| 2.00, 2.00 → 1.25, 1.25 |")


def test_the_bench_says_that_its_data_are_missing() -> None:
    environment = {name: text for name, text in os.environ.items() if name != "BLKLAB_DRIVE_DATA"}
    ended = subprocess.run(
        [sys.executable, DRIVES / "measure.py"], env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert "--data or BLKLAB_DRIVE_DATA" in ended.stderr
