"""Calibration of disks: modelled ones whose figures are known, interruptions, and what the profile says."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from blklab.errors import FormatError, ProfileError, UsageError
from blklab.labs.calibration.disk.arm import has_arm
from blklab.labs.calibration.disk.calibrate import calibrated
from blklab.labs.calibration.disk.document import UNDECIDED, DiskCalibration
from blklab.labs.calibration.disk.drift import drift_of
from blklab.labs.calibration.disk.forward import Forward
from blklab.labs.calibration.disk.ground import (
    DiskFacts,
    DiskMeasurement,
    SessionGround,
    opened_ground,
    quantile_ns,
)
from blklab.labs.calibration.disk.loads import (
    ARM_PROBES,
    HOLDOUTS,
    REFERENCE,
    SINGLE_WRITES,
    CalibrationLoad,
    DiskLoad,
    fitted_loads,
    holdout_loads,
)
from blklab.labs.calibration.disk.observations import observations
from blklab.labs.calibration.disk.order import Order
from blklab.labs.calibration.disk.parameters import Service, VirtualDisk
from blklab.labs.calibration.disk.profile_file import profile_text
from blklab.labs.calibration.disk.saved import (
    SavedMeasurements,
    measurements_path,
    saved_measurements,
)
from blklab.linux.queue.hardware import (
    HardwareQueues,
    SegmentLimits,
    hardware_queues,
    segment_limits,
)
from blklab.records.samples import LatencyHistogram
from blklab.spec.profiles import calibrated_profiles, load_profile
from blklab.spec.targets import parse_target
from disk_calibrations import MACHINE, SilentObserver, calibration_of, design_for
from plain_simulation import simulate

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TRUTH: dict[str, int | str] = {
    "read_latency": 200_000,
    "read_spread": 200,
    "read_command": 8_000,
    "read_rate": 500_000_000,
    "write_latency": 300_000,
    "write_spread": 100,
    "write_command": 5_000,
    "write_rate": 400_000_000,
    "parallel": 3,
    "placement": "any",
    "full_duplex": 0,
    "flush": 1_000_000,
    "queue_depth": 4,
}
TARGET = "sim:virtual," + ",".join(f"{key}={value}" for key, value in TRUTH.items())
SHORT_NS = 1_000_000
"""Two rounds, whatever they take."""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> DiskCalibration:
    return calibration_of(TARGET, tmp_path_factory.mktemp("found") / "disk.toml", SHORT_NS)


def test_loads_to_test_with_are_not_fitted() -> None:
    fitted = fitted_loads(queue_depth=128, writes=True)
    assert not set(fitted) & set(HOLDOUTS)
    assert REFERENCE in fitted
    names = [load.name for load in [*fitted, *HOLDOUTS, *ARM_PROBES]]
    assert len(names) == len(set(names)) + 1, "only the probe of the whole disk is also fitted"
    assert max(load.depth for load in fitted_loads(queue_depth=1, writes=True) if load.block_kib == 4) == 16
    read_only = [*fitted_loads(queue_depth=32, writes=False), *holdout_loads(writes=False)]
    assert all(load.reads_only for load in read_only)


def test_figures_are_found_again(found: DiskCalibration) -> None:
    outside = []
    for figure in found.figures:
        true = TRUTH.get(figure.key)
        if figure.low is None and figure.high is None:
            assert true is None or figure.value == true or figure.how == UNDECIDED, figure
        elif true is not None:
            low = -math.inf if figure.low is None else figure.low
            high = math.inf if figure.high is None else figure.high
            assert low <= float(figure.value) <= high
            if not low <= float(true) <= high:
                outside.append(figure)
    # Of nine figures one in six calibrations has two outside intervals of 95 %.
    assert len(outside) <= 2, outside


def test_the_profile_predicts_loads_that_were_not_fitted(found: DiskCalibration) -> None:
    median, large = found.errors()
    assert median < 0.03
    assert large < 0.06
    assert 10 * median < found.nearest.rate_error_median
    assert found.tail_errors()[0] < 0.1


def test_batches_of_a_host_are_found(tmp_path: Path) -> None:
    figures = {
        "read_latency": 50_000, "read_command": 10_000, "read_rate": 1_300_000_000,
        "write_latency": 60_000, "write_command": 18_000, "write_rate": 3_000_000_000,
        "read_spread": 200, "write_spread": 200, "placement": "batch", "queue_depth": 32,
        "batch_size": 8, "mixed_latency": "sum",
    }  # fmt: skip
    target = "sim:virtual," + ",".join(f"{key}={value}" for key, value in figures.items())
    found = calibration_of(target, tmp_path / "disk.toml", SHORT_NS)
    by_key = {figure.key: figure for figure in found.figures}
    assert by_key["placement"].value == "batch"
    assert by_key["parallel"].how == "one thread serves all in batches"
    assert by_key["mixed_latency"].value == "sum"
    size = by_key["batch_size"]
    assert size.value == pytest.approx(8, abs=1)
    assert size.low is not None
    assert size.high is not None
    assert size.low <= 8 <= size.high
    path = tmp_path / "batches.toml"
    path.write_text(profile_text(found, name="batches"))
    assert tomllib.loads(path.read_text())["mixed_latency"] == "sum"
    assert load_profile(str(path)).kind == "virtual"
    assert float(by_key["read_latency"].value) == pytest.approx(50_000, rel=0.1)
    assert float(by_key["read_command"].value) == pytest.approx(10_000, rel=0.1)
    assert found.errors()[0] < 0.03


def test_the_search_may_try_a_disk_that_is_far_too_slow() -> None:
    queues = HardwareQueues(number=1, depth=32, max_sectors_kb=1280, volatile_cache=True)
    facts = DiskFacts("a disk", "", 1 << 30, 1 << 30, writable=True, queues=queues, rotational=False)
    slow = Service(latency_ns=1e9, spread=0.0, command_ns=0.0, kib_ns=1.0)
    disk = VirtualDisk(slow, slow, parallel=1.0, placement="any", full_duplex=True, flush_ns=0.0)
    forward = Forward(facts, MACHINE, {SINGLE_WRITES: 1e6})
    (log_iops,) = forward.predicted(disk, [(SINGLE_WRITES, "iops")])
    assert math.exp(log_iops) == pytest.approx(1, rel=0.2)


def test_the_profile_is_a_device_and_tells_how_it_was_made(found: DiskCalibration, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(profile_text(found, name="mine"))
    profile = load_profile(str(path))
    assert (profile.name, profile.kind) == ("mine", "virtual")
    result = simulate(str(path), {"r": {"rw": "randread", "size": "1m"}})
    assert result.device["queue_depth"] == 4
    table = tomllib.loads(path.read_text())
    about = table["calibration"]
    assert about["target"] == TARGET
    assert about["rate_error_median"] == pytest.approx(found.errors()[0], abs=1e-4)
    assert about["intervals"]["parallel"][0] <= table["parallel"]
    assert {load["load"]: load["fitted"] for load in about["loads"]} == {
        load.name: load in fitted_loads(queue_depth=4, writes=True)
        for load in [*fitted_loads(queue_depth=4, writes=True), *HOLDOUTS]
    }
    assert "Not covered" in path.read_text()
    (tmp_path / "other.toml").write_text("[tool]\n")
    (tmp_path / "broken.toml").write_text("calibration = [")
    assert [one.source for one in calibrated_profiles(tmp_path)] == ["mine.toml"]


def test_a_profile_without_a_table_of_calibration_is_as_before(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('name = "a"\nkind = "fixed"\nsummary = "s"\ncalibration = "none"\n')
    with pytest.raises(ProfileError, match="calibration"):
        load_profile(str(path))


def measured(load: DiskLoad, p50_us: float, *, number: int = 0, iops: float = 1000) -> DiskMeasurement:
    time_ns = 1000 * p50_us
    return DiskMeasurement(
        number=number,
        load=load.name,
        at_s=number,
        took_s=1,
        ios=1000,
        iops=iops,
        p50_ns=time_ns,
        p95_ns=2 * time_ns,
        p99_ns=3 * time_ns,
    )


@pytest.mark.parametrize(
    ("times_us", "expected"),
    [
        ((12_000, 8_000, 5_000), True),
        ((100, 99, 101), False),
        # A host's cache holds the smallest span.
        ((5_000, 4_990, 80), False),
        # It holds two of them.
        ((5_000, 81, 80), False),
        # Over short ways, an arm's time is nearly all rotation.
        ((12_600, 7_400, 7_100), True),
        ((8_700, 5_300, 5_300), True),
        # It grows, but by too little for an arm.
        ((200, 150, 100), False),
    ],
)
def test_an_arm_takes_longer_over_longer_ways(times_us: Sequence[float], expected: bool) -> None:
    runs = [
        measured(probe, time_us * (1 + 0.01 * number), number=number)
        for probe, time_us in zip(ARM_PROBES, times_us, strict=True)
        for number in range(3)
    ]
    assert has_arm(observations(runs, ARM_PROBES)) == expected


def test_drift_and_odd_runs_are_noticed() -> None:
    def runs(change: float, odd: Sequence[int] = ()) -> list[DiskMeasurement]:
        return [
            measured(
                REFERENCE,
                100,
                number=number,
                iops=1000
                * (1 + change * number / 20)
                * (1 + 0.005 * (-1) ** number)
                / (3 if number in odd else 1),
            )
            for number in range(21)
        ]

    steady, falling = drift_of(runs(0)), drift_of(runs(-0.3))
    assert not steady.is_notable
    assert steady.remarks() == []
    assert falling.is_notable
    assert falling.low < falling.change < falling.high < -0.2
    assert "drifted" in falling.remarks()[0]
    assert drift_of(runs(0, odd=(4, 9))).outliers == 2


def test_the_order_depends_on_the_seed_alone() -> None:
    fitted, holdouts = fitted_loads(queue_depth=8, writes=True), holdout_loads(writes=True)
    order = Order(fitted, holdouts, 5)
    assert order.round(1) == Order(fitted, holdouts, 5).round(1)
    assert order.round(1) != order.round(0)
    assert order.round(1) != Order(fitted, holdouts, 6).round(1)
    assert set(order.round(0)) == {*fitted, *holdouts}
    assert order.round(0).count(REFERENCE) > 2


class Halting(SessionGround):
    """A disk whose calibration is interrupted after some measurements."""

    def __init__(self, ground: SessionGround, left: int) -> None:
        super().__init__(ground._session, ground.facts, 1)
        self.left = left
        self.seen: list[str] = []

    def measure(self, load: CalibrationLoad, *, number: int, runtime_us: int) -> DiskMeasurement:
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1
        self.seen.append(load.name)
        return super().measure(load, number=number, runtime_us=runtime_us)


def halted(profile: Path, after: int) -> tuple[list[str], SavedMeasurements]:
    with opened_ground(parse_target(TARGET), seed=1, machine=MACHINE) as ground:
        halting = Halting(ground, after)
        saved = saved_measurements(profile, design_for(TARGET, SHORT_NS), fresh=False)
        with pytest.raises(KeyboardInterrupt):
            calibrated(halting, saved, budget_ns=SHORT_NS, seed=1, machine=MACHINE, observer=SilentObserver())
        return halting.seen, saved


def test_an_interrupted_calibration_goes_on_where_it_was(tmp_path: Path) -> None:
    whole, all_saved = halted(tmp_path / "whole.toml", 30)
    first, _ = halted(tmp_path / "parts.toml", 13)
    # A kill may leave half a line.
    with measurements_path(tmp_path / "parts.toml").open("a") as file:
        file.write('{"number": 13, "lo')
    second, saved = halted(tmp_path / "parts.toml", 17)
    assert first + second == whole

    def without_times(found: SavedMeasurements) -> list[DiskMeasurement]:
        return [one.model_copy(update={"at_s": 0, "took_s": 0}) for one in found.measurements]

    assert without_times(saved) == without_times(all_saved)
    again = saved_measurements(tmp_path / "parts.toml", design_for(TARGET, SHORT_NS), fresh=False)
    assert again.measurements == saved.measurements
    assert saved_measurements(tmp_path / "parts.toml", design_for(TARGET, SHORT_NS), fresh=True).is_new


def test_measurements_of_another_disk_are_not_taken(tmp_path: Path) -> None:
    profile = tmp_path / "disk.toml"
    halted(profile, 3)
    with pytest.raises(UsageError, match="another target"):
        saved_measurements(profile, design_for("sim:fixed", SHORT_NS), fresh=False)
    path = measurements_path(profile)
    path.write_text(path.read_text().replace('"iops"', '"speed"'))
    with pytest.raises(FormatError, match="damaged"):
        saved_measurements(profile, design_for(TARGET, SHORT_NS), fresh=False)


def test_quantiles_lie_within_bins_and_not_between_them() -> None:
    def histogram(values_ns: Sequence[int]) -> LatencyHistogram:
        bins: dict[int, int] = {}
        for value in values_ns:
            width = 1 << max(0, value.bit_length() - 7)
            middle = value // width * width + width // 2
            bins[middle] = bins.get(middle, 0) + 1
        return LatencyHistogram(count=len(values_ns), bins=dict(sorted(bins.items())))

    even = histogram(range(1_000_000, 2_000_000, 100))
    for fraction in (0.05, 0.5, 0.95, 0.99):
        assert quantile_ns(even, fraction) == pytest.approx(1e6 * (1 + fraction), rel=1e-3)
    # Reads in order: those that end on the next track, and of these a few on another head.
    in_order = histogram([635_000] * 894 + [1_335_000] * 105 + [1_597_000])
    assert quantile_ns(in_order, 0.5) == pytest.approx(635_000, rel=0.016)
    assert quantile_ns(in_order, 0.99) == pytest.approx(1_335_000, rel=0.016)


def test_hardware_queues_as_sysfs_has_them(tmp_path: Path) -> None:
    for number, tags in ((0, 64), (1, 32)):
        queue = tmp_path / "vda" / "mq" / str(number)
        queue.mkdir(parents=True)
        (queue / "nr_tags").write_text(f"{tags}\n")
    (tmp_path / "vda" / "queue").mkdir()
    (tmp_path / "vda" / "queue" / "max_sectors_kb").write_text("512\n")
    (tmp_path / "vda" / "queue" / "write_cache").write_text("write back\n")
    (tmp_path / "vda" / "queue" / "max_segments").write_text("254\n")
    assert hardware_queues("vda", tmp_path) == HardwareQueues(2, 32, 512, volatile_cache=True)
    assert hardware_queues("vdb", tmp_path) == HardwareQueues(1, 128, 1280, volatile_cache=False)
    assert segment_limits(["vda"], tmp_path) == SegmentLimits(254, 65_536)
    assert segment_limits(["vda", "vdb"], tmp_path) == SegmentLimits(128, 65_536)
