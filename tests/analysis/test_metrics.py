from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import blklab.analysis.metrics
from blklab.analysis.metrics import METRICS, metric_named
from blklab.errors import UnknownNameError
from blklab.records.samples import CommandSample, DirectionSample, JobSample, LatencyHistogram

SECOND_NS = 1_000_000_000


def _histogram(*latencies_ns: int) -> LatencyHistogram:
    bins: dict[int, int] = {}
    for latency_ns in latencies_ns:
        bins[latency_ns] = bins.get(latency_ns, 0) + 1
    return LatencyHistogram(
        count=len(latencies_ns),
        sum_ns=sum(latencies_ns),
        min_ns=min(latencies_ns),
        max_ns=max(latencies_ns),
        bins=bins,
    )


def _job(
    name: str = "job",
    *,
    runtime_ns: int = 2 * SECOND_NS,
    sync: bool = False,
    weight: float | None = 4.0,
    clone_bytes: list[int] | None = None,
    moved: int = 409_600,
) -> JobSample:
    reads = DirectionSample(
        direction="read",
        ios=100,
        bytes=moved if clone_bytes is None else sum(clone_bytes),
        runtime_ns=runtime_ns,
        latency=_histogram(*range(1_000, 101_000, 1_000)),
    )
    syncs = DirectionSample(
        direction="sync", ios=4, bytes=0, runtime_ns=runtime_ns, latency=_histogram(5, 6, 7, 9_000_000)
    )
    return JobSample(
        name=name,
        clones=1 if clone_bytes is None else len(clone_bytes),
        runtime_ns=runtime_ns,
        directions=[reads, syncs] if sync else [reads],
        cpu_user_ns=1_000_000,
        cpu_system_ns=3_000_000,
        promised_weight=weight,
        clone_bytes=clone_bytes,
    )


def _command(**given: int | None) -> JobSample:
    counted = {"read_bytes": 8192, "written_bytes": 4096, "major_faults": 2, "io_delay_ns": 5_000_000}
    return JobSample(
        name="command",
        clones=1,
        runtime_ns=2 * SECOND_NS,
        directions=[],
        cpu_user_ns=1_000_000,
        cpu_system_ns=3_000_000,
        command=CommandSample.model_validate(counted | given),
    )


OF_COMMANDS = {"wall_time", "processor_time", "io_wait", "bytes_read", "bytes_written"}


def test_every_file_is_registered_and_every_name_has_a_file() -> None:
    folder = Path(blklab.analysis.metrics.__file__).parent
    files = {path.stem for path in folder.glob("*.py") if not path.stem.startswith("_")}
    assert files == set(METRICS)


@pytest.mark.parametrize("name", METRICS)
def test_conformance(name: str) -> None:
    """Every metric has a text for people, None without jobs, and one finite value for a run."""
    metric = METRICS[name]
    assert metric.description
    assert metric.unit in {"B/s", "IO/s", "us", "of 1", "factor", "B", "s"}
    assert metric.compute([]) is None
    run = [_job("a", sync=True), _job("b", sync=True, moved=819_200)]
    of_commands = name in OF_COMMANDS
    assert metric.compute(run if of_commands else [_command()]) is None
    if of_commands:
        run = [_command()]
    value = metric.compute(run)
    assert value is not None
    assert math.isfinite(value)
    assert value > 0
    assert metric.compute(run) == value
    assert of_commands or (metric.compute(run[:1]) is None) == (
        name in {"jain_index", "share_deviation", "longest_wait"}
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("throughput", 204_800),
        ("iops", 50),
        ("latency_mean", 50.5),
        ("latency_p50", 50),
        ("latency_p99", 99),
        ("latency_p99_9", 100),
        ("latency_max", 100),
        ("sync_latency_p99", 9_000),
        ("cpu_per_io", 40),
    ],
)
def test_figures_of_a_known_run(name: str, value: float) -> None:
    assert METRICS[name].compute([_job(sync=True)]) == pytest.approx(value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("wall_time", 2_000_000),
        ("processor_time", 4_000),
        ("io_wait", 5_000),
        ("bytes_read", 8192),
        ("bytes_written", 4096),
    ],
)
def test_figures_of_a_known_command(name: str, value: float) -> None:
    assert METRICS[name].compute([_command()]) == pytest.approx(value)


def test_a_command_changes_no_figure_of_the_load_beside_it() -> None:
    load = [_job("a", sync=True), _job("b", sync=True, moved=819_200)]
    for name in METRICS.keys() - OF_COMMANDS - {"jain_index", "share_deviation", "makespan"}:
        assert METRICS[name].compute([_command(), *load]) == METRICS[name].compute(load)
        assert METRICS[name].compute([_command(), load[0]]) == METRICS[name].compute(load[:1])


def test_a_command_lacks_what_was_not_accounted_or_is_zero() -> None:
    assert METRICS["io_wait"].compute([_command(io_delay_ns=None)]) is None
    assert METRICS["bytes_read"].compute([_command(read_bytes=0)]) is None
    assert METRICS["makespan"].compute([_command(), _job()]) is None


def test_rates_add_over_sections_and_latencies_merge() -> None:
    jobs = [_job("a"), _job("b", runtime_ns=SECOND_NS)]
    assert METRICS["iops"].compute(jobs) == pytest.approx(150)
    assert METRICS["latency_p99"].compute(jobs) == pytest.approx(99)


def test_figures_that_a_run_does_not_have_are_nothing() -> None:
    job = _job().model_copy(update={"cpu_user_ns": None})
    assert METRICS["cpu_per_io"].compute([job]) is None
    assert METRICS["sync_latency_p99"].compute([job]) is None
    assert METRICS["iops"].compute([_job(runtime_ns=0)]) is None


def test_an_unknown_metric_is_named() -> None:
    with pytest.raises(UnknownNameError, match="'speed'"):
        metric_named("speed")


def test_shares_as_promised_are_fair() -> None:
    jobs = [_job("high", weight=8, moved=800_000), _job("low", weight=1, moved=100_000)]
    assert METRICS["jain_index"].compute(jobs) == pytest.approx(1)
    assert METRICS["share_deviation"].compute(jobs) == pytest.approx(1)


def test_equal_shares_of_unequal_promises_are_not() -> None:
    """Promised 8 : 1, got 1 : 1: the low job has 4.5 times its ninth; Jain's index of (1/8, 1) is 0.62."""
    jobs = [_job("high", weight=8), _job("low", weight=1)]
    assert METRICS["jain_index"].compute(jobs) == pytest.approx((1 / 8 + 1) ** 2 / (2 * (1 / 64 + 1)))
    assert METRICS["share_deviation"].compute(jobs) == pytest.approx(4.5)


def test_clones_compete_too_where_they_are_told_apart() -> None:
    clones = _job("readers", weight=16, clone_bytes=[300_000, 100_000, 100_000, 100_000])
    assert METRICS["jain_index"].compute([clones]) == pytest.approx(36 / (4 * 12))
    assert METRICS["share_deviation"].compute([clones]) == pytest.approx(2)
    merged = clones.model_copy(update={"clone_bytes": None})
    assert METRICS["jain_index"].compute([merged]) is None
    assert METRICS["longest_wait"].compute([merged]) == pytest.approx(100)


def test_without_a_promise_there_is_no_fairness() -> None:
    jobs = [_job("a", weight=None), _job("b")]
    assert METRICS["jain_index"].compute(jobs) is None
    assert METRICS["share_deviation"].compute(jobs) is None


def test_a_starved_job_is_the_worst_and_not_absent() -> None:
    starved = _job("starved").model_copy(update={"directions": []})
    jobs = [_job("greedy"), starved]
    jain, deviation = METRICS["jain_index"].compute(jobs), METRICS["share_deviation"].compute(jobs)
    assert jain is not None and deviation is not None
    assert jain == pytest.approx(0.5, abs=0.01)
    assert deviation > 50
    assert METRICS["longest_wait"].compute(jobs) == pytest.approx(2_000_000)  # its whole run, in us


@given(st.lists(st.integers(1, 10**10), min_size=1, max_size=60), st.floats(0.01, 1))
def test_percentiles_are_order_statistics(latencies_ns: list[int], fraction: float) -> None:
    histogram = _histogram(*latencies_ns)
    rank = max(1, math.ceil(fraction * len(latencies_ns) - 1e-12))
    assert histogram.percentile_ns(fraction) == sorted(latencies_ns)[rank - 1]


@given(st.lists(st.lists(st.integers(1, 10**9), min_size=1, max_size=20), min_size=1, max_size=5))
def test_merging_is_the_same_as_recording_together(parts: list[list[int]]) -> None:
    together = _histogram(*(latency for part in parts for latency in part))
    merged = LatencyHistogram.merged(_histogram(*part) for part in parts)
    assert (
        merged.model_dump()
        == together.model_copy(update={"bins": dict(sorted(together.bins.items()))}).model_dump()
    )
