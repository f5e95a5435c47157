"""Calibration: tables that made-up machines had, measurements of this one, and limits."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from blklab.backends import Session
from blklab.errors import RunFailedError
from blklab.labs.calibration.fit import BASELINE, CostObservation, fitted
from blklab.labs.calibration.host_fidelity import HostCell, HostFidelityDocument, HostPair, host_fidelity
from blklab.labs.calibration.loads import CHECKED, FITTED, MATRIX, ProcessorLoad
from blklab.labs.calibration.measuring import CostMeasurement, MemoryDevice, difference, memory_device
from blklab.labs.calibration.prediction import predicted_iops
from blklab.labs.calibration.table_file import table_text
from blklab.records.samples import MachineDescription
from blklab.spec.machines import Machine, SchedulerCosts, StepCosts, load_machine, read_machine

LOADS = (ProcessorLoad(1, 1, 4, "read"), ProcessorLoad(1, 16, 4, "read"), ProcessorLoad(2, 8, 4, "read"))
START = Machine(
    name="start",
    cpus=2,
    steps=StepCosts(submit_ns=1000, end_ns=1000, wake_ns=500, context_switch_ns=500, thread_command_ns=1000),
    schedulers={"bfq": SchedulerCosts(insert_ns=500, dispatch_ns=500)},
)


def _observed(machine: Machine, loads: tuple[ProcessorLoad, ...]) -> list[CostObservation]:
    iops = predicted_iops([(load, name) for load in loads for name in (BASELINE, "bfq")], machine)
    return [
        CostObservation(
            load,
            iops[(load, BASELINE)],
            0.01,
            {"bfq": (iops[(load, "bfq")] / iops[(load, BASELINE)], 0.01)},
        )
        for load in loads
    ]


def _largest_error(machine: Machine, true: Machine) -> float:
    pairs = zip(_observed(machine, LOADS), _observed(true, LOADS), strict=True)
    return max(abs(math.log(one.ratios["bfq"][0] / other.ratios["bfq"][0])) for one, other in pairs)


def test_loads_are_told_apart() -> None:
    assert len({load.name for load in MATRIX}) == len(MATRIX) == 72
    assert not set(FITTED) & set(CHECKED)
    assert {*FITTED, *CHECKED} < set(MATRIX)
    for direction, block_kib in {(load.direction, load.block_kib) for load in MATRIX}:
        fitted_here = [load for load in FITTED if (load.direction, load.block_kib) == (direction, block_kib)]
        assert sorted(load.depth for load in fitted_here) == [1, 8, 32, 128]
        assert {load.jobs for load in fitted_here} == {1, 2, 4}
    for load in MATRIX:
        assert load.workload(ramp_ms=1, runtime_ms=2).decide_by == "iops"


def test_a_table_is_found_from_what_it_does() -> None:
    true = START.model_copy(
        update={
            "steps": START.steps.model_copy(update={"submit_ns": 2500, "thread_command_ns": 600}),
            "schedulers": {"bfq": SchedulerCosts(insert_ns=1000, dispatch_ns=1000)},
        }
    )
    fit = fitted(START, _observed(true, LOADS))
    assert _largest_error(fit.machine, true) < 0.1 < _largest_error(START, true)
    factor, low, high = fit.factors["schedulers.bfq"]
    assert low < factor < high
    # Factors are on a table of the machine's speed, which is found first.
    of_that_speed_ns = fit.machine.schedulers["bfq"].insert_ns / factor
    assert low * of_that_speed_ns < 1000 < high * of_that_speed_ns


@pytest.mark.parametrize("plug_reads", [False, True])
def test_the_way_of_submitting_reads_is_found(plug_reads: bool) -> None:
    true = START.model_copy(update={"plug_reads": plug_reads})
    observed = _observed(true, LOADS)
    other = START.model_copy(update={"plug_reads": not plug_reads})
    assert _largest_error(other, true) > 0.02, "the two ways are told apart by these loads"
    assert fitted(other, observed).machine.plug_reads == plug_reads


def test_a_table_that_is_written_reads_back(tmp_path: Path) -> None:
    fit = fitted(START, _observed(START, LOADS[:1]))
    path = tmp_path / "machine.toml"
    path.write_text(table_text(fit, summary='a "fast" one', remarks=["measured", "twice"]))
    machine = read_machine(path, "start")
    assert machine == fit.machine.model_copy(update={"source": "start", "summary": 'a "fast" one'})
    assert path.read_text().startswith("# measured\n# twice\n")
    assert " to " in next(line for line in path.read_text().splitlines() if line.startswith("insert_ns"))


def _document(*, errors: list[float], same_order: list[bool], block_kib: int = 4) -> HostFidelityDocument:
    cells = [
        HostCell(
            load=str(number),
            block_kib=block_kib,
            scheduler="bfq",
            fitted=False,
            iops=1,
            predicted_iops=1,
            ratio=1,
            ratio_low=1,
            ratio_high=1,
            predicted_ratio=math.exp(error),
        )
        for number, error in enumerate(errors)
    ]
    pairs = [
        HostPair(
            load="a",
            block_kib=block_kib,
            fitted=False,
            faster="none",
            slower="bfq",
            ratio=2,
            predicted_ratio=2 if same else 0.5,
        )
        for same in same_order
    ]
    return HostFidelityDocument(
        schema="blklab/host-fidelity-2", kernel="6", machine="this", rounds=3, cells=cells, pairs=pairs
    )


@pytest.mark.parametrize(
    ("errors", "same_order", "holds"),
    [
        ([0.04] * 20, [True] * 20, True),
        ([0.06] * 20, [True] * 20, False),
        ([0.04] * 18 + [0.2] * 2, [True] * 20, False),
        ([0.04] * 20, [True] * 18 + [False] * 2, False),
        ([0.04] * 20, [], True),
    ],
)
def test_limits(errors: list[float], same_order: list[bool], holds: bool) -> None:
    assert _document(errors=errors, same_order=same_order).holds == holds


def test_large_blocks_do_not_hide_errors_of_small_ones() -> None:
    small = _document(errors=[0.06] * 20, same_order=[True] * 20)
    large = _document(errors=[0.0] * 40, same_order=[True] * 60, block_kib=64)
    both = small.model_copy(update={"cells": small.cells + large.cells, "pairs": small.pairs + large.pairs})
    assert large.holds
    assert not both.holds
    found = [(one.block_kib, one.median_error, one.pairs) for one in both.summaries()]
    assert found == [(4, pytest.approx(0.06), 20), (64, 0.0, 60)]


def test_a_load_that_fails_is_named_with_the_reason() -> None:
    samples = [
        SimpleNamespace(status="failed", error=error) for error in ("fio ended", "no slot", "fio ended")
    ]
    session = SimpleNamespace(
        target=SimpleNamespace(schedulers=["none"]),
        check=lambda *_: None,
        prepare=lambda *_: None,
        run_stretch=lambda _: samples,
    )
    device = MemoryDevice(cast("Session", session), [ProcessorLoad(1, 1, 4, "read")], seed=1)
    with pytest.raises(RunFailedError, match="the load 1x1-4k-read failed: fio ended"):
        device.measure(1, lambda _: None)


def test_pairs_are_decided_as_in_a_comparison() -> None:
    load = ProcessorLoad(1, 1, 4, "read")
    rounds = range(18)
    wobble = [1.001 if number % 2 else 0.999 for number in rounds]
    series = {
        "none": dict(zip(rounds, [1000.0] * 18, strict=True)),
        # For certain, but practically equal.
        "mq-deadline": {number: 990 * wobble[number] for number in rounds},
        "bfq": {number: 900 * wobble[number] for number in rounds},
        # 3 % less, of which a single test would be sure at 95 %, but not one of six.
        "kyber": {number: 970 * (1.055 if number % 2 else 0.95) for number in rounds},
    }
    uncorrected = difference(series, "kyber", "none")
    assert uncorrected is not None
    assert uncorrected.p_difference < 0.05
    machine = cast("MachineDescription", SimpleNamespace(kernel="6"))
    document = host_fidelity(CostMeasurement(machine, 18, {load: series}), load_machine("ordinary"))
    decided = {(pair.faster, pair.slower) for pair in document.pairs}
    assert decided == {("none", "bfq"), ("mq-deadline", "bfq"), ("kyber", "bfq")}


@pytest.mark.root
def test_this_machine_is_measured_and_compared() -> None:
    loads = [ProcessorLoad(1, 1, 4, "read"), ProcessorLoad(1, 8, 4, "read")]
    with memory_device(loads, seed=3) as device:
        measurement = device.measure(1, lambda _: None)
    assert list(measurement.observations) == loads
    for one in measurement.observations.values():
        assert one.iops > 0
        assert set(one.ratios) >= {"mq-deadline"}
        assert all(ratio > 0 for ratio, _ in one.ratios.values())
    document = host_fidelity(measurement, load_machine("ordinary"))
    assert {cell.load for cell in document.cells} == {load.name for load in loads}
    assert {cell.load: cell.fitted for cell in document.cells} == {"1x1-4k-read": True, "1x8-4k-read": False}
    for cell in document.cells:
        assert cell.ratio_low <= cell.ratio <= cell.ratio_high
    assert all(pair.ratio >= 1 for pair in document.pairs)
