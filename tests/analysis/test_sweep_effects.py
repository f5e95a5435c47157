"""Effects of sweeps whose truth is known."""

from __future__ import annotations

from typing import Any

import pytest

from blklab.analysis.sweep_effects import SweepFindings
from blklab.analysis.verdict import analyse
from blklab.records.experiment import ExperimentRecord
from blklab.report.sentences.sweeps import sweep_note_text
from blklab.testing.experiments import SchedulerBehaviour, make_experiment, make_spec, make_workload

DEFAULTS = {"slice_idle": "8", "low_latency": "1", "max_budget": "0"}


def _record(
    sweeps: list[str],
    effects: dict[frozenset[str], float],
    *,
    noise: float = 0.01,
    blocks: int = 8,
    seed: int = 1,
    failures: list[tuple[int, str, str]] | None = None,
) -> ExperimentRecord:
    """A cell's speed is the product of all effects whose settings it has."""
    spec = make_spec((), blocks=blocks, seed=seed, sweeps=sweeps, sweep_defaults=DEFAULTS)
    behaviours = {}
    for choice in spec.schedulers:
        settings = {f"{name}={value}" for name, value in choice.tunables.items()}
        speed = 1.0
        for needed, factor in effects.items():
            if needed <= settings:
                speed *= factor
        behaviours[choice.label] = SchedulerBehaviour(speed, noise)
    return make_experiment(spec, behaviours=behaviours, failures=failures or [])


def _findings(record: ExperimentRecord) -> list[SweepFindings]:
    return analyse(record).sweeps


def _ratios(found: SweepFindings) -> dict[str, tuple[Any, str]]:
    return {effect.name: (effect.ratio, effect.outcome) for effect in found.effects}


def test_main_effects_of_one_tunable() -> None:
    record = _record(["bfq:slice_idle=0,2,20"], {frozenset({"slice_idle=0"}): 1.3})
    (found,) = _findings(record)
    ratios = _ratios(found)
    assert ratios["slice_idle=0"] == (pytest.approx(1.3, rel=0.03), "better")
    assert ratios["slice_idle=2"][0] == pytest.approx(1, abs=0.02)
    assert [effect.kind for effect in found.effects] == ["main"] * 3


def test_effects_that_multiply_do_not_interact() -> None:
    record = _record(
        ["bfq:slice_idle=0:low_latency=0"],
        {frozenset({"slice_idle=0"}): 1.3, frozenset({"low_latency=0"}): 0.8},
        noise=0.003,
    )
    ratios = _ratios(_findings(record)[0])
    assert ratios["slice_idle=0"] == (pytest.approx(1.3, rel=0.01), "better")
    assert ratios["low_latency=0"] == (pytest.approx(0.8, rel=0.01), "worse")
    assert ratios["slice_idle=0 with low_latency=0"] == (pytest.approx(1, abs=0.01), "equal")


def test_an_interaction_is_found_and_main_effects_are_means_over_the_other_tunable() -> None:
    both = frozenset({"slice_idle=0", "low_latency=0"})
    ratios = _ratios(_findings(_record(["bfq:slice_idle=0:low_latency=0"], {both: 1.44}, noise=0.003))[0])
    assert ratios["slice_idle=0 with low_latency=0"] == (pytest.approx(1.44, rel=0.02), "better")
    assert ratios["slice_idle=0"] == (pytest.approx(1.2, rel=0.01), "better")
    assert ratios["low_latency=0"] == (pytest.approx(1.2, rel=0.01), "better")


def test_three_tunables_have_three_pairs_and_say_what_is_left_out() -> None:
    (found,) = _findings(_record(["bfq:slice_idle=0:low_latency=0:max_budget=100"], {}))
    assert [effect.kind for effect in found.effects] == ["main"] * 3 + ["interaction"] * 3
    assert "interactions of more than two tunables are not stated" in map(sweep_note_text, found.notes)


def test_a_block_that_lacks_a_cell_does_not_count() -> None:
    failures = [(0, "random-read-4k-qd32", "bfq"), (4, "random-read-4k-qd32", "bfq:slice_idle=0")]
    (found,) = _findings(_record(["bfq:slice_idle=0"], {}, failures=failures))
    assert [effect.n for effect in found.effects] == [6]


def test_no_complete_block_is_said() -> None:
    failures = [(block, "random-read-4k-qd32", "bfq") for block in range(8)]
    (found,) = _findings(_record(["bfq:slice_idle=0"], {}, failures=failures))
    assert found.effects == []
    assert "random-read-4k-qd32: no block has a figure for every combination" in map(
        sweep_note_text, found.notes
    )


def test_lower_is_better_where_it_is() -> None:
    spec = make_spec(
        (), [make_workload("w", decide_by="latency_p99")], blocks=8, sweeps=["bfq:slice_idle=0"],
        sweep_defaults=DEFAULTS,
    )  # fmt: skip
    record = make_experiment(spec, behaviours={"bfq:slice_idle=0": SchedulerBehaviour(2.0)})
    (effect,) = _findings(record)[0].effects
    assert effect.ratio < 1
    assert effect.outcome == "better"


def test_nothing_is_claimed_where_nothing_is() -> None:
    """Sixteen cells with a noisy machine's noise, 60 times: a claim in at most 5 %, plus sampling error."""
    wrong = 0
    for seed in range(60):
        record = _record(["bfq:slice_idle=0,2,20:low_latency=0"], {}, noise=0.1, blocks=6, seed=seed)
        effects = _findings(record)[0].effects
        wrong += any(effect.outcome in ("better", "worse") for effect in effects)
    assert wrong <= 3 + 3 * 1.7  # 5 % and three binomial standard deviations


def test_intervals_hold_the_truth() -> None:
    held = total = 0
    for seed in range(60):
        record = _record(["bfq:slice_idle=0,2"], {frozenset({"slice_idle=0"}): 1.1}, noise=0.05, seed=seed)
        for effect in _findings(record)[0].effects:
            truth = 1.1 if effect.name == "slice_idle=0" else 1.0
            assert effect.ci_low is not None and effect.ci_high is not None
            held += effect.ci_low <= truth <= effect.ci_high
            total += 1
    assert held / total >= 0.95 - 3 * (0.95 * 0.05 / total) ** 0.5
