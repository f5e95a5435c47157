from __future__ import annotations

from pathlib import Path

import pytest

from blklab.errors import BlklabError, SpecError, UnknownNameError, UsageError
from blklab.spec import DEFAULT_BLOCKS, DEFAULT_WORKLOADS, SpecValues, build_specs, read_spec_file

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
        'blocks = 4\nseed = 9\nruntime = "2s"\nmargin = 0.05\n[queue]\nnr_requests = 64\n',
    )
    flags = SpecValues(
        targets=["sim:hdd-7200"],
        schedulers=["none,mq-deadline:fifo_batch=1"],
        workloads=[str(folder / "mine.fio")],
        blocks=4,
        seed=9,
        runtime="2s",
        margin=0.05,
        queue={"nr_requests": "64"},
    )
    assert build_specs(read_spec_file(path)) == build_specs(flags)


def test_flags_win_and_blocks_replace_a_budget(folder: Path) -> None:
    path = _write(folder, 'target = "sim:fixed"\nbudget = "1m"\nseed = 3\nworkloads = ["mine.fio"]\n')
    spec = build_specs(read_spec_file(path).overlaid_by(SpecValues(blocks=2)))[0]
    assert (spec.blocks, spec.budget_ns, spec.seed) == (2, None, 3)


def test_defaults() -> None:
    spec = build_specs(SpecValues(targets=["sim:fixed"]))[0]
    assert spec.blocks == DEFAULT_BLOCKS
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


def test_a_close_name_is_suggested() -> None:
    with pytest.raises(UnknownNameError) as caught:
        build_specs(SpecValues(targets=["sim:fixed"], workloads=["random-raed-4k-qd1"]))
    assert "random-read-4k-qd1" in (caught.value.hint or "")
