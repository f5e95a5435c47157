"""Rare arrangements of models are named, and blocks that merely scatter are not."""

from __future__ import annotations

import numpy as np
import pytest

from blklab.analysis.metrics import metric_named
from blklab.analysis.questions import Question
from blklab.analysis.rare_arrangements import ENOUGH_BLOCKS, rare_arrangements, unsettled_arrangements
from blklab.quantities.formatting import TIMES
from blklab.records.experiment import ExperimentRecord
from blklab.report.sentences.doubts import doubt_text
from blklab.testing.experiments import make_experiment, make_spec

MARGIN = 0.02


def _question(first: list[float], second: list[float]) -> Question:
    return Question("load", metric_named("iops"), {"a": dict(enumerate(first)), "b": dict(enumerate(second))})


def _on(target: str, arrangement: str = "drawn") -> ExperimentRecord:
    record = make_experiment(make_spec(("a", "b"), blocks=3))
    return record.model_copy(
        update={
            "target": record.target.model_copy(update={"target": target}),
            "spec": record.spec.model_copy(update={"arrangement": arrangement}),
        }
    )


def test_one_block_unlike_the_others_is_named_with_its_ratio() -> None:
    found = rare_arrangements(_question([100.0] * 10, [99.0] * 9 + [40.0]), MARGIN)
    assert found is not None
    assert found.rare == [pytest.approx(2.5)]
    assert doubt_text(found).startswith(
        f"load: a against b by IOPS is +1.0 % in most arrangements of the model, but 2.50 {TIMES} in 1 of 10."
    )


def test_blocks_that_all_schedulers_share_are_not_rare() -> None:
    values = [100.0] * 9 + [40.0]
    assert rare_arrangements(_question(values, values), MARGIN) is None


def test_differences_within_the_margin_do_not_matter() -> None:
    assert rare_arrangements(_question([100.0] * 10, [100.0] * 9 + [99.0]), MARGIN) is None


def test_scatter_is_seldom_taken_for_a_rare_arrangement(seed: int) -> None:
    generator = np.random.default_rng(seed)
    found = [
        rare_arrangements(_question([100.0] * 10, list(100 * np.exp(generator.normal(0, 0.1, 10)))), MARGIN)
        for _ in range(200)
    ]
    assert sum(one is not None for one in found) <= 8


def test_only_models_whose_arrangements_are_drawn_have_rare_ones() -> None:
    questions = [_question([100.0] * 10, [99.0] * 9 + [40.0])]
    assert len(unsettled_arrangements(_on("sim:hdd-7200"), questions)) == 1
    assert unsettled_arrangements(_on("sim:hdd-7200", "fixed"), questions) == []
    assert unsettled_arrangements(_on("loop:1g"), questions) == []


def test_enough_blocks_need_no_warning() -> None:
    many = _question([100.0] * ENOUGH_BLOCKS, [99.0] * (ENOUGH_BLOCKS - 1) + [40.0])
    assert unsettled_arrangements(_on("sim:hdd-7200"), [many]) == []
