"""The maker of experiments keeps its promises."""

from __future__ import annotations

import math

from report_cases import CASES

from blklab.analysis.metrics import METRICS
from blklab.analysis.values import metric_values
from blklab.records.experiment import ExperimentRecord
from blklab.spec.plan import Plan
from blklab.testing.experiments import (
    SchedulerBehaviour,
    bin_value_ns,
    make_experiment,
    make_spec,
    make_workload,
)


def test_deterministic_and_storable() -> None:
    record = CASES["decided"]()
    assert record == CASES["decided"]()
    assert ExperimentRecord.model_validate_json(record.model_dump_json()) == record


def test_follows_the_plan() -> None:
    record = make_experiment(blocks_made=3)
    plan = Plan(record.spec)
    assert [sample.cell for sample in record.samples] == [
        cell.key for number in range(3) for cell in plan.block(number)
    ]
    assert record.complete_blocks == 3


def test_speeds_and_drift_are_as_asked() -> None:
    spec = make_spec(["none", "bfq"], blocks=40)
    record = make_experiment(spec, behaviours={"bfq": SchedulerBehaviour(0.8)}, drift=math.log(2))
    values = metric_values(record.samples, spec.workloads[0], METRICS["iops"])
    ratios = [values["bfq"][block] / values["none"][block] for block in range(40)]
    assert abs(sum(ratios) / 40 - 0.8) < 0.01
    assert 1.8 < values["none"][39] / values["none"][0] < 2.2


def test_failures() -> None:
    workload = make_workload("odd")
    record = make_experiment(make_spec(workloads=[workload]), failures=[(2, "odd", "kyber")])
    failed = [sample for sample in record.samples if sample.status == "failed"]
    assert [(sample.cell.block, sample.cell.scheduler) for sample in failed] == [(2, "kyber")]
    assert failed[0].error


def test_bins_are_fios() -> None:
    assert [bin_value_ns(value) for value in (5, 127, 128, 129, 130, 255, 256, 1_000_000)] == [
        5,
        127,
        129,
        129,
        131,
        255,
        258,
        1_003_520,
    ]
