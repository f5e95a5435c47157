"""The share that each job is entitled to."""

from __future__ import annotations

import pytest

from blklab.experiment.entitlement import promised_weights
from blklab.spec.workloads import Workload, parse_workload


def _workload(**sections: str) -> Workload:
    text = "[global]\nrw=randread\nbs=4k\nsize=1m\ntime_based\nruntime=1s\n"
    for name, lines in sections.items():
        text += f"[{name}]\n" + "".join(f"{line}\n" for line in lines.split())
    return parse_workload(text, name="test", source="test.fio")


LEVELS = _workload(high="prio=0", low="prio=7")


def test_levels_mean_what_the_scheduler_makes_of_them() -> None:
    """cfq: slices of 180 and 40 ms (cfq_prio_slice); bfq: weights of 80 and 10 (bfq_ioprio_to_weight)."""
    cfq = promised_weights(LEVELS, "cfq", {})
    assert cfq["high"] / cfq["low"] == pytest.approx(180 / 40)
    for scheduler in ("bfq", "none", "mq-deadline", "kyber"):
        bfq = promised_weights(LEVELS, scheduler, {})
        assert bfq["high"] / bfq["low"] == 8


def test_without_levels_every_process_is_promised_the_same() -> None:
    weights = promised_weights(_workload(one="", three="numjobs=3"), "bfq", {})
    assert weights["three"] == 3 * weights["one"]


def test_nice_values_are_levels_too() -> None:
    """task_nice_ioprio: (nice + 20) / 5."""
    weights = promised_weights(_workload(nice="nice=19", plain=""), "bfq", {})
    assert weights["plain"] / weights["nice"] == 4 / 1


@pytest.mark.parametrize(
    "other",
    ["prioclass=1", "prioclass=3", "rate=1m", "rate_iops=10", "thinktime=1000", "stonewall", "startdelay=1s",
     "cgroup=a"],
)  # fmt: skip
def test_where_no_promise_is_defined(other: str) -> None:
    assert promised_weights(_workload(plain="", other=other), "bfq", {}) == {}


def test_groups_divide_by_weight_and_their_processes_by_level() -> None:
    workload = _workload(
        a1="cgroup=a cgroup_weight=300 prio=0", a2="cgroup=a prio=7 numjobs=2", b="cgroup=b cgroup_weight=100"
    )
    weights = promised_weights(workload, "bfq", {})
    assert weights["a1"] + weights["a2"] == pytest.approx(300)
    assert weights["a1"] / weights["a2"] == pytest.approx(8 / 2)
    assert weights["b"] == 100


def test_settings_of_groups_win_and_defaults_fill_in() -> None:
    workload = _workload(a="cgroup=a", b="cgroup=b")
    assert promised_weights(workload, "bfq", {"a": {"io.bfq.weight": "500"}}) == {"a": 500, "b": 100}
    assert promised_weights(workload, "none", {"a": {"io.weight": "default 200"}}) == {"a": 200, "b": 100}
    both = {"a": {"io.weight": "200", "io.bfq.weight": "700"}}
    assert promised_weights(workload, "bfq", both)["a"] == 700
    assert promised_weights(workload, "none", both)["a"] == 200
    assert promised_weights(workload, "cfq", {"a": {"blkio.weight": "1000"}}) == {"a": 1000, "b": 500}
    assert promised_weights(workload, "bfq", {"a": {"io.bfq.weight": "much"}}) == {}
