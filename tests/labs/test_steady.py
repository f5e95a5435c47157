"""Conditioning until a disk is steady, by SNIA's rule."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from blklab.backends import Announce
from blklab.errors import InterruptedRunError, RequirementError
from blklab.labs.calibration.disk.ground import DiskFacts, DiskMeasurement
from blklab.labs.calibration.disk.loads import REFERENCE, CalibrationLoad
from blklab.labs.calibration.disk.runs import Runs
from blklab.labs.calibration.disk.saved import SavedDesign, SavedMeasurements
from blklab.labs.calibration.disk.steady import (
    MOST_ROUNDS,
    conditioned,
    conditioning_load,
    require_conditionable,
    steady_state,
)
from blklab.linux.processes.signals import signals_as_exceptions
from blklab.linux.queue.hardware import HardwareQueues
from blklab.records.samples import TargetDescription
from disk_calibrations import SilentObserver

FACTS = DiskFacts(
    name="disk",
    model="",
    capacity_bytes=1 << 30,
    space_bytes=1 << 30,
    writable=True,
    queues=HardwareQueues(1, 32, 1280, volatile_cache=False),
    rotational=False,
)


@pytest.mark.parametrize(
    ("rates", "reached"),
    [
        ((100, 100, 100, 100), False),
        ((500, 300, 100, 100, 100, 100, 100), True),
        ((108, 100, 92, 110, 95), True),
        # Apart by more than a fifth.
        ((100, 111, 100, 89, 100), False),
        # Falling by more than a tenth.
        ((106, 103, 100, 97, 94), False),
        ((104, 102, 100, 98, 96), True),
    ],
)
def test_five_rounds_must_be_alike_and_level(rates: tuple[float, ...], *, reached: bool) -> None:
    assert steady_state(rates).reached == reached


def measured(load: CalibrationLoad, iops: float, *, took_s: float, number: int = 0) -> DiskMeasurement:
    return DiskMeasurement(
        number=number,
        load=load.name,
        at_s=0,
        took_s=took_s,
        ios=1,
        iops=iops,
        p50_ns=1,
        p95_ns=1,
        p99_ns=1,
    )


def rounds_of(rates: list[float]) -> list[float]:
    """The rounds that conditioning makes on a disk with these rates; the last one stays."""
    made: list[float] = []

    def measure(load: CalibrationLoad, runtime_us: int) -> DiskMeasurement:
        # A rate of 0 stands for a disk that never becomes steady.
        iops = rates[min(len(made), len(rates) - 1)] or 100.0 * 2 ** len(made)
        made.append(iops)
        return measured(load, iops, took_s=runtime_us / 1e6)

    state = conditioned(measure, conditioning_load(1 << 30, 256))
    assert state.iops == made
    assert state.reached == (len(made) < MOST_ROUNDS)
    assert len(state.remarks()) == 1
    return made


def test_conditioning_ends_when_the_disk_is_steady_or_not_at_all() -> None:
    assert len(rounds_of([900, 500, 300, 200])) == 8
    assert len(rounds_of([0])) == MOST_ROUNDS


def test_only_blklabs_own_space_on_a_real_disk_is_conditioned() -> None:
    require_conditionable(FACTS, "/srv")
    with pytest.raises(RequirementError, match="only read"):
        require_conditionable(replace(FACTS, writable=False), "/dev/sdb")
    with pytest.raises(RequirementError, match="a model"):
        require_conditionable(replace(FACTS, rested=True), "sim:nvme-tlc")


class NoGround:
    """Everything was measured before an interruption."""

    facts = FACTS

    @property
    def target(self) -> TargetDescription:
        raise AssertionError

    def prepare(self, loads: Sequence[CalibrationLoad], announce: Announce) -> None:
        raise AssertionError

    def measure(self, load: CalibrationLoad, *, number: int, runtime_us: int) -> DiskMeasurement:
        raise AssertionError

    def commands(self, load: CalibrationLoad, *, runtime_us: int) -> list[str]:
        raise AssertionError


def _design() -> SavedDesign:
    return SavedDesign(
        target="/srv",
        disk="",
        capacity_bytes=1,
        space_bytes=1,
        budget_ns=1,
        seed=1,
        machine="ordinary",
        until_steady=True,
    )


def test_conditioning_does_not_count_against_the_budget(tmp_path: Path) -> None:
    load = conditioning_load(1 << 30, 256)
    rounds = [measured(load, 100, took_s=60, number=number) for number in range(5)]
    later = [measured(REFERENCE, 100, took_s=1, number=number) for number in range(5, 8)]
    saved = SavedMeasurements(tmp_path / "disk.measurements", _design(), [*rounds, *later])
    runs = Runs(NoGround(), saved, planned=3, budget_ns=100_000_000_000, observer=SilentObserver())
    assert conditioned(runs.one, load).reached
    assert runs.at_end
    runs.begin_budget()
    assert runs.spent_s == 0
    assert runs.measured_s == 5 * 60
    for left in (2, 1, 0):
        assert not runs.at_end
        assert runs.next_is_saved
        runs.make([REFERENCE], 1_000_000, within_budget=True)
        assert runs.spent_s == 3 - left
    assert runs.at_end
    assert not runs.next_is_saved


def test_runs_that_are_made_in_any_case_are_part_of_the_time_left(tmp_path: Path) -> None:
    left: list[int] = []

    class Told(SilentObserver):
        def measuring(self, load: CalibrationLoad, *, done: int, planned: int, left_ns: int) -> None:
            left.append(left_ns)

    class Instant(NoGround):
        def measure(self, load: CalibrationLoad, *, number: int, runtime_us: int) -> DiskMeasurement:
            return measured(load, 100, took_s=0, number=number)

        def prepare(self, loads: Sequence[CalibrationLoad], announce: Announce) -> None:
            pass

    made = [measured(REFERENCE, 100, took_s=2, number=number) for number in range(3)]
    saved = SavedMeasurements(tmp_path / "disk.measurements", _design(), made)
    # Six seconds are spent of five.
    runs = Runs(Instant(), saved, planned=100, budget_ns=5_000_000_000, observer=Told())
    runs.make([REFERENCE] * 3, 1_000_000)
    runs.need(7)
    runs.one(REFERENCE, 1_000_000)
    assert left == [7 * 2_000_000_000]


def test_a_signal_while_a_measurement_is_written_leaves_it_in_file_and_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = SavedMeasurements(tmp_path / "disk.measurements", _design(), [])

    def synced(_: int) -> None:
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("blklab.labs.calibration.disk.saved.os.fsync", synced)
    with pytest.raises(InterruptedRunError), signals_as_exceptions():
        saved.add(measured(REFERENCE, 100, took_s=1))
    assert len((tmp_path / "disk.measurements").read_text().splitlines()) == 1 + len(saved.measurements) == 2
