"""The schedulers that a comparison takes: today's by default, others by name or as a group."""

from __future__ import annotations

import pytest

from blklab.errors import UsageError
from blklab.experiment.pipeline import planned_commands
from blklab.spec.request import SpecValues, build_specs
from blklab.spec.schedulers import CURRENT_SCHEDULERS, parse_scheduler_choices, with_groups_expanded

OFFERED = ["none", "noop", "mq-deadline", "cfq"]


def _compared(*schedulers: str) -> list[str]:
    values = SpecValues(targets=["sim:hdd-7200"], workloads=["many-readers"])
    if schedulers:
        values = values.overlaid_by(SpecValues(schedulers=list(schedulers)))
    (spec,) = build_specs(values)
    settled, _ = planned_commands(spec, blocks=1)
    return [choice.label for choice in settled.schedulers]


def test_a_model_compares_todays_schedulers() -> None:
    assert sorted(_compared()) == sorted(CURRENT_SCHEDULERS)


def test_all_and_history_are_groups() -> None:
    everything = _compared("all")
    older = _compared("history")
    assert {"cfq", "deadline", "noop"} <= set(older)
    assert not set(older) & set(CURRENT_SCHEDULERS)
    assert sorted(everything) == sorted([*CURRENT_SCHEDULERS, *older])
    assert _compared("history,bfq") == [*older, "bfq"]


def test_a_group_repeats_no_scheduler() -> None:
    choices = with_groups_expanded(parse_scheduler_choices("cfq,all"), OFFERED)
    assert [choice.label for choice in choices] == ["cfq", "none", "noop", "mq-deadline"]


def test_a_target_without_older_schedulers_says_so() -> None:
    with pytest.raises(UsageError, match="no schedulers of older kernels"):
        with_groups_expanded(parse_scheduler_choices("history"), ["none", "bfq"])
