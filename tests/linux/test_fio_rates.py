"""fio's speed over time."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.linux.load.fio_rates import rate_options, rate_window_ms, rates_from_logs, with_rates
from blklab.records.samples import DirectionSample, JobSample, LatencyHistogram
from blklab.spec.workloads import parse_workload


def _log(*rows: tuple[float, int], direction: int = 0) -> str:
    return "".join(f"{time_ms:g}, {kibibytes}, {direction}, 0, 0\n" for time_ms, kibibytes in rows)


def test_windows_of_a_job() -> None:
    rates = rates_from_logs([_log((50, 10), (100, 20), (150, 30))], 50)
    assert rates is not None
    assert rates.window_ns == 50_000_000
    assert rates.bytes_per_second == [10_240, 20_480, 30_720]


def test_directions_and_clones_add_up_and_the_shortest_clone_ends_it() -> None:
    mixed = _log((50, 10), (100, 10)) + _log((50, 5), (100, 5), direction=1)
    rates = rates_from_logs([mixed, _log((50, 1), (100, 1), (150, 1))], 50)
    assert rates is not None
    assert rates.bytes_per_second == [16 * 1024, 16 * 1024]


def test_a_late_line_stands_for_all_the_time_before_it() -> None:
    rates = rates_from_logs([_log((50, 10), (100, 10), (200, 30), (275, 20), (300, 8))], 50)
    assert rates is not None
    assert rates.bytes_per_second == [1024 * v for v in (10, 10, 30, 30, 20, 14)]


@pytest.mark.parametrize(
    "logs", [[], [""], [_log((50, 1)), ""], ["50, x, 0\n"], ["garbage"], [_log((50, 1), (500, 1))]]
)
def test_logs_that_cannot_be_used(logs: list[str]) -> None:
    assert rates_from_logs(logs, 50) is None


def test_long_runs_get_longer_windows() -> None:
    rates = rates_from_logs([_log(*((50 * (n + 1), n // 10) for n in range(1000)))], 50)
    assert rates is not None
    assert rates.window_ns == 500_000_000
    assert rates.bytes_per_second == pytest.approx([n * 1024 for n in range(100)], abs=1)


@pytest.mark.parametrize(
    ("options", "override_ns", "window_ms"),
    [
        ("time_based\nruntime=2s", None, 50),
        ("time_based\nruntime=2s", 400_000_000, 20),
        ("time_based\nruntime=2s", 60_000_000_000, 1500),
        ("number_ios=10", None, 250),
    ],
)
def test_windows_fit_the_run(options: str, override_ns: int | None, window_ms: int) -> None:
    workload = parse_workload(f"[a]\nrw=read\nsize=1m\n{options}\n", name="a", source="a.fio")
    assert rate_window_ms(workload, override_ns) == window_ms
    assert f"log_avg_msec={window_ms}" in rate_options(window_ms)


@pytest.mark.parametrize(("rate_kib", "kept"), [(1000, True), (1040, True), (1100, False)])
def test_a_log_that_adds_up_to_more_than_was_moved_is_left_out(
    tmp_path: Path, rate_kib: int, kept: bool
) -> None:
    workload = parse_workload("[a]\nrw=read\nsize=1m\ntime_based\nruntime=2s\n", name="a", source="a.fio")
    (tmp_path / "rates_bw.1.log").write_text(_log(*((50 * (n + 1), rate_kib) for n in range(40))))
    read = DirectionSample(
        direction="read",
        ios=500,
        bytes=2 * 1000 * 1024,
        runtime_ns=2_000_000_000,
        latency=LatencyHistogram.merged([]),
    )
    sample = JobSample(name="a", clones=1, runtime_ns=2_000_000_000, directions=[read])
    (found,) = with_rates([sample], tmp_path, workload, 50)
    assert (found.rates is not None) is kept
