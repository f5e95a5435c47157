"""Racing: the next runs, the schedulers that leave, and the end."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from blklab.analysis.comparison import compare_all
from blklab.analysis.designs import design_of
from blklab.analysis.metrics import metric_named
from blklab.analysis.questions import Question
from blklab.analysis.values import values_begun
from blklab.experiment.racing import FEWEST_BEFORE_GIVING_UP, Race, Standings
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.plan import Plan
from blklab.spec.workloads import Workload
from blklab.testing.experiments import make_spec, make_workload

Figure = Callable[[str, str, int, int], float | None]
"""(workload, scheduler, block, position) → value."""


def _spec(
    labels: Sequence[str], workloads: Sequence[Workload] = (), *, blocks: int = 18, seed: int = 1
) -> ExperimentSpec:
    spec = make_spec([f"{label}=none" for label in labels], workloads, blocks=None, seed=seed)
    return spec.model_copy(update={"stopping": "settled", "budget_blocks": blocks})


def _race(spec: ExperimentSpec) -> Race:
    return Race(design_of(spec), values_begun(spec, None), leaving=not spec.sweeps)


def _run(spec: ExperimentSpec, figure: Figure) -> tuple[list[Standings], list[tuple[int, str, str]]]:
    """Runs a race; returns the standings before each block, and the runs made."""
    race, plan = _race(spec), Plan(spec)
    history: list[Standings] = []
    runs: list[tuple[int, str, str]] = []
    assert spec.budget_blocks is not None
    for number in range(spec.budget_blocks):
        history.append(race.standings(spec.budget_blocks - number))
        if history[-1].over:
            break
        for cell in plan.block(number):
            name, label = cell.workload.name, cell.scheduler.label
            if label in history[-1].running[name]:
                race.add_value(name, label, number, figure(name, label, number, cell.key.position))
                runs.append((number, name, label))
    return history, runs


def _steady(speeds: dict[str, float], deviation: float = 0.01, seed: int = 5) -> Figure:
    def figure(workload: str, label: str, block: int, position: int) -> float:
        noise = np.random.default_rng([seed, block, ord(label), len(workload)]).normal(0, deviation)
        return 1000 * speeds[label] * math.exp(noise)

    return figure


def test_clear_losers_leave_and_the_rest_goes_on() -> None:
    history, runs = _run(_spec("abc"), _steady({"a": 1.0, "b": 0.97, "c": 0.5}, 0.02))
    blocks = {label: 1 + max(block for block, _, who in runs if who == label) for label in "abc"}
    assert blocks["c"] < blocks["a"] == blocks["b"]
    assert blocks["c"] >= 4
    assert history[-1].over
    assert not history[-1].given_up


def test_a_settled_workload_stops_while_another_goes_on() -> None:
    spec = _spec("ab", [make_workload("clear"), make_workload("open")])

    def figure(workload: str, label: str, block: int, position: int) -> float:
        speeds = {"a": 1.0, "b": 0.6 if workload == "clear" else 0.955}
        return _steady(speeds, 0.02)(workload, label, block, position) or 0.0

    history, runs = _run(spec, figure)
    last = {name: max(block for block, workload, _ in runs if workload == name) for name in ("clear", "open")}
    assert last["clear"] < last["open"]
    still_open = [question.workload for question in history[last["clear"] + 1].open]
    assert still_open == ["open"]
    assert history[last["clear"] + 1].running["clear"] == frozenset()


def test_controls_run_as_long_as_anything_is_open() -> None:
    spec = _spec("ab", [make_workload("reads"), make_workload("cached", control=True)])
    _, runs = _run(spec, _steady({"a": 1.0, "b": 0.9}))
    count = {name: sum(1 for _, workload, _ in runs if workload == name) for name in ("reads", "cached")}
    assert count["reads"] == count["cached"] > 0


def test_controls_alone_are_settled_like_others() -> None:
    history, _ = _run(_spec("ab", [make_workload("cached", control=True)]), _steady({"a": 1, "b": 0.5}))
    assert history[-1].over


def test_what_is_not_worth_the_budget_is_given_up() -> None:
    history, runs = _run(_spec("ab"), _steady({"a": 1.0, "b": 1.0}, 0.3))
    assert history[-1].over
    assert history[-1].given_up == ["random-read-4k-qd32"]
    assert 1 + max(block for block, _, _ in runs) == FEWEST_BEFORE_GIVING_UP
    # With a budget without an end nothing is hopeless.
    race = _race(_spec("ab"))
    for block, _, label in runs:
        race.add_value(
            "random-read-4k-qd32", label, block, _steady({"a": 1, "b": 1}, 0.3)("x", label, block, 0)
        )
    assert not race.standings(None).over


def test_open_questions_are_told() -> None:
    history, _ = _run(_spec("ab", blocks=6), _steady({"a": 1.0, "b": 0.93}, 0.05))
    question = history[5].open[0]
    assert (question.workload, question.candidates) == ("random-read-4k-qd32", ["a", "b"])
    assert question.more_blocks is not None
    assert question.more_blocks > 0


def test_beaten_by_one_is_out_whoever_leads_later() -> None:
    """b beats c and c leaves; then a turns out to be better than b. c must not come back."""
    speeds = {"a": 1.00, "b": 0.99, "c": 0.60}
    history, runs = _run(_spec("abc", blocks=40), _steady(speeds, 0.004))
    gone = [standings for standings in history if "c" not in standings.running["random-read-4k-qd32"]]
    assert gone == history[-len(gone) :]
    assert sum(1 for _, _, label in runs if label == "c") < sum(1 for _, _, label in runs if label == "a")


def test_a_scheduler_without_figures_does_not_keep_it_going_for_ever() -> None:
    def figure(workload: str, label: str, block: int, position: int) -> float | None:
        return None if label == "b" else 1000.0 + block

    history, runs = _run(_spec("ab"), figure)
    assert history[-1].given_up
    assert 1 + max(block for block, _, _ in runs) == FEWEST_BEFORE_GIVING_UP


def test_what_comes_next_depends_on_the_figures_alone() -> None:
    speeds = {"a": 1.0, "b": 0.96, "c": 0.9}
    assert _run(_spec("abc"), _steady(speeds)) == _run(_spec("abc"), _steady(speeds))


def _normal(generator: np.random.Generator, position: int) -> float:
    return float(generator.normal(0, 0.05))


def _heavy(generator: np.random.Generator, position: int) -> float:
    return 0.05 * float(generator.standard_t(2))


def _cache(generator: np.random.Generator, position: int) -> float:
    return float(generator.normal(0, 0.01)) + math.log(2) * float(generator.random() < 0.5)


def _cold_first(generator: np.random.Generator, position: int) -> float:
    return float(generator.normal(0, 0.01)) - (math.log(5) if position == 0 else 0.0)


@pytest.mark.parametrize("noise", [_normal, _heavy, _cache, _cold_first])
@pytest.mark.parametrize("labels", ["ab", "abcd"])
def test_equal_schedulers_seldom_lose(noise: Callable[..., float], labels: str) -> None:
    """Any claim among equals is false: at most 5 % of experiments may make one (three deviations more)."""
    experiments, wrong = 160, 0
    for number in range(experiments):
        generator = np.random.default_rng([17, number])
        values: dict[str, dict[int, float]] = {}

        def figure(
            workload: str,
            label: str,
            block: int,
            position: int,
            source: np.random.Generator = generator,
            kept: dict[str, dict[int, float]] = values,
        ) -> float:
            value = 1000 * math.exp(noise(source, position))
            kept.setdefault(label, {})[block] = value
            return value

        spec = _spec(labels, seed=number)
        _run(spec, figure)
        question = Question(spec.workloads[0].name, metric_named("iops"), values)
        (pairs,) = compare_all([question], design_of(spec), list(labels))
        wrong += any(pair.outcome in ("better", "worse") for pair in pairs)
    assert wrong <= 8 + 3 * math.sqrt(160 * 0.05 * 0.95)
