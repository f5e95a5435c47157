"""Speeds in windows of time and owners of requests, against the jobs' own results."""

from __future__ import annotations

import pytest

from blklab.records.samples import JobSample
from blklab.simulator.simulation import SimulationResult
from blklab.simulator.timeline_summary import background_requests, with_rates
from plain_simulation import simulate

WINDOW_NS = 100_000_000


def _simulated(direct: int, runtime: str = "1s") -> SimulationResult:
    common: dict[str, str | int] = {
        "bs": "64k",
        "direct": direct,
        "time_based": 1,
        "runtime": runtime,
        "size": "2g",
    }
    jobs: dict[str, dict[str, str | int]] = {
        "reader": {"rw": "read", **common},
        "writer": {"rw": "write", "fsync": 50, **common},
    }
    return simulate("fixed,latency=300us,depth=1", jobs, scheduler="mq-deadline", timeline=True)


def _rated(result: SimulationResult) -> list[JobSample]:
    assert result.timeline is not None
    return with_rates(result.jobs, result.timeline.ios, WINDOW_NS)


def test_windows_add_up_to_what_the_job_moved() -> None:
    result = _simulated(direct=1)
    rated = _rated(result)
    assert [job.name for job in rated] == ["reader", "writer"]
    for job in rated:
        assert job.rates is not None
        assert job.rates.window_ns == WINDOW_NS
        assert len(job.rates.bytes_per_second) == job.runtime_ns // WINDOW_NS == 10
        moved = sum(entry.bytes for entry in job.data_directions())
        in_windows = sum(job.rates.bytes_per_second) * WINDOW_NS / 1e9
        # The last I/O may end behind the last whole window.
        assert moved - 2 * 65536 <= in_windows <= moved


def test_a_steady_job_is_steady() -> None:
    reader = _rated(_simulated(direct=1))[0]
    assert reader.rates is not None
    middle = reader.rates.bytes_per_second[1:]
    assert max(middle) / min(middle) == pytest.approx(1.0, abs=0.05)


def test_a_run_shorter_than_a_window_has_no_rates() -> None:
    assert [job.rates for job in _rated(_simulated(direct=1, runtime="50ms"))] == [None, None]


def test_background_requests() -> None:
    result = _simulated(direct=1)
    assert result.timeline is not None
    direct = background_requests(result.timeline.requests)
    assert direct["background_requests"] == 0 < direct["requests_recorded"]
    assert direct["background_priorities"] == []
    jobs: dict[str, dict[str, str | int]] = {
        "w": {"rw": "write", "bs": "1m", "time_based": 1, "runtime": "3s", "size": "8g"}
    }
    buffered = simulate("fixed,latency=300us,depth=1", jobs, scheduler="mq-deadline", timeline=True)
    assert buffered.timeline is not None
    found = background_requests(buffered.timeline.requests)
    assert found["background_requests"] == found["requests_recorded"] > 0
    assert found["background_priorities"] == ["be4"]
