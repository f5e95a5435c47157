"""The grammars of goals and sweeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.analysis.metrics import METRICS
from blklab.errors import BlklabError, SpecError, TunableError, UsageError
from blklab.spec.goals import PRESETS, parse_goal
from blklab.spec.request import SpecValues, build_specs, read_spec_file
from blklab.spec.schedulers import parse_scheduler_choices
from blklab.spec.sweeps import MOST_CELLS, parse_sweep, parse_sweeps, settle_sweep, with_sweep_cells


def test_presets_name_metrics_that_exist() -> None:
    assert {metric for weights in PRESETS.values() for metric in weights} <= METRICS.keys()


@pytest.mark.parametrize("text", [*PRESETS, "iops=0.6,latency_p99=0.4", "latency_max=3.0"])
def test_a_goal_reads_back(text: str) -> None:
    goal = parse_goal(text)
    assert parse_goal(goal.canonical) == goal
    assert goal.canonical == text


@pytest.mark.parametrize(
    "text",
    [
        *("", "speed", "iops=", "=1", "iops=x", "iops=0", "iops=-1", "iops=nan", "iops=inf"),
        *("iops=1,iops=2", "iops=1,,"),
    ],
)
def test_a_goal_that_is_none(text: str) -> None:
    with pytest.raises(SpecError):
        parse_goal(text)


def test_a_sweep_has_the_default_among_its_cells() -> None:
    sweep = parse_sweep("bfq:slice_idle=0,2,20")
    assert [choice.label for choice in sweep.cells().values()] == [
        "bfq",
        "bfq:slice_idle=0",
        "bfq:slice_idle=2",
        "bfq:slice_idle=20",
    ]
    assert sweep.canonical == "bfq:slice_idle=0,2,20"


def test_a_level_that_is_the_default_is_not_run_twice() -> None:
    sweep = settle_sweep(parse_sweep("bfq:slice_idle=0,8"), lambda _: {"slice_idle": "8", "low_latency": "1"})
    assert [choice.label for choice in sweep.cells().values()] == ["bfq", "bfq:slice_idle=0"]
    assert settle_sweep(sweep, lambda _: pytest.fail("asked twice")) == sweep


def test_a_target_that_cannot_tell_leaves_a_sweep_as_it_is() -> None:
    sweep = parse_sweep("bfq:slice_idle=0,8")
    assert settle_sweep(sweep, lambda _: None) == sweep


def test_a_tunable_that_the_scheduler_lacks() -> None:
    with pytest.raises(TunableError, match="no tunable 'fifo_batch'"):
        settle_sweep(parse_sweep("bfq:fifo_batch=1"), lambda _: {"slice_idle": "8"})


def test_several_tunables_are_crossed_and_sweeps_of_one_scheduler_are_one() -> None:
    together = parse_sweeps(["bfq:slice_idle=0,20:low_latency=0"])
    apart = parse_sweeps(["bfq:slice_idle=0,20", "bfq:low_latency=0"])
    assert together == apart
    assert len(together[0].cells()) == 6
    assert "bfq:slice_idle=20:low_latency=0" in {choice.label for choice in together[0].cells().values()}


def test_cells_join_the_schedulers_once() -> None:
    sweeps = parse_sweeps(["bfq:slice_idle=0"])
    choices = with_sweep_cells(parse_scheduler_choices("none,bfq"), sweeps)
    assert [choice.label for choice in choices] == ["none", "bfq", "bfq:slice_idle=0"]
    assert with_sweep_cells(choices, sweeps) == choices
    with pytest.raises(SpecError, match="label 'bfq'"):
        with_sweep_cells(parse_scheduler_choices("bfq=none"), sweeps)


@pytest.mark.parametrize(
    "text",
    ["bfq", "bfq:", "bfq:slice_idle", "bfq:slice_idle=", "bfq:slice_idle=1,,2", "bfq:slice_idle=1,1",
     "bfq:slice_idle=1:slice_idle=2", "calm=bfq:slice_idle=1", ":slice_idle=1", "b!:x=1", "bfq:X=1"],
)  # fmt: skip
def test_a_sweep_that_is_none(text: str) -> None:
    with pytest.raises((SpecError, UsageError)):
        parse_sweep(text)


def test_too_many_cells_are_refused_with_the_count() -> None:
    eight = ",".join(map(str, range(8)))
    with pytest.raises(SpecError, match=rf"9 x 9 = 81 combinations with the defaults, at most {MOST_CELLS}"):
        parse_sweep(f"bfq:slice_idle={eight}:low_latency={eight}")
    with pytest.raises(SpecError, match="81"):
        parse_sweeps([f"bfq:slice_idle={eight}", f"bfq:low_latency={eight}"])


def test_one_tunable_in_two_sweeps() -> None:
    with pytest.raises(SpecError, match="two sweeps of bfq name slice_idle"):
        parse_sweeps(["bfq:slice_idle=1", "bfq:slice_idle=2"])


def test_file_and_flags_say_the_same(tmp_path: Path) -> None:
    path = tmp_path / "experiment.toml"
    path.write_text(
        'target = "sim:fixed"\ngoal = "iops=2,latency_p99=1"\nsweeps = ["bfq:slice_idle=0,2"]\n'
        "precondition = true\n"
    )
    flags = SpecValues(
        targets=["sim:fixed"],
        goal=parse_goal("iops=2,latency_p99=1"),
        sweeps=["bfq:slice_idle=0,2"],
        precondition=True,
    )
    assert build_specs(read_spec_file(path)) == build_specs(flags)
    path.write_text('target = "sim:fixed"\nsweeps = ["bfq:slice_idle=0,2"]\nprecondition = true\n[goal]\n'
                    "iops = 2\nlatency_p99 = 1\n")  # fmt: skip
    assert build_specs(read_spec_file(path)) == build_specs(flags)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('goal = "speed"', "no goal 'speed'"),
        ("[goal]\niops = -1", "positive"),
        ("[goal]", "at least one metric"),
        ("goal = 3", "goal"),
        ('sweeps = ["bfq"]', "names no tunable"),
        ("sweeps = [1]", "sweeps"),
    ],
)
def test_mistakes_in_a_file_name_it(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "experiment.toml"
    path.write_text(f'target = "sim:fixed"\n{text}\n')
    with pytest.raises(BlklabError, match=said):
        build_specs(read_spec_file(path))
