"""Steady state, on runs with a known course."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blklab.analysis.steady_state import change_over_run, speed_over_time, steadiness, warm_up_windows
from blklab.records.samples import RateWindows
from blklab.testing.experiments import SchedulerBehaviour, make_experiment, make_spec


def test_a_level_run_does_not_change_and_a_line_does() -> None:
    assert change_over_run([100.0] * 40) == pytest.approx(0)
    # Between the centres of the first and the last of five rounds lie four fifths of a run.
    assert change_over_run(list(np.linspace(80, 120, 1000))) == pytest.approx(0.32, abs=0.001)


@given(st.lists(st.floats(1, 1000), min_size=10, max_size=60), st.floats(0.001, 1000))
def test_the_unit_does_not_matter(rates: list[float], factor: float) -> None:
    assert change_over_run([rate * factor for rate in rates]) == pytest.approx(
        change_over_run(rates), abs=1e-6
    )


def test_warm_up_is_found_where_it_ends() -> None:
    rng = np.random.default_rng(5)
    level = 100 + rng.normal(0, 1, 60)
    slow_start = np.concatenate([np.full(10, 40.0), level[10:]])
    assert warm_up_windows(list(slow_start)) == 10
    assert warm_up_windows([100.0] * 60) == 0
    # One that never settles has no warm-up that could be left out.
    assert warm_up_windows(list(np.linspace(10, 200, 60))) == 0
    assert warm_up_windows([1.0] * 12) == 0


@pytest.mark.parametrize(("change", "state"), [(0.0, "steady"), (0.05, "steady"), (-0.5, "changing")])
def test_runs_of_a_scheduler_are_taken_together(change: float, state: str) -> None:
    record = make_experiment(
        make_spec(("none", "bfq"), blocks=6),
        behaviours={"bfq": SchedulerBehaviour(change=change)},
        over_time=True,
    )
    entries = {entry.scheduler: entry for entry in steadiness(record)}
    assert entries["none"].state == "steady"
    assert entries["bfq"].state == state
    assert entries["bfq"].n == 6
    low, high = entries["bfq"].ci_low, entries["bfq"].ci_high
    assert low is not None and high is not None
    assert low < entries["bfq"].change < high
    assert entries["bfq"].change == pytest.approx(0.8 * change, abs=0.02)


def test_a_single_run_is_unclear() -> None:
    record = make_experiment(make_spec(("none", "bfq"), blocks=1), over_time=True)
    assert {(entry.state, entry.ci_low) for entry in steadiness(record)} == {("unclear", None)}


def test_without_a_record_over_time_there_is_nothing_to_say() -> None:
    assert steadiness(make_experiment(make_spec(("none", "bfq")))) == []


def test_windows_that_do_not_fit_are_not_added() -> None:
    record = make_experiment(make_spec(("none",)), blocks_made=1, over_time=True)
    (job,) = record.samples[0].jobs
    workload = record.spec.workloads[0]
    assert speed_over_time([job], workload) is not None
    for rates in (
        None,
        RateWindows(window_ns=1, bytes_per_second=[1.0] * 9),
        RateWindows(window_ns=1, bytes_per_second=[0.0] * 40),
    ):
        assert speed_over_time([job.model_copy(update={"rates": rates})], workload) is None
    other = job.model_copy(update={"rates": RateWindows(window_ns=1, bytes_per_second=[1.0] * 40)})
    assert speed_over_time([job, other], workload) is None
