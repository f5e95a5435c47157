"""Verdicts for classes of drives: which experiments count, and what follows from them."""

from __future__ import annotations

import itertools
import math

import pytest

from blklab.analysis.drives import fleet_of
from blklab.analysis.fleet import FleetAnalysis, analyse_fleet
from blklab.analysis.verdict import analyse
from blklab.errors import UsageError
from blklab.records.experiment import ExperimentRecord
from blklab.report.sentences.answer import basis_text, choice_reason_text
from blklab.report.sentences.fleet import fleet_remark_text
from blklab.spec.drive_classes import DriveClass, kind_of
from blklab.testing.experiments import make_experiment, make_spec, make_workload
from fleet_records import MODEL, make_fleet, on_drive


def _analysed(records: list[ExperimentRecord]) -> FleetAnalysis:
    return analyse_fleet(records, confidence=0.95, margin=0.02)


def test_the_best_of_a_class_and_what_a_new_drive_will_do() -> None:
    found = _analysed(make_fleet({"none": 0.0, "bfq": 0.15}))
    assert (found.verdict.status, found.verdict.choice) == ("best", "bfq")
    (pair,) = found.against("bfq", "random-read-4k-qd32")
    assert pair.mean.n == 6
    assert pair.mean.ratio == pytest.approx(math.exp(0.15), rel=0.03)
    assert pair.new_drive == "better"
    assert pair.new_low is not None
    assert pair.mean.ci_low is not None
    assert 1 < pair.new_low < pair.mean.ci_low
    assert pair.chance_better is not None
    assert pair.chance_better > 0.97
    assert len(found.drives) == 6
    assert len({drive.host for drive in found.drives}) == 3


def test_each_drive_has_the_ratio_of_its_own_report() -> None:
    records = make_fleet({"none": 0.0, "bfq": 0.15}, drives=3)
    (pair,) = _analysed(records).comparisons
    for record, own in zip(records, pair.drives, strict=True):
        expected = next(one for one in analyse(record).comparisons if one.metric == "iops").seen_from("bfq")
        assert (own.run_id, own.n) == (record.run_id, expected.n)
        assert own.ratio == pytest.approx(expected.ratio)
        assert own.ci_low == pytest.approx(expected.ci_low)
    mean = math.exp(sum(math.log(own.ratio) for own in pair.drives) / 3)
    assert pair.mean.ratio == pytest.approx(mean)


def test_a_pair_can_be_seen_from_both_sides() -> None:
    (pair,) = _analysed(make_fleet({"none": 0.0, "bfq": 0.15})).comparisons
    other = pair.seen_from(pair.mean.second)
    assert other.mean.first == pair.mean.second
    assert other.mean.ratio == pytest.approx(1 / pair.mean.ratio)
    assert {pair.new_drive, other.new_drive} == {"better", "worse"}
    assert other.new_low == pytest.approx(1 / (pair.new_high or 0))
    assert (other.chance_better or 0) + (pair.chance_better or 0) == pytest.approx(1)
    assert other.drives[0].ratio == pytest.approx(1 / pair.drives[0].ratio)
    assert pair.seen_from(pair.mean.first) is pair


def test_a_winner_on_average_may_lose_on_a_new_drive() -> None:
    found = _analysed(make_fleet({"none": 0.0, "bfq": 0.10}, drives=12, spread=0.05))
    assert found.verdict.choice == "bfq"
    (pair,) = found.against("bfq", "random-read-4k-qd32")
    assert pair.new_drive == "open"
    assert pair.new_low is not None
    assert pair.new_low < 1 / 1.02
    assert pair.spread == pytest.approx(0.05 * math.sqrt(2), rel=0.5)


def test_two_drives_decide_nothing() -> None:
    found = _analysed(make_fleet({"none": 0.0, "bfq": 0.3}, drives=2, spread=0.0))
    assert found.verdict.status == "undecided"
    assert "at least 3 drives are needed" in basis_text(found.verdict.basis)
    assert found.comparisons[0].new_low is None


def test_equals_share_the_first_place_and_the_usual_one_is_taken() -> None:
    found = _analysed(
        make_fleet({"none": 0.0, "mq-deadline": 0.0, "bfq": -0.3}, drives=16, spread=0.002, blocks=8)
    )
    assert (found.verdict.status, found.verdict.best) == ("equal", ["mq-deadline", "none"])
    assert found.verdict.choice == "mq-deadline"
    assert choice_reason_text(found.verdict.choice_reason) == "in force before on 16 of 16 drives"


def test_a_drive_counts_once_with_its_newest_run() -> None:
    records = make_fleet({"none": 0.0, "bfq": 0.15}, drives=4)
    again = on_drive(
        make_fleet({"none": 0.0, "bfq": -0.5}, drives=1)[0],
        2,
        run_id="20260202-0304-newer",
        created_at="2026-02-02T03:04:05+00:00",
    )
    for order in ([*records, again], [again, *reversed(records)]):
        found = _analysed(order)
        (pair,) = found.comparisons
        assert pair.mean.n == 4
        assert "20260202-0304-newer" in found.runs
        assert any("repeated later" in fleet_remark_text(remark) for remark in found.remarks)


def test_experiments_on_several_disks_or_still_running_are_left_out() -> None:
    records = make_fleet({"none": 0.0, "bfq": 0.15}, drives=5)
    disks = records[0].target.disks * 2
    records[0] = records[0].model_copy(
        update={"target": records[0].target.model_copy(update={"disks": disks})}
    )
    records[1] = records[1].model_copy(update={"state": "running"})
    found = _analysed(records)
    assert found.comparisons[0].mean.n == 3
    assert sum("left out" in fleet_remark_text(remark) for remark in found.remarks) == 2


def test_another_workload_under_the_same_name_is_left_out() -> None:
    old = make_fleet({"none": 0.0, "bfq": 0.15}, drives=4, workloads=[make_workload("work")])
    other = make_fleet({"none": 0.0, "bfq": 0.15}, drives=5, workloads=[make_workload("work", iodepth=1)])
    newer = on_drive(other[4], 4, created_at="2026-03-02T03:04:05+00:00")
    found = _analysed([*old, newer])
    assert found.comparisons[0].mean.n == 1
    assert any(
        "another workload under the same name" in fleet_remark_text(remark) for remark in found.remarks
    )


def test_workloads_of_different_runs_are_put_together() -> None:
    """A drive that was tested under one workload today and another one tomorrow counts under both."""
    effects = {"none": 0.0, "bfq": 0.15}
    reads = make_fleet(effects, drives=4, workloads=[make_workload("reads")])
    writes = [
        on_drive(record, number, run_id=f"20260103-0304-b{number:03d}")
        for number, record in enumerate(
            make_fleet(effects, drives=4, workloads=[make_workload("writes", reads=False)])
        )
    ]
    found = _analysed([*reads, *writes])
    assert sorted(found.workloads) == ["reads", "writes"]
    assert [one.mean.n for one in found.comparisons] == [4, 4]
    assert found.verdict.choice == "bfq"
    assert len(found.drives) == 4
    assert not found.remarks


def test_a_scheduler_that_few_drives_have_is_left_out() -> None:
    records = make_fleet({"none": 0.0, "bfq": 0.15}, drives=4)
    records += [
        on_drive(record, number + 4, run_id=f"20260103-0304-c{number:03d}")
        for number, record in enumerate(make_fleet({"none": 0.0, "bfq": 0.15, "kyber": 0.5}, drives=2))
    ]
    found = _analysed(records)
    assert list(found.labels) == ["bfq", "none"]
    assert "kyber left out: tested on 2 drives only" in map(fleet_remark_text, found.remarks)


def test_labels_of_ones_own_do_not_separate_schedulers() -> None:
    records = make_fleet({"bfq:slice_idle=0": 0.15, "none": 0.0}, drives=2)
    named = make_experiment(make_spec(("calm=bfq:slice_idle=0", "plain=none"), blocks=5))
    found = _analysed([*records, on_drive(named, 2)])
    assert list(found.labels) == ["bfq:slice_idle=0", "none"]
    assert found.comparisons[0].mean.n == 3


def test_a_control_that_differs_withholds_the_verdict() -> None:
    control = make_workload("cached-read", control=True)
    found = _analysed(make_fleet({"none": 0.0, "bfq": 0.15}, workloads=[make_workload("work"), control]))
    assert found.verdict.status == "withheld"
    assert found.verdict.choice is None


def test_differing_conditions_are_named() -> None:
    records = make_fleet({"none": 0.0, "bfq": 0.15}, drives=3)
    machine = records[0].machine.model_copy(update={"kernel": "6.12"})
    records[0] = records[0].model_copy(update={"machine": machine})
    assert any("2 kernels" in fleet_remark_text(remark) for remark in _analysed(records).remarks)


def test_no_experiment_gives_no_fleet() -> None:
    assert fleet_of([]).drives == []
    assert _analysed([]).verdict.status == "undecided"


def test_at_most_five_percent_of_equal_fleets_have_a_winner() -> None:
    """Forty fleets through the whole analysis; benches/verdicts/measure_fleets.py has a thousand."""
    winners = 0
    for fleet in range(40):
        records = []
        for drive, record in enumerate(make_fleet({"none": 0.0, "bfq": 0.0}, drives=3, spread=0.0, blocks=3)):
            spec = record.spec.model_copy(update={"seed": 100 * fleet + drive})
            records.append(on_drive(make_experiment(spec, block_noise=0.05), drive))
        winners += _analysed(records).verdict.status == "best"
    assert winners <= 6  # 5 % would exceed this once in a hundred


@pytest.mark.parametrize(
    ("name", "kind"),
    [("nvme0n1", "nvme"), ("sda", "scsi"), ("mmcblk0", "mmc"), ("vda", "virtio"), ("hdd-7200", "")],
)
def test_kinds(name: str, kind: str) -> None:
    assert kind_of(name) == kind


def test_classes() -> None:
    drive = {"name": "nvme0n1", "model": MODEL + "  ", "rotational": False}
    for include, given in itertools.chain(
        ((True, one) for one in ({"model": "EXAMPLE*"}, {"kind": "nvme"}, {"rotational": False}, {})),
        ((False, one) for one in ({"model": "example*"}, {"kind": "scsi"}, {"rotational": True})),
    ):
        assert DriveClass(**given).includes(**drive) is include  # type: ignore[arg-type]
    assert DriveClass(model="EXAMPLE*", kind="nvme", rotational=False).words == (
        "non-rotational nvme drives of model EXAMPLE*"
    )
    assert DriveClass(model="A/B *").slug == "A_B__"
    with pytest.raises(UsageError, match="no kind of drive"):
        DriveClass(kind="tape")
    with pytest.raises(UsageError, match="empty"):
        DriveClass(model=" ")
