"""The plan before the first run, and budgets that cannot suffice."""

from __future__ import annotations

import pytest

from blklab.experiment.outlook import outlook_of, shortage_of_rounds
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.slots import SlotDecision
from blklab.testing.experiments import make_spec, make_workload

SECOND_NS = 1_000_000_000


def _spec(budget_s: int, **changes: object) -> ExperimentSpec:
    spec = make_spec(["none", "mq-deadline", "kyber", "bfq"], [make_workload("reads"), make_workload("log")])
    settled = {"stopping": "settled", "blocks": None, "budget_ns": budget_s * SECOND_NS}
    return spec.model_copy(update={**settled, "runtime_ns": 5 * SECOND_NS, **changes})


def test_a_short_budget_is_seen_before_it_is_spent() -> None:
    outlook = outlook_of(_spec(90), ["reads", "log"], in_real_time=True)
    assert (outlook.schedulers, outlook.workloads, outlook.ends_when_settled) == (4, 2, True)
    assert outlook.shortage is not None
    assert outlook.shortage.blocks == 2
    assert outlook.shortage.needed > 2
    enough = outlook_of(
        _spec(outlook.shortage.enough_ns // SECOND_NS + 1), ["reads", "log"], in_real_time=True
    )
    assert enough.shortage is None


@pytest.mark.parametrize("in_blocks", [[], ["log"]])
def test_switched_workloads_have_their_part_of_the_budget(in_blocks: list[str]) -> None:
    shortage = outlook_of(_spec(90), in_blocks, in_real_time=True).shortage
    assert (shortage is not None) == bool(in_blocks)


def test_models_and_fixed_numbers_have_no_shortage() -> None:
    assert outlook_of(_spec(1), ["reads", "log"], in_real_time=False).shortage is None
    fixed = _spec(1, stopping="fixed", blocks=3, budget_ns=None)
    outlook = outlook_of(fixed, ["reads", "log"], in_real_time=True)
    assert (outlook.shortage, outlook.blocks, outlook.ends_when_settled) == (None, 3, False)


def test_a_number_of_repetitions_has_a_time_on_a_disk_only() -> None:
    fixed = _spec(1, stopping="fixed", blocks=3, budget_ns=None)
    longest_ns = outlook_of(fixed, [], in_real_time=True).longest_ns
    assert longest_ns is not None
    # Three repetitions of four schedulers and two loads of 5 s.
    assert 3 * 4 * 2 * 5 * SECOND_NS < longest_ns < 2 * 3 * 4 * 2 * 5 * SECOND_NS
    assert outlook_of(fixed, [], in_real_time=False).longest_ns is None
    assert outlook_of(_spec(90), [], in_real_time=True).longest_ns is None


def test_what_the_pilots_leave_may_be_too_little_for_an_answer() -> None:
    slots = {
        "reads": SlotDecision(slot_ns=SECOND_NS, reason="a pilot"),
        "log": SlotDecision(reason="a reason for runs"),
    }
    spec = _spec(40, slots=slots)
    shortage = shortage_of_rounds(spec, 24 * SECOND_NS)
    assert shortage is not None
    assert (shortage.budget_ns, shortage.blocks) == (40 * SECOND_NS, 2)
    assert shortage.needed > 2
    longer = spec.model_copy(update={"budget_ns": shortage.enough_ns})
    assert shortage_of_rounds(longer, shortage.enough_ns - 16 * SECOND_NS) is None
    assert shortage_of_rounds(spec.model_copy(update={"slots": {}}), 0) is None
    assert shortage_of_rounds(_spec(1, stopping="fixed", blocks=3, budget_ns=None, slots=slots), 0) is None
