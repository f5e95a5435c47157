"""The one rule: a change is recommended only if it is shown to be worth it."""

from __future__ import annotations

from blklab.analysis.overall import GoodEnough
from blklab.analysis.recommendation import DEFAULT_GOOD_ENOUGH, Recommendation
from blklab.analysis.verdict import analyse
from blklab.records.experiment import ExperimentRecord
from blklab.spec.schedulers import parse_scheduler_choice
from blklab.testing.experiments import (
    SchedulerBehaviour,
    WorkloadBehaviour,
    make_experiment,
    make_spec,
    make_target,
    make_workload,
)

OWN = "mq-deadline"
"""In force on the disks of these tests."""
QUIET_NOISE = 0.002


def _advised(record: ExperimentRecord) -> Recommendation:
    advised = analyse(record).verdict.recommendation
    assert advised is not None
    return advised


def _measured(
    speeds: dict[str, float], *, noise: float = QUIET_NOISE, blocks: int = 8, limit: float | None = None
) -> ExperimentRecord:
    spec = make_spec(list(speeds), blocks=blocks).model_copy(update={"good_enough": limit})
    behaviours = {label: SchedulerBehaviour(speed, noise) for label, speed in speeds.items()}
    return make_experiment(spec, behaviours=behaviours, block_noise=0.001)


def test_the_best_is_used_if_another_is_in_force() -> None:
    advised = _advised(_measured({OWN: 1.0, "none": 1.2, "bfq": 0.8}))
    assert (advised.action, advised.reason, advised.scheduler) == ("use", "best", "none")
    assert (advised.in_force, advised.loss) == (OWN, 0.0)


def test_the_best_is_kept_if_it_is_in_force() -> None:
    advised = _advised(_measured({OWN: 1.2, "none": 1.0, "bfq": 0.8}))
    assert (advised.action, advised.reason, advised.scheduler) == ("keep", "best", OWN)


def test_of_equals_the_one_in_force_is_kept() -> None:
    advised = _advised(_measured({OWN: 1.0, "none": 1.0, "bfq": 0.8}))
    assert (advised.action, advised.reason, advised.scheduler, advised.loss) == ("keep", "equal", OWN, 0.02)


def test_one_of_the_equals_is_used_if_the_one_in_force_is_not_among_them() -> None:
    advised = _advised(_measured({OWN: 0.8, "none": 1.0, "kyber": 1.0}))
    assert (advised.action, advised.reason) == ("use", "equal")
    assert advised.scheduler in ("none", "kyber")


def test_a_lead_that_is_not_shown_is_no_reason_to_change() -> None:
    """Eight noisy runs, with another 1 % ahead: no headline may tell anybody to take it."""
    advised = _advised(_measured({OWN: 1.0, "kyber": 1.01, "none": 0.99, "bfq": 0.98}, noise=0.1, blocks=4))
    assert advised.action in ("keep", "unknown")
    assert not advised.is_shown
    assert advised.scheduler in (OWN, None)


def test_equal_schedulers_move_hardly_anybody_away_from_the_one_in_force() -> None:
    """No more often than the confidence allows: 5 % of experiments may be wrong."""
    moved = 0
    for seed in range(30):
        spec = make_spec([OWN, "kyber", "none"], blocks=6, seed=seed)
        noisy = {label: SchedulerBehaviour(1.0, 0.06) for label in (OWN, "kyber", "none")}
        moved += _advised(make_experiment(spec, behaviours=noisy)).action == "use"
    assert moved <= 4


def test_better_than_the_one_in_force_is_enough_while_the_first_place_is_open() -> None:
    advised = _advised(_measured({OWN: 0.6, "none": 1.0, "kyber": 1.03}, noise=0.06))
    verdict = analyse(_measured({OWN: 0.6, "none": 1.0, "kyber": 1.03}, noise=0.06)).verdict
    assert verdict.status == "undecided"
    assert (advised.action, advised.reason) == ("use", "better")
    assert advised.scheduler in ("none", "kyber")
    assert verdict.choice == advised.scheduler


def test_the_one_in_force_stays_if_it_is_good_enough() -> None:
    record = _measured({OWN: 1.0, "none": 1.01, "bfq": 0.5}, noise=0.02)
    verdict = analyse(record).verdict
    advised = _advised(record)
    assert verdict.status == "undecided"
    assert (advised.action, advised.reason, advised.scheduler) == ("keep", "good_enough", OWN)
    assert advised.loss is not None and advised.loss <= DEFAULT_GOOD_ENOUGH == advised.limit
    assert (verdict.choice, verdict.choice_reason) == (OWN, GoodEnough())
    strict = _advised(_measured({OWN: 1.0, "none": 1.01, "bfq": 0.5}, noise=0.02, limit=0.001))
    assert (strict.action, strict.reason, strict.is_shown) == ("keep", "not_shown", False)


def test_nothing_is_known_from_too_few_samples() -> None:
    advised = _advised(_measured({OWN: 1.0, "none": 1.3}, blocks=1))
    assert (advised.action, advised.reason, advised.scheduler) == ("unknown", "too_few", None)


def test_a_scheduler_without_figures_leaves_the_answer_open() -> None:
    spec = make_spec([OWN, "none"], [make_workload("reads")], blocks=1)
    record = make_experiment(spec, failures=[(0, "reads", "none")])
    assert (_advised(record).action, _advised(record).reason) == ("unknown", "no_figures")


def test_it_depends_where_each_workload_has_another_winner() -> None:
    other = WorkloadBehaviour(schedulers={OWN: SchedulerBehaviour(0.5), "none": SchedulerBehaviour(1.0)})
    record = make_experiment(
        make_spec([OWN, "none"], [make_workload("reads"), make_workload("writes")], blocks=8),
        behaviours={"none": SchedulerBehaviour(0.5)},
        workloads={"writes": other},
    )
    assert (_advised(record).action, _advised(record).scheduler) == ("depends", None)


def test_a_scheduler_that_loses_elsewhere_is_no_better_than_the_one_in_force() -> None:
    """It is far ahead in one workload and behind in the other: no reason to change."""
    behind = WorkloadBehaviour(schedulers={OWN: SchedulerBehaviour(1.0), "none": SchedulerBehaviour(0.7)})
    record = make_experiment(
        make_spec([OWN, "none", "bfq"], [make_workload("reads"), make_workload("writes")], blocks=8),
        behaviours={"none": SchedulerBehaviour(2.0), "bfq": SchedulerBehaviour(0.9)},
        workloads={"writes": behind},
    )
    assert _advised(record).action == "depends"


def test_a_differing_control_withholds_it() -> None:
    record = make_experiment(
        make_spec([OWN, "none"], [make_workload("reads"), make_workload("cached", control=True)], blocks=8),
        workloads={"cached": WorkloadBehaviour(schedulers={"none": SchedulerBehaviour(0.7)})},
    )
    advised = _advised(record)
    assert (advised.action, advised.reason, advised.scheduler) == ("withheld", "control", None)


def test_a_disk_whose_own_scheduler_was_left_out_gets_a_finding() -> None:
    advised = _advised(_measured({"none": 1.2, "bfq": 1.0}))
    assert (advised.action, advised.scheduler, advised.in_force) == ("choose", "none", None)
    assert advised.is_shown


def test_models_and_kernels_have_findings_of_their_own() -> None:
    spec = make_spec([OWN, "none"], blocks=8, target="sim:ssd-sata")
    model = _advised(make_experiment(spec, target=make_target(spec, backend="sim")))
    assert (model.subject, model.action, model.in_force) == ("model", "choose", None)
    kernels = [parse_scheduler_choice(f"{OWN}@{name}") for name in ("stock", "mine")]
    under = make_spec([OWN, "none"], blocks=8, target="uml:ssd-sata").with_schedulers(kernels)
    patched = _advised(make_experiment(under, target=make_target(under, backend="uml")))
    assert (patched.subject, patched.action, patched.reason) == ("kernels", "choose", "equal")
