"""Two stored experiments compared: ratios, shifts, models with the same seed, set-ups."""

from __future__ import annotations

import math

import numpy as np
import pytest

from blklab.analysis.between_runs import Change, RunsComparison, compare_runs
from blklab.analysis.statistics.independent import independent_difference_of_logs
from blklab.analysis.statistics.multiplicity import holm
from blklab.records.experiment import ExperimentRecord
from blklab.records.set_up import set_up_differences
from blklab.report.sentences.changes import change_remark_text
from blklab.testing.experiments import (
    SchedulerBehaviour,
    WorkloadBehaviour,
    make_experiment,
    make_spec,
    make_target,
    make_workload,
)

SCHEDULERS = ("none", "mq-deadline", "bfq")


def _run(
    seed: int, speeds: dict[str, float] | None = None, *, backend: str = "host", level: float = 1.0
) -> ExperimentRecord:
    workloads = (make_workload("reads"), make_workload("cached", control=True))
    spec = make_spec(SCHEDULERS, workloads, seed=seed, blocks=8)
    return make_experiment(
        spec,
        behaviours={name: SchedulerBehaviour(speed=speed) for name, speed in (speeds or {}).items()},
        workloads={
            "reads": WorkloadBehaviour(ios_per_second=12_000 * level),
            "cached": WorkloadBehaviour(schedulers={name: SchedulerBehaviour() for name in SCHEDULERS}),
        },
        target=make_target(spec, backend=backend),
        block_noise=0.01,
    )


def _compared(first: ExperimentRecord, second: ExperimentRecord) -> RunsComparison:
    return compare_runs(first, second, confidence=0.95, margin=0.02)


def _one(changes: list[Change], scheduler: str, metric: str = "iops", workload: str = "reads") -> Change:
    (found,) = (
        one for one in changes if (one.scheduler, one.metric, one.workload) == (scheduler, metric, workload)
    )
    return found


def test_the_one_that_got_slower_is_named() -> None:
    found = _compared(_run(1), _run(2, {"bfq": 0.8}))
    assert found.status == "slower"
    slower = _one(list(found.changes), "bfq")
    assert slower.outcome == "worse"
    assert slower.ci_low is not None
    assert slower.ci_high is not None
    assert slower.ci_low < 0.8 < slower.ci_high
    latency = _one(list(found.changes), "bfq", "latency_p50")
    assert latency.outcome == "worse"
    assert latency.ratio > 1.2
    assert _one(list(found.changes), "none").outcome in ("equal", "undecided")
    assert {one.scheduler for one in found.judged} == set(SCHEDULERS)
    assert not any(one.control for one in found.judged)


def test_a_drift_of_the_disk_changes_all_and_shifts_none() -> None:
    found = _compared(_run(1), _run(2, level=0.7))
    assert {one.outcome for one in found.judged} == {"worse"}
    shifts = [one for one in found.shifts if one.workload == "reads"]
    assert {one.against for one in shifts} == {"mq-deadline"}
    assert all(one.ratio == pytest.approx(1, abs=0.03) for one in shifts)
    assert "worse" not in {one.outcome for one in shifts}
    one_slower = _compared(_run(1), _run(2, {"bfq": 0.8}, level=0.7))
    assert _one(list(one_slower.shifts), "bfq").outcome == "worse"
    assert _one(list(one_slower.shifts), "none").outcome != "worse"


def test_models_with_the_same_seed_are_compared_block_by_block() -> None:
    first = _run(1, backend="sim")
    same = _compared(first, first.model_copy(update={"run_id": "again"}))
    assert same.paired
    assert same.status == "same"
    assert {one.ratio for one in same.changes} == {1.0}
    assert not same.shifts
    assert _compared(first, _run(1, {"bfq": 0.97}, backend="sim")).status == "slower"
    assert not _compared(first, _run(2, backend="sim")).paired
    assert not _compared(_run(1), _run(1)).paired


def test_a_control_that_changed_is_a_warning() -> None:
    second = _run(2)
    samples = [
        sample
        if sample.cell.workload == "reads"
        else sample.model_copy(
            update={
                "jobs": [
                    job.model_copy(
                        update={"runtime_ns": job.runtime_ns * 2, "directions": _half(job.directions)}
                    )
                    for job in sample.jobs
                ]
            }
        )
        for sample in second.samples
    ]
    found = _compared(_run(1), second.model_copy(update={"samples": samples}))
    assert any("the control cached changed as well" in change_remark_text(remark) for remark in found.remarks)


def _half(directions: list) -> list:  # type: ignore[type-arg]
    return [one.model_copy(update={"runtime_ns": one.runtime_ns * 2}) for one in directions]


def test_only_what_both_have_is_compared() -> None:
    first = make_experiment(make_spec(("none", "bfq"), [make_workload("a"), make_workload("b")]))
    second = make_experiment(
        make_spec(("bfq", "kyber"), [make_workload("a"), make_workload("b", iodepth=1)], seed=2)
    )
    found = _compared(first, second)
    assert {(one.workload, one.scheduler) for one in found.changes} == {("a", "bfq")}
    assert list(map(change_remark_text, found.remarks)) == [
        "only the first has the scheduler none",
        "only the second has the scheduler kyber",
        "b differ in their text, and are not compared",
    ]
    nothing = _compared(first, make_experiment(make_spec(("kyber",), [make_workload("c")])))
    assert nothing.status == "undecided"
    assert not nothing.changes


def test_guests_with_one_kernel_each_compare_their_kernels() -> None:
    first, second = (
        make_experiment(make_spec((f"bfq@{kernel}", f"none@{kernel}"), seed=seed))
        for seed, kernel in ((1, "stock"), (2, "patched"))
    )
    found = _compared(first, second)
    assert {one.scheduler for one in found.changes} == {"bfq", "none"}
    assert any((one.name, one.second) == ("guest kernel", "patched") for one in found.set_up)
    both = make_experiment(make_spec(("bfq@stock", "bfq@patched")))
    assert {one.scheduler for one in _compared(both, both).changes} == {"bfq@stock", "bfq@patched"}


def test_differences_of_the_set_up_are_named() -> None:
    first, second = _run(1), _run(2)
    disk = second.target.disks[0]
    disk = disk.model_copy(update={"model": "OTHER", "queue": {**disk.queue, "nr_requests": "64"}})
    second = second.model_copy(
        update={
            "machine": second.machine.model_copy(
                update={"kernel": "6.12", "details": {**second.machine.details, "load": "3.0"}}
            ),
            "target": second.target.model_copy(update={"disks": [disk]}),
            "samples": [
                sample.model_copy(update={"settings": {**sample.settings, "vda/wbt_lat_usec": "1"}})
                for sample in second.samples
            ],
        }
    )
    found = {one.name: (one.first, one.second) for one in set_up_differences(first, second)}
    assert found["kernel"] == ("6.1.0-21-amd64", "6.12")
    assert found["disk: nr_requests"] == ("256", "64")
    assert found["disk: model"] == ("EXAMPLE HDD 4000", "OTHER")
    assert found["none: wbt_lat_usec"] == ("75000", "1")
    assert found["seed"] == ("1", "2")
    assert not any("load" in name for name in found)
    assert set_up_differences(first, first) == []


def test_claims_are_as_rare_as_stated() -> None:
    """1,000 pairs of equal experiments with six blocks, whose schedulers share the level of a block."""
    generator = np.random.default_rng(20261123)
    false, held = 0, 0
    for _ in range(1000):
        series = []
        for _ in range(2):
            level = generator.normal(0, 0.02, 6)
            series.append(
                {
                    name: {block: math.exp(level[block] + generator.normal(0, 0.01)) for block in range(6)}
                    for name in SCHEDULERS
                }
            )
        found = [
            independent_difference_of_logs(series, name, (False, False), margin=0.02) for name in SCHEDULERS
        ]
        differences = [one for one in found if one is not None]
        false += min(holm([one.p_difference for one in differences])) < 0.05
        low, high = differences[0].log_interval(0.95) or (0.0, 0.0)
        held += low <= 0 <= high
    assert false <= 71  # 5 % would exceed this once in a thousand
    assert 0.93 <= held / 1000 <= 0.97
