"""Shares and latencies as tiotest prints them, and what equal work does to shares."""

from __future__ import annotations

import pytest

from blklab.labs.studies.ioband.cases import completion_shares
from blklab.labs.studies.ioband.set_up import PHASES, IobandSetUp
from blklab.labs.studies.ioband.shares import (
    case_shares,
    farthest,
    phase_latencies,
    published_latencies,
    published_shares,
)
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.records.samples import DirectionSample, JobSample, LatencyHistogram, RunSample
from blklab.spec.plan import CellKey


@pytest.fixture(scope="module")
def folder() -> StudyFolder:
    return StudyFolder("ioband")


def run(rates: tuple[int, int, int], latencies: dict[int, int]) -> RunSample:
    """Every phase of every group moves 1000 bytes at the given rate, in bytes per second."""
    histogram = LatencyHistogram(
        count=sum(latencies.values()),
        sum_ns=sum(value * count for value, count in latencies.items()),
        min_ns=min(latencies),
        max_ns=max(latencies),
        bins=latencies,
    )
    jobs = []
    for phase in PHASES:
        for group, rate in enumerate(rates, start=1):
            runtime_ns = 1000 * 10**9 // rate
            direction = DirectionSample(
                direction="write" if "write" in phase else "read",
                ios=histogram.count,
                bytes=1000,
                runtime_ns=runtime_ns,
                latency=histogram,
            )
            name = f"{phase} {group}"
            jobs.append(JobSample(name=name, clones=4, runtime_ns=runtime_ns, directions=[direction]))
    key = CellKey(block=0, sequence=0, position=0, workload="tiotest", scheduler="noop", seed=1)
    return RunSample(cell=key, status="ok", started_at="", elapsed_ns=0, jobs=jobs)


def test_work_to_its_end_hides_weights() -> None:
    # Weights 1, 3 and 6: the heaviest is done after 1/0.6, the next after 0.5/0.75 more, the last at 3.
    rates = (1 / 3, 1 / (1 / 0.6 + 0.5 / 0.75), 0.6)
    assert completion_shares((10.0, 30.0, 60.0)) == pytest.approx(
        tuple(100 * rate / sum(rates) for rate in rates)
    )


def test_equal_weights_are_done_together() -> None:
    assert completion_shares((1.0, 1.0, 1.0)) == pytest.approx((100 / 3,) * 3)


def test_shares_are_those_of_the_rates() -> None:
    shares = case_shares(run((10, 30, 60), {1000: 1}))
    assert set(shares) == set(PHASES)
    for phase in PHASES:
        assert shares[phase] == pytest.approx((10, 30, 60), rel=1e-6)
    assert farthest((12.0, 29.0, 59.0), (10.0, 30.0, 60.0)) == 2.0


def test_latencies_are_counted_as_tiotest_counts_them() -> None:
    found = phase_latencies(run((1, 1, 1), {1_000_000: 97, 3_000_000_000: 2, 11_000_000_000: 1}), "read")
    assert found.average_ms == pytest.approx((97 + 2 * 3000 + 11_000) / 100)
    assert found.maximum_ms == 11_000
    assert found.over_2s_percent == pytest.approx(3)
    assert found.over_10s_percent == pytest.approx(1)


def test_published_tables_are_read(folder: StudyFolder) -> None:
    assert published_shares(folder, "case 2", "read") == pytest.approx(
        tuple(100 * rate / (38.002 + 52.181 + 50.380) for rate in (38.002, 52.181, 50.380))
    )
    assert published_latencies(folder, "case 1", "write").maximum_ms == 4108.431


def test_weights_are_those_of_the_document(folder: StudyFolder) -> None:
    lines = folder.rows("tiotest_throughput.csv", test_case="case 1", phase="read")
    set_up = folder.set_up(IobandSetUp)
    assert [int(line["weight"]) for line in lines] == set_up.weights
    assert {int(line["io_threads"]) for line in lines} == {set_up.threads}
    for name, case in set_up.cases.items():
        for line in folder.rows("tiotest_throughput.csv", test_case=name):
            assert case.thread_size == f"{line['tiotest_f_MB_per_thread']}m"
            assert case.buffered == (line["io_mode"] == "buffered")
