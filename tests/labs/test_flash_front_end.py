"""The front end of flash drives, which reads beside writes show."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blklab.labs.calibration.disk.document import MixedLoad, mixed_errors_of
from blklab.labs.calibration.disk.flash.figures import FlashDrive, with_facts
from blklab.labs.calibration.disk.flash.front_end import (
    Contention,
    FoundFrontEnd,
    FrontEnd,
    front_end_of,
    with_intervals,
)
from blklab.labs.calibration.disk.ground import DiskMeasurement, opened_ground
from blklab.labs.calibration.disk.model import Model
from blklab.labs.calibration.disk.reads_beside_writes import (
    RUNTIME_US,
    ReadsBesideWrites,
    contention_to_fit,
    contention_to_test,
)
from blklab.spec.targets import parse_target
from disk_calibrations import MACHINE

LOADS = [
    ReadsBesideWrites(4, 64, 2),
    ReadsBesideWrites(4, 64, 64),
    ReadsBesideWrites(4, 64, 8, writers=1),
    ReadsBesideWrites(4, 64, 64, writers=1),
    ReadsBesideWrites(4, 64, 64, writers=2),
]


def drive() -> FlashDrive:
    """Without a front end, so small that it is simulated quickly."""
    with opened_ground(parse_target("sim:flash"), seed=1, machine=MACHINE) as ground:
        facts = ground.facts
    small = replace(with_facts(facts), capacity_bytes=8 << 30, queue_depth=128)
    return replace(small, dies=8, channels=4, program=1_500_000, buffer_bytes=4 << 20)


def measured(front_end: FrontEnd) -> tuple[Contention, Model]:
    """Measurements of a drive with this front end."""
    device = front_end.of(drive()).device()
    found: dict[ReadsBesideWrites, list[DiskMeasurement]] = {}
    with opened_ground(parse_target(f"sim:{device}"), seed=1, machine=MACHINE) as ground:
        for number, load in enumerate(LOADS):
            found[load] = [ground.measure(load, number=number, runtime_us=RUNTIME_US)]
        model = Model(ground.facts.space_bytes, MACHINE)
    return Contention(found, model), model


def found_again(front_end: FrontEnd) -> FoundFrontEnd:
    """With other figures that are a little off, as a fit has them."""
    contention, _ = measured(front_end)
    near = replace(drive(), suspend=1.1 * drive().suspend, program=1.003 * drive().program)
    return with_intervals(contention, near, front_end_of(contention, near))


def test_slots_and_turns_are_found_again() -> None:
    found = found_again(FrontEnd(slots=40, arbitration_burst=4))
    assert found.front_end.hold == "nothing"
    assert found.slots is not None
    assert found.slots[0] <= 40 <= found.slots[1]
    assert found.slots[1] - found.slots[0] <= 8
    assert found.arbitration_burst is not None
    assert found.arbitration_burst[0] <= 4 <= found.arbitration_burst[1]
    figures = {figure.key: figure for figure in found.figures()}
    assert set(figures) == {"slots", "arbitration_burst", "hold"}
    assert (figures["slots"].how, figures["slots"].high) == ("fitted", found.slots[1])


def test_programs_that_hold_reads_are_found_again() -> None:
    found = found_again(FrontEnd(hold="program"))
    assert found.front_end == FrontEnd(hold="program")
    (slots, hold) = found.figures()
    assert (slots.value, slots.how) == (0, "no limit seen with 129 commands at once")
    assert (hold.key, hold.value) == ("hold", "program")


def test_a_drive_without_a_front_end_keeps_none() -> None:
    contention, model = measured(FrontEnd())
    found = front_end_of(contention, drive())
    assert not found.exists
    assert found.of(drive()).parameters() == drive().parameters()
    assert not {"slots", "hold", "arbitration_burst"} & set(drive().parameters())
    # With nothing to explain nothing is searched.
    simulated = len(model._known)
    assert simulated <= 12 * len(LOADS)


def test_reads_and_writes_are_measured_apart() -> None:
    contention, model = measured(FrontEnd(slots=40))
    load = LOADS[1]
    ((slow,),) = model.measured(FrontEnd(slots=40).of(drive()).device(), [load], [1])
    ((free,),) = model.measured(drive().device(), [load], [1])
    assert slow.write_iops == pytest.approx(free.write_iops, rel=0.1)
    assert (slow.mean_ns or 0) > 10 * (free.mean_ns or 0)
    assert contention.cost(drive()) > 100 * contention.cost(FrontEnd(slots=40).of(drive()))


@pytest.mark.parametrize("queue_depth", [8, 32, 1023])
def test_loads_that_test_are_other_loads_and_fit_into_the_queue(queue_depth: int) -> None:
    fitted, tested = contention_to_fit(queue_depth), contention_to_test(queue_depth)
    names = [load.name for load in [*fitted, *tested]]
    assert len(set(names)) == len(names)
    assert max(load.depth for load in [*fitted, *tested]) <= queue_depth
    assert not {(load.write_kib, load.depth) for load in fitted} & {
        (load.write_kib, load.depth) for load in tested
    }
    for load in tested:
        workload = load.workload(space_bytes=1 << 30, ramp_us=1000, runtime_us=10_000)
        assert workload.name == load.name


def test_errors_are_those_of_loads_that_were_not_fitted() -> None:
    def load(predicted_us: float, *, fitted: bool) -> MixedLoad:
        return MixedLoad(
            load="l",
            fitted=fitted,
            runs=1,
            read_mean_us=100,
            predicted_read_mean_us=predicted_us,
            read_p99_us=200,
            predicted_read_p99_us=200,
            write_iops=10,
            predicted_write_iops=10,
        )

    errors = mixed_errors_of([load(900, fitted=True), load(100, fitted=False), load(50, fitted=False)])
    assert errors is not None
    assert errors.loads == 2
    assert errors.read_mean == pytest.approx((0.3466, 0.6931), abs=1e-3)
    assert errors.write_rate == (0, 0)
    assert mixed_errors_of([load(900, fitted=True)]) is None
