from __future__ import annotations

from pathlib import Path

import pytest

from blklab.errors import BlklabError, SpecError, UnknownNameError, UsageError
from blklab.spec.budget import DEFAULT_BUDGET_BLOCKS, parse_budget
from blklab.spec.experiment import DEFAULT_WORKLOADS, ExperimentSpec
from blklab.spec.request import SpecValues, build_specs, read_spec_file

JOB = "; purpose: Reads.\n[reader]\nrw=randread\nbs=4k\nsize=1m\nnumber_ios=10\ndirect=1\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.fio").write_text(JOB)
    return tmp_path


def _write(folder: Path, text: str) -> Path:
    path = folder / "experiment.toml"
    path.write_text(text)
    return path


def test_a_file_and_flags_say_the_same(folder: Path) -> None:
    path = _write(
        folder,
        'target = "sim:hdd-7200"\nschedulers = ["none", "mq-deadline:fifo_batch=1"]\n'
        'workloads = ["mine.fio"]\n'
        'blocks = 4\norder = "by-scheduler"\n'
        'seed = 9\nruntime = "2s"\nmargin = 0.05\nkernels = ["stock", "mine"]\n'
        '[queue]\nnr_requests = 64\n[guest]\ntime = "host"\nmemory = "1g"\n',
    )
    flags = SpecValues(
        targets=["sim:hdd-7200"],
        schedulers=["none,mq-deadline:fifo_batch=1"],
        workloads=[str(folder / "mine.fio")],
        blocks=4,
        order="by-scheduler",
        seed=9,
        runtime="2s",
        margin=0.05,
        queue={"nr_requests": "64"},
        kernels=["stock,mine"],
        guest={"time": "host", "memory": "1024m"},
    )
    assert build_specs(read_spec_file(path)) == build_specs(flags)


def test_options_of_a_guest_win_one_by_one(folder: Path) -> None:
    path = _write(folder, 'target = "uml:fixed"\nworkloads = ["mine.fio"]\n[guest]\ntime = "host"\n')
    values = read_spec_file(path).overlaid_by(SpecValues(guest={"generator": "fio"}))
    guest = build_specs(values)[0].guest
    assert (guest.time, guest.generator, guest.memory_bytes) == ("host", "fio", 512 << 20)
    with pytest.raises(SpecError, match="a guest has no option 'colour'"):
        build_specs(values.overlaid_by(SpecValues(guest={"colour": "red"})))


def test_flags_win_and_blocks_replace_a_budget(folder: Path) -> None:
    path = _write(folder, 'target = "sim:fixed"\nbudget = "1m"\nseed = 3\nworkloads = ["mine.fio"]\n')
    spec = build_specs(read_spec_file(path).overlaid_by(SpecValues(blocks=2)))[0]
    assert (spec.blocks, spec.budget_ns, spec.seed) == (2, None, 3)


def test_defaults() -> None:
    spec = build_specs(SpecValues(targets=["sim:fixed"]))[0]
    assert spec.stops_when_settled
    assert (spec.blocks, spec.budget_ns, spec.budget_blocks) == (None, None, DEFAULT_BUDGET_BLOCKS)
    assert [workload.name for workload in spec.workloads] == list(DEFAULT_WORKLOADS)
    assert spec.schedulers == []


def test_several_targets_are_several_experiments(folder: Path) -> None:
    path = _write(folder, 'targets = ["sim:fixed", "sim:hdd-7200"]\nworkloads = ["mine.fio"]\n')
    assert [spec.target for spec in build_specs(read_spec_file(path))] == ["sim:fixed", "sim:hdd-7200"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('target = "sim:fixed"\nshedulers = ["none"]\n', "unknown key 'shedulers'"),
        ('target = "sim:fixed"\n[queue]\nnr_requests = [1]\n', "queue.nr_requests"),
        ('target = "sim:fixed"\nblocks = 0\n', "blocks"),
        ('target = "sim:fixed"\nblocks = "3"\n', "blocks"),
        ('target = "sim:fixed"\nmargin = 2.0\n', "margin"),
        ('target = "a"\ntargets = ["b"]\n', "both target and targets"),
        ("target = \n", "not valid TOML"),
    ],
)
def test_a_mistake_in_the_file_is_named(folder: Path, text: str, message: str) -> None:
    path = _write(folder, text)
    with pytest.raises(SpecError, match=message) as caught:
        read_spec_file(path)
    assert str(path) in caught.value.message


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        (SpecValues(), SpecError, "no target"),
        (SpecValues(targets=["sim:fixed"], blocks=3, budget="1m"), SpecError, "both"),
        (SpecValues(targets=["sim:fixed"], budget="soon"), UsageError, "not a duration"),
        (
            SpecValues(targets=["sim:fixed"], workloads=["random-raed-4k-qd1"]),
            UnknownNameError,
            "no workload",
        ),
        (SpecValues(targets=["sim:fixed"], confidence=1.5), SpecError, "confidence"),
        (
            SpecValues(targets=["sim:fixed"], workloads=["cached-read", "cached-read"]),
            SpecError,
            "listed twice",
        ),
        (SpecValues(targets=["moon:base"]), UnknownNameError, "unknown kind of target"),
    ],
)
def test_contradictions_and_unknown_names(values: SpecValues, error: type[BlklabError], message: str) -> None:
    with pytest.raises(error, match=message):
        build_specs(values)


def test_a_fixed_order_needs_a_fixed_number_of_blocks() -> None:
    values = SpecValues(targets=["sim:fixed"], order="by-scheduler")
    with pytest.raises(SpecError, match="needs a fixed number of blocks"):
        build_specs(values)
    assert build_specs(values.overlaid_by(SpecValues(blocks=2)))[0].order == "by-scheduler"


def test_a_close_name_is_suggested() -> None:
    with pytest.raises(UnknownNameError) as caught:
        build_specs(SpecValues(targets=["sim:fixed"], workloads=["random-raed-4k-qd1"]))
    assert "random-read-4k-qd1" in (caught.value.hint or "")


def test_a_budget_is_a_time_or_a_number_of_blocks() -> None:
    timed = build_specs(SpecValues(targets=["sim:fixed"], budget="2m"))[0]
    assert (timed.budget_ns, timed.budget_blocks, timed.stopping) == (120_000_000_000, None, "settled")
    counted = build_specs(SpecValues(targets=["sim:fixed"], budget="30blocks"))[0]
    assert (counted.budget_ns, counted.budget_blocks, counted.stopping) == (None, 30, "settled")
    assert parse_budget("1 block") == {"budget_blocks": 1}


def test_blocks_are_a_fixed_design() -> None:
    spec = build_specs(SpecValues(targets=["sim:fixed"], blocks=7))[0]
    assert (spec.blocks, spec.budget_blocks, spec.stopping) == (7, None, "fixed")
    assert not spec.stops_when_settled


@pytest.mark.parametrize(
    "text", ["0blocks", "200000blocks", "some blocks", "-3blocks", "blocks", "1.5blocks"]
)
def test_a_budget_that_cannot_be(text: str) -> None:
    with pytest.raises(BlklabError):
        build_specs(SpecValues(targets=["sim:fixed"], budget=text))


def test_a_stored_experiment_of_before_is_a_fixed_design() -> None:
    stored = build_specs(SpecValues(targets=["sim:fixed"], blocks=7))[0].model_dump()
    del stored["stopping"], stored["budget_blocks"]
    assert ExperimentSpec.model_validate(stored).stopping == "fixed"
