"""hdparm, iozone and tiotest as jobs: complete, and with the tools' known behaviour."""

from __future__ import annotations

import pytest

from blklab.errors import UsageError
from blklab.simulator.benchmark_emulation import (
    IOZONE_TESTS,
    TIOTEST_PHASES,
    iozone_job_file,
    tiotest_job_file,
)
from blklab.simulator.simulation import SimulationResult
from plain_simulation import simulate

MIB = 1 << 20


def _rate(result: SimulationResult, name: str) -> float:
    """Bytes a second of a section in its one direction of transfer."""
    (one,) = [d for d in result.job(name).directions if d.direction != "sync"]
    return one.bytes / one.runtime_ns * 1e9


def _bytes(result: SimulationResult, prefix: str) -> int:
    jobs = [job for job in result.jobs if job.name.startswith(prefix)]
    return sum(d.bytes for job in jobs for d in job.directions if d.direction != "sync")


@pytest.mark.parametrize("record", [4096, 64 << 10, MIB])
def test_every_test_of_iozone_transfers_the_whole_file(record: int) -> None:
    size = 8 * MIB
    result = simulate("hdd-7200", iozone_job_file(record, size), scheduler="deadline")
    for test in IOZONE_TESTS:
        mine = [job for job in result.jobs if job.name == test or job.name.startswith(f"{test}-")]
        mine = [job for job in mine if test in (job.name, "stride-read")]
        assert sum(d.bytes for job in mine for d in job.directions) == size, test


def _positions(test: str, record: int, size: int) -> list[int]:
    """Records in the order in which a test asks the device for them, without a cache."""
    jobs = iozone_job_file(record, size, [test], direct=True)
    result = simulate("fixed", jobs, scheduler="none", timeline=True)
    assert result.timeline is not None
    return [int(sector) * 512 // record for sector in result.timeline.requests["sector"]]


def test_iozone_visits_every_record_in_its_order() -> None:
    record, count = 4096, 50
    size = record * count
    assert _positions("read", record, size) == list(range(count))
    assert _positions("backward-read", record, size) == [0, *reversed(range(1, count))]
    assert _positions("record-rewrite", record, size) == [0] * count
    stride = [start + step for start in range(17) for step in range(0, count - start, 17)]
    assert _positions("stride-read", record, size) == stride
    shuffled = _positions("random-read", record, size)
    assert shuffled != sorted(shuffled)
    assert sorted(shuffled) == list(range(count))


def test_a_small_file_measures_memory_and_a_large_one_the_disk() -> None:
    tests = ["write", "read", "reread", "random-read", "backward-read"]
    small = simulate("hdd-7200", iozone_job_file(64 << 10, 16 * MIB, tests), scheduler="cfq")
    assert _rate(small, "reread") > 1e9
    assert _rate(small, "random-read") > 1e9
    jobs = iozone_job_file(64 << 10, 256 * MIB, tests)
    large = simulate("hdd-7200", jobs, scheduler="cfq", parameters={"memory": 64 * MIB})
    assert 100e6 < _rate(large, "read") < 250e6
    assert _rate(large, "random-read") < _rate(large, "read") / 5
    assert _rate(large, "backward-read") < _rate(large, "read")


def test_tiotest_has_its_phases_one_after_the_other() -> None:
    jobs = tiotest_job_file(threads=4, file_bytes=4 * MIB, random_operations=500)
    result = simulate("hdd-7200", jobs, scheduler="deadline")
    assert [job.name for job in result.jobs] == list(TIOTEST_PHASES)
    assert _bytes(result, "sequential-write") == _bytes(result, "sequential-read") == 16 * MIB
    assert _bytes(result, "random-write") == _bytes(result, "random-read") == 4 * 500 * 4096
    for phase in TIOTEST_PHASES:
        synced = any(d.direction == "sync" for d in result.job(phase).directions)
        assert synced == phase.endswith("write"), phase
    # What was written is still in memory when it is read.
    assert _rate(result, "sequential-read") > 1e9 > _rate(result, "sequential-write")


def test_hdparms_two_figures_are_those_of_medium_and_memory() -> None:
    medium = simulate("hdd-7200", "buffered-sequential-read", scheduler="cfq")
    memory = simulate("hdd-7200", "cached-read", scheduler="cfq")
    assert 150e6 < _rate(medium, "reader") < 200e6
    assert _rate(memory, "reader") > 1e9


@pytest.mark.parametrize(("record", "size"), [(0, 4096), (1000, 4000), (4096, 1000), (4096, 6144)])
def test_impossible_records_are_refused(record: int, size: int) -> None:
    with pytest.raises(UsageError, match="whole number of records"):
        iozone_job_file(record, size)


def test_unknown_tests_and_empty_phases_are_refused() -> None:
    with pytest.raises(UsageError, match="no test 'mixed'"):
        iozone_job_file(4096, 4096, ["mixed"])
    with pytest.raises(UsageError, match="positive"):
        tiotest_job_file(threads=0)
