"""Factors in the names of files, in fio's options, and the analysis of a folder of results."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from blklab.cli import run
from blklab.errors import DesignError, ExitCode, FormatError, UsageError
from blklab.labs.reanalysis.analysis import AnalysisRequest, FileAnalysis, analyse_files
from blklab.labs.reanalysis.design import DesignRequest
from blklab.labs.reanalysis.file_names import NamesPattern, files_below, proposed_pattern

SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq")


def _result(iops: float, *, scheduler: str | None = None, **options: str) -> str:
    """fio's JSON of one job; a scheduler is one of its options."""
    given = {"bs": "4k", "rw": "randread", "filename": "/dev/nvme5n1", **options}
    if scheduler is not None:
        given["ioscheduler"] = scheduler
    read = {
        "io_bytes": 4096,
        "bw_bytes": round(4096 * iops),
        "iops": iops,
        "runtime": 1000,
        "lat_ns": {"mean": 9e3},
    }
    job = {"jobname": "1", "groupid": 0, "error": 0, "job options": {"name": "1"}, "read": read}
    return json.dumps({"fio version": "fio-3.35", "global options": given, "jobs": [job]}, indent=1)


def _cells() -> Iterator[tuple[int, int, str, float]]:
    for rep in range(3):
        for depth in (1, 16, 128):
            for index, scheduler in enumerate(SCHEDULERS):
                yield rep, depth, scheduler, 1000.0 * depth * (1 + index) + rep


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A study with one file for each cell, as published ones are: schedulers, depths and repetitions."""
    for rep, depth, scheduler, iops in _cells():
        folder = tmp_path / "results" / f"rep_{rep}"
        folder.mkdir(parents=True, exist_ok=True)
        name = folder / f"qd_{depth}_sche_{scheduler}.txt"
        name.write_text(_result(iops, scheduler=scheduler, iodepth=str(depth)), encoding="utf-8")
    (tmp_path / "results" / "plot.py").write_text("print(1)\n", encoding="utf-8")
    (tmp_path / "results" / ".hidden").write_text("x\n", encoding="utf-8")
    return tmp_path / "results"


def _iops(*paths: Path, names: str | None = None, **design: object) -> FileAnalysis:
    return analyse_files(
        AnalysisRequest(
            [str(path) for path in paths],
            design=DesignRequest(**design),  # type: ignore[arg-type]
            metrics=("IOPS",),
            names=None if names is None else NamesPattern.parse(names),
        )
    )


def test_a_folder_with_one_file_for_each_cell_compares_schedulers_at_each_depth(study: Path) -> None:
    analysis = _iops(study)
    assert analysis.complete
    assert len(analysis.files) == 36
    (section,) = analysis.sections
    assert section.design.factor == "ioscheduler"
    assert section.design.conditions == ("qd",)
    assert [found.stratum.condition["qd"] for found in section.findings] == ["1", "16", "128"]
    first = section.findings[0].stratum
    assert first.values("kyber") == [3000, 3001, 3002]
    assert len(section.findings[0].pairs) == 6
    assert any("--names 'rep_{run}/qd_{qd}_sche_{scheduler}.txt'" in note for note in analysis.notes)
    assert any("plot.py: is in no known format; left out" in note for note in analysis.notes)


def test_a_pattern_names_the_factors(study: Path) -> None:
    analysis = _iops(study, names="rep_{run}/qd_{depth}_sche_{scheduler}.txt")
    assert analysis.sections[0].design.conditions == ("depth",)
    assert any("plot.py: does not fit --names; left out" in note for note in analysis.notes)
    blocks = _iops(study, names="rep_{run}/qd_{depth}_sche_{scheduler}.txt", block=("depth", "run"))
    assert [len(found.stratum.series["bfq"]) for found in blocks.findings] == [9]
    depths = _iops(study, names="rep_{}/qd_{depth}_sche_{scheduler}.txt", factor="depth", by=("scheduler",))
    assert set(depths.findings[0].stratum.series) == {"1", "16", "128"}
    assert "iodepth goes with depth" in depths.sections[0].design.reasons
    assert depths.sections[0].design.conditions == ("scheduler",)


def test_options_of_fio_are_enough_where_names_say_nothing(tmp_path: Path) -> None:
    for number, (rep, depth, scheduler, iops) in enumerate(_cells()):
        if rep == 0:
            text = _result(iops, scheduler=scheduler, iodepth=str(depth))
            (tmp_path / f"{number}.json").write_text(text, encoding="utf-8")
    (section,) = _iops(tmp_path).sections
    assert (section.design.factor, section.design.conditions) == ("ioscheduler", ("iodepth",))
    assert "each file is a cell: one ioscheduler and one iodepth" in section.design.reasons


def test_several_files_for_a_cell_are_not_taken_for_repetitions(tmp_path: Path) -> None:
    for number, (_, depth, scheduler, iops) in enumerate(_cells()):
        text = _result(iops, scheduler=scheduler, iodepth=str(depth))
        (tmp_path / f"{number}.json").write_text(text, encoding="utf-8")
    with pytest.raises(DesignError, match=r"ioscheduler \(.*\); file \(36 files\)"):
        _iops(tmp_path)
    pooled = _iops(tmp_path, pool=("file",))
    assert pooled.findings[0].stratum.values("none") == [1000, 1001, 1002]


def test_files_that_differ_in_one_setting_compare_it(tmp_path: Path) -> None:
    for size in ("4k", "64k"):
        (tmp_path / f"{size}.json").write_text(_result(len(size), bs=size), encoding="utf-8")
    (section,) = _iops(tmp_path).sections
    assert section.design.factor == "bs"


def test_a_setting_that_differs_between_files_is_not_compared_over(tmp_path: Path) -> None:
    for name, depth in (("a", "1"), ("b", "2")):
        (tmp_path / f"{name}.json").write_text(_result(5, iodepth=depth), encoding="utf-8")
    design = _iops(tmp_path, factor="file").sections[0].design
    assert design.conditions == ("iodepth",)
    assert any("--pool iodepth" in reason for reason in design.reasons)
    pooled = _iops(tmp_path, factor="file", pool=("iodepth",))
    assert len(pooled.findings[0].pairs) == 1


def test_names_and_options_that_contradict_each_other_are_an_error(study: Path) -> None:
    one, other = study / "rep_0" / "qd_1_sche_bfq.txt", study / "rep_0" / "qd_1_sche_none.txt"
    text = one.read_text("utf-8")
    one.write_text(other.read_text("utf-8"), encoding="utf-8")
    other.write_text(text, encoding="utf-8")
    with pytest.raises(DesignError, match="several factors vary"):
        _iops(study)


def test_files_are_not_levels_where_their_names_tell_factors_apart(study: Path) -> None:
    for path in sorted(study.glob("rep_*/*.txt")):
        path.write_text(path.read_text("utf-8").replace("ioscheduler", "x").replace("iodepth", "y"), "utf-8")
    (study / "summary.json").write_text(_result(7), encoding="utf-8")
    with pytest.raises(DesignError, match="several factors apart: run, qd and scheduler") as caught:
        _iops(study)
    assert "'rep_{run}/qd_{qd}_sche_{scheduler}.txt' fits 36 of 37 files" in (caught.value.hint or "")


def test_a_folder_of_which_nothing_can_be_read_says_why(tmp_path: Path) -> None:
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "summary.csv").write_text(f"scheduler,iops\nnone,1\n{name},2\n", encoding="utf-8")
    with pytest.raises(FormatError, match=r"a table, but not in .*\(and 1 more file\)") as refused:
        _iops(tmp_path)
    assert "--value COLUMN" in (refused.value.hint or "")


def test_a_name_that_does_not_fit_is_an_error_if_it_was_given(study: Path) -> None:
    with pytest.raises(DesignError, match=r"plot\.py does not fit"):
        _iops(study / "plot.py", names="qd_{depth}.txt")
    with pytest.raises(DesignError, match="no path fits"):
        _iops(study, names="depth_{depth}.txt")


@pytest.mark.parametrize(
    ("pattern", "path", "factors"),
    [
        ("{scheduler}.txt", "a/mq-deadline.txt", {"scheduler": "mq-deadline"}),
        (
            "rep_{run}/{scheduler}_{bs}.json",
            "x/rep_2/bfq_4k.json",
            {"run": "2", "scheduler": "bfq", "bs": "4k"},
        ),
        ("{scheduler}/*/out.txt", "bfq/17/out.txt", {"scheduler": "bfq"}),
        ("{a}_{a}.txt", "x_x.txt", {"a": "x"}),
        ("{a}_{a}.txt", "x_y.txt", None),
        ("qd_{qd}.txt", "other_qd_1.txt", None),
        ("{qd}.txt", "folder/1.txt", {"qd": "1"}),
        ("{}_{qd}.txt", "any_1.txt", {"qd": "1"}),
        ("a.b{n}.txt", "axb1.txt", None),
        ("v5_{scheduler}{run}_x.json", "v5_kyber12_x.json", {"scheduler": "kyber", "run": "12"}),
        ("{rw}{bs}{}.txt", "read4k.txt", {"rw": "read", "bs": "4k"}),
        ("{scheduler}{run}.txt", "kyber.txt", None),
    ],
)
def test_patterns_fit_the_ends_of_paths(pattern: str, path: str, factors: dict[str, str] | None) -> None:
    assert NamesPattern.parse(pattern).factors(path) == factors


@pytest.mark.parametrize("pattern", ["", "plain.txt", "{}", "{a b}", "{1}", "{a", "a}{b}}", "{{a}}"])
def test_patterns_that_name_nothing_are_refused(pattern: str) -> None:
    with pytest.raises(UsageError, match="--names"):
        NamesPattern.parse(pattern)


@pytest.mark.parametrize(
    ("paths", "pattern"),
    [
        (["r/none_1.txt", "r/bfq_1.txt", "r/bfq_2.txt"], "{scheduler}_{part}.txt"),
        (["qd1-bs4k.log", "qd32-bs64k.log"], "qd{qd}-bs{bs}.log"),
        (["bfq/run1/x.json", "kyber/run2/x.json"], "{scheduler}/run{run}/x.json"),
        (["a/sched=none,rw=read.json", "a/sched=spdk,rw=write.json"], "sched={scheduler},rw={rw}.json"),
        (["t_r_0_w_1s.txt", "t_r_50us_w_0.txt"], "t_r_{r}_w_{w}.txt"),
        (["v2_kpp_rep1.json", "v2_none_rep1.json", "v2_none_rep2.json"], "v2_{scheduler}_rep{run}.json"),
        (
            ["v5_kpp1_qd32.json", "v5_kyber1_qd32.json", "v5_kyber2_qd32.json"],
            "v5_{scheduler}{run}_qd32.json",
        ),
        (["none8.json", "none16.json", "bfq8.json"], "{scheduler}{part}.json"),
        (["one.txt"], None),
        (["same.txt", "same.txt"], None),
    ],
)
def test_patterns_are_found_in_names(paths: list[str], pattern: str | None) -> None:
    found = proposed_pattern(paths)
    assert (found and found.text) == pattern


@settings(max_examples=200)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30), max_size=6))
@example(["0¹", "1º"])
@example(["a\N{ARABIC-INDIC DIGIT ONE}", "a\N{ARABIC-INDIC DIGIT TWO}"])
def test_a_proposal_never_fails_and_fits_a_path(paths: list[str]) -> None:
    found = proposed_pattern(paths)
    if found is not None:
        assert any(found.factors(path) is not None for path in paths)


def test_folders_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number in (10, 9, 1):
        (tmp_path / f"qd_{number}").write_text("x", encoding="utf-8")
    files, found = files_below([str(tmp_path), "other"])
    assert [Path(path).name for path in files] == ["qd_1", "qd_9", "qd_10", "other"]
    assert len(found) == 3
    empty = tmp_path / "empty"
    empty.mkdir()
    # A pipe would be waited for; a link that leads nowhere is reported by name.
    os.mkfifo(empty / "pipe")
    with pytest.raises(UsageError, match="no file is below"):
        files_below([str(empty)])
    (empty / "lost").symlink_to("nowhere")
    assert [Path(path).name for path in files_below([str(empty)])[0]] == ["lost"]


def test_the_command_reads_a_folder(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pattern = "rep_{run}/qd_{depth}_sche_{scheduler}.txt"
    assert run(["analyse", str(study), "--names", pattern, "--metric", "IOPS"]) == ExitCode.OK
    printed = capsys.readouterr().out
    assert "36 files" in " ".join(printed.split())
    assert "supported: " in printed
    assert run(["analyse", str(study), "--names", pattern, "--label", "x=y"]) == ExitCode.USAGE
    assert run(["analyse", str(study), "--names", "no fields"]) == ExitCode.USAGE
