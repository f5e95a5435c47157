"""The order of runs in different files follows from the times that the files hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from blklab.labs.reanalysis.analysis import AnalysisRequest, FileAnalysis, analyse_files
from blklab.labs.reanalysis.design import TIME_ORDER
from blklab.labs.reanalysis.readers.times import local_time_s

NONE_FIRST = ["none", "none", "none", "none", "bfq", "bfq", "bfq", "bfq"]
IN_TURNS = ["none", "bfq", "bfq", "none", "none", "bfq", "none", "bfq", "bfq", "none"]


def _fio_json(iops: float, time_s: float | None) -> str:
    direction = {"runtime": 1000, "io_bytes": 4096 * int(iops), "iops": iops}
    document = {"jobs": [{"jobname": "reader", "error": 0, "read": direction}]}
    if time_s is not None:
        document |= {"timestamp": int(time_s), "timestamp_ms": int(1000 * time_s)}  # type: ignore[dict-item]
    return json.dumps(document) + "\n"


def _fio_normal(iops: int, clock: str) -> str:
    return (
        f"reader: (groupid=0, jobs=1): err= 0: pid=9: Sat Nov 28 {clock} 2026\n"
        f"  read: IOPS={iops}, BW={4 * iops}KiB/s ({4 * iops}kB/s)({4 * iops}KiB/1000msec)\n"
    )


def _analysed(folder: Path) -> FileAnalysis:
    labels = {str(path): path.name.split("-")[0] for path in sorted(folder.iterdir())}
    return analyse_files(AnalysisRequest(paths=sorted(labels), labels=labels, metrics=("IOPS",)))


def _write(folder: Path, order: list[str], times_s: list[float | None]) -> None:
    for number, (scheduler, time_s) in enumerate(zip(order, times_s, strict=True)):
        # The names sort against the order of time.
        text = _fio_json(1000 + 10 * number, time_s)
        (folder / f"{scheduler}-{99 - number}.json").write_text(text, "utf-8")


def test_files_are_ordered_by_fio_s_timestamps(tmp_path: Path) -> None:
    _write(tmp_path, IN_TURNS, [1e9 + 60 * number for number in range(len(IN_TURNS))])
    section = _analysed(tmp_path).sections[0]
    assert section.design.order == TIME_ORDER
    assert "in the order of the times in the files" in section.design.reasons
    taus = {level.level: level.trend.tau for level in section.findings[0].levels if level.trend is not None}
    assert taus == pytest.approx({"none": 1.0, "bfq": 1.0})


def test_schedulers_measured_one_after_the_other_are_pointed_out(tmp_path: Path) -> None:
    _write(tmp_path, NONE_FIRST, [1e9 + 60 * number for number in range(8)])
    (found,) = _analysed(tmp_path).findings
    assert any("in one stretch" in warning for warning in found.warnings)


@pytest.mark.parametrize(
    "times_s",
    [[1e9, 1e9, *(1e9 + number for number in range(1, 7))], [None, *(1e9 + number for number in range(7))]],
    ids=["twice the same", "one without"],
)
def test_times_that_leave_the_order_open_are_not_taken(tmp_path: Path, times_s: list[float | None]) -> None:
    _write(tmp_path, NONE_FIRST, times_s)
    section = _analysed(tmp_path).sections[0]
    assert section.design.order is None
    assert any("order of the runs is unknown" in reason for reason in section.design.reasons)


def test_fio_s_normal_output_says_when_a_job_ended(tmp_path: Path) -> None:
    for number, scheduler in enumerate(NONE_FIRST):
        path = tmp_path / f"{scheduler}-{99 - number}.txt"
        path.write_text(_fio_normal(1000 + number, f"10:5{number}:09"), "utf-8")
    section = _analysed(tmp_path).sections[0]
    assert section.design.order == TIME_ORDER


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("pid=9: Thu Jan  1 00:01:05 1970", 65.0),
        ("\tRun began: Sun Nov 29 18:39:34 2026", 1795977574.0),
        ("2026-11-29T18:39:34.250+0100", 1795977574.25),
        ("Feb 31", None),
        ("2026-99-99T99:99:99", None),
        ("", None),
    ],
)
def test_times_in_lines(text: str, seconds: float | None) -> None:
    assert local_time_s(text) == seconds
