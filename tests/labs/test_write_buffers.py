"""Calibration of disks with a write buffer, from its first writes to the rate behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.labs.calibration.disk.document import DiskCalibration
from blklab.labs.calibration.disk.forward import Forward
from blklab.labs.calibration.disk.ground import DiskMeasurement, opened_ground
from blklab.labs.calibration.disk.limits import Limits, buffer_load, with_write_buffer
from blklab.labs.calibration.disk.loads import BUFFERED_HOLDOUTS, CalibrationLoad, DiskLoad
from blklab.labs.calibration.disk.observations import Row, observations
from blklab.labs.calibration.disk.parameters import Service, VirtualDisk
from blklab.labs.calibration.disk.profile_file import profile_text
from blklab.labs.calibration.disk.short_runs import as_if_long
from blklab.spec.targets import parse_target
from disk_calibrations import MACHINE, calibration_of
from plain_simulation import simulate

DISK = (
    "sim:virtual,read_latency=200us,read_spread=200,write_latency=60us,write_spread=200"
    ",parallel=3,queue_depth=4"
)
NO_LIMIT = Limits(ios=None, rate=None, seen_ios=0, seen_bytes=0, most_iops=1e6, most_rate=1e10)
BUDGET_NS = 60_000_000_000


def buffer_of(parameters: str, *, most_s: float) -> Limits:
    with opened_ground(parse_target(DISK + parameters), seed=1, machine=MACHINE) as ground:

        def measure(load: CalibrationLoad, runtime_us: int) -> DiskMeasurement:
            return ground.measure(load, number=runtime_us, runtime_us=runtime_us)

        load = buffer_load(queue_depth=32, max_sectors_kb=1280, space_bytes=ground.facts.space_bytes)
        return with_write_buffer(NO_LIMIT, measure, load, most_s=most_s)


def test_the_rate_before_a_small_buffer_is_full_is_seen() -> None:
    """It is full after 42 ms, and those in flight then take as long again."""
    found = buffer_of(",write_buffer=28000000,write_drain_rate=124000000,write_rate=800000000", most_s=2)
    assert found.writes is not None
    assert found.most_write_rate == pytest.approx(8e8, rel=0.15)
    assert found.unlimited_s(1e6, 256, writes=True) < 0.042


def test_a_run_between_the_longest_two_shows_the_rate_behind_a_large_buffer() -> None:
    """Full after 2.7 s: of runs of 2, 3 and 4 s only two are on its line. Another is full after 1.8 s."""
    late = ",write_buffer=3200000000,write_drain_rate=300000000,write_rate=1500000000"
    assert buffer_of(late, most_s=4).writes is None
    early = ",write_buffer=2200000000,write_drain_rate=300000000,write_rate=1500000000"
    found = buffer_of(early, most_s=4)
    assert found.writes is not None
    assert found.writes.per_second == pytest.approx(3e8, rel=0.01)
    assert found.writes.burst_interval[0] <= 2.2e9 <= found.writes.burst_interval[1]


def test_short_runs_are_corrected_towards_long_ones() -> None:
    """Eight writes at once in a run of some 75: those in flight at its ends are a tenth."""
    service = Service(latency_ns=60_000, spread=0.2, command_ns=1000, kib_ns=1200)
    disk = VirtualDisk(read=service, write=service, parallel=8, placement="any", full_duplex=True, flush_ns=0)
    load = DiskLoad("write", 256, 8)
    row: Row = (load, "iops")
    with opened_ground(parse_target(DISK), seed=1, machine=MACHINE) as ground:
        facts = ground.facts
    forward = Forward(facts, MACHINE, {load: 3200.0})
    long = float(forward.predicted(disk, [row])[0])
    target = parse_target("sim:" + forward.device(disk))
    with opened_ground(target, seed=1, machine=MACHINE) as ground:
        runs = [ground.measure(load, number=number, runtime_us=8000) for number in range(3)]
    short = observations(runs, [load])
    corrected = as_if_long(short, forward, disk, {load: 8000})
    assert abs(corrected[row].log - long) < 0.5 * abs(short[row].log - long)
    assert corrected[row].error > short[row].error
    assert abs(corrected[row].log - long) < 3 * corrected[row].error


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> DiskCalibration:
    buffer = ",write_buffer=200000000,write_drain_rate=100000000,write_rate=400000000"
    path = tmp_path_factory.mktemp("found") / "disk.toml"
    document = calibration_of(DISK + buffer, path, BUDGET_NS)
    path.write_text(profile_text(document, name="buffered"))
    return document


def test_a_calibration_finds_the_buffer_and_predicts_sustained_writes(found: DiskCalibration) -> None:
    figures = {figure.key: figure for figure in found.figures}
    for key, true in (("write_buffer", 2e8), ("write_drain_rate", 1e8)):
        figure = figures[key]
        assert figure.low is not None
        assert figure.high is not None
        assert figure.low <= true <= figure.high
    loads = {load.load: load for load in found.loads}
    for holdout in BUFFERED_HOLDOUTS:
        assert not loads[holdout.name].fitted
        assert loads[holdout.name].rate_error < 0.02
    # Sustained writes come at the rate behind, others at that of the link.
    sustained = loads[BUFFERED_HOLDOUTS[0].name]
    assert sustained.iops * 128 * 1024 == pytest.approx(1e8, rel=0.2)
    assert found.errors()[0] < 0.03


def test_the_profile_of_a_buffered_disk_slows_down_writes(found: DiskCalibration, tmp_path: Path) -> None:
    path = tmp_path / "buffered.toml"
    path.write_text(profile_text(found, name="buffered"))
    job = {"rw": "write", "bs": "128k", "size": "1g", "direct": "1", "ioengine": "libaio", "iodepth": "8"}
    rates = []
    for runtime_ms in (200, 5000):
        result = simulate(str(path), {"w": job | {"time_based": "1", "runtime": f"{runtime_ms}ms"}})
        rates.append(result.jobs[0].directions[0].ios / runtime_ms)
    assert rates[0] > 2 * rates[1]
