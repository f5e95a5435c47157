"""Designs follow from the values in exactly one way, or the user settles them."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.errors import DesignError, FormatError
from blklab.labs.reanalysis.analysis import AnalysisRequest, FileAnalysis, analyse_files
from blklab.labs.reanalysis.design import DesignRequest
from blklab.labs.reanalysis.readers.protocol import ReaderOptions

HEAD = "scheduler,disk,run,rate_MBps\n"


def _analyse(folder: Path, *texts: str, labels: tuple[str, ...] = (), **design: object) -> FileAnalysis:
    paths = []
    for index, text in enumerate(texts):
        path = folder / f"{index}.csv"
        path.write_text(text, encoding="utf-8")
        paths.append(str(path))
    return analyse_files(
        AnalysisRequest(
            paths=paths,
            design=DesignRequest(**design),  # type: ignore[arg-type]
            options=ReaderOptions(value_columns=("rate_MBps",)),
            labels=dict(zip(paths, labels, strict=True)) if labels else {},
        )
    )


def _rows(*rows: str) -> str:
    return HEAD + "".join(f"{row}\n" for row in rows)


def test_the_only_thing_that_varies_was_compared(tmp_path: Path) -> None:
    text = "scheduler,disk,rate_MBps\nnone,sda,10\nnone,sda,11\nbfq,sda,8\nbfq,sda,9\n"
    design = _analyse(tmp_path, text).sections[0].design
    assert design.factor == "scheduler"
    assert "compared: scheduler, the only factor that varies" in design.reasons


def test_a_column_that_says_the_same_is_no_second_candidate(tmp_path: Path) -> None:
    text = "scheduler,name,rate_MBps\nnone,No scheduler,10\nnone,No scheduler,11\nbfq,BFQ,8\nbfq,BFQ,9\n"
    assert _analyse(tmp_path, text).sections[0].design.factor == "scheduler"


def test_several_candidates_are_asked_about(tmp_path: Path) -> None:
    text = _rows("none,sda,1,10", "none,sdb,1,11", "bfq,sda,2,8", "bfq,sdb,2,9")
    with pytest.raises(DesignError, match="any of them could have been compared") as error:
        _analyse(tmp_path, text)
    assert "scheduler (none, bfq)" in error.value.message
    assert "disk (sda, sdb)" in error.value.message
    assert "--factor" in (error.value.hint or "")


def test_a_column_without_a_role_is_asked_about(tmp_path: Path) -> None:
    text = _rows("none,sda,1,10", "none,sdb,1,11", "bfq,sda,1,8", "bfq,sdb,1,9")
    with pytest.raises(DesignError, match="disk varies"):
        _analyse(tmp_path, text, factor="scheduler", run="run")
    assert len(_analyse(tmp_path, text, factor="scheduler", by=("disk",)).findings) == 2
    assert len(_analyse(tmp_path, text, factor="scheduler", pool=("disk",)).findings) == 1
    blocked = _analyse(tmp_path, text, factor="scheduler", block=("disk",))
    assert blocked.sections[0].design.scale == "ratio"
    assert blocked.findings[0].pairs[0].paired
    only = _analyse(tmp_path, text, factor="scheduler", where={"disk": frozenset({"sda"})})
    assert [one.n for one in only.findings[0].levels] == [1, 1]


def test_unknown_names_are_refused(tmp_path: Path) -> None:
    text = _rows("none,sda,1,10", "bfq,sda,1,11")
    for design in ({"factor": "x"}, {"by": ("x",)}, {"order": "x"}, {"where": {"x": frozenset({"1"})}}):
        with pytest.raises(DesignError, match="there is no factor 'x'"):
            _analyse(tmp_path, text, **design)
    with pytest.raises(FormatError, match="no value could be used"):
        _analyse(tmp_path, text, factor="scheduler", where={"disk": frozenset({"sdz"})})
    with pytest.raises(DesignError, match="is not a number"):
        _analyse(tmp_path, text.replace("1,11", "one,11"), factor="scheduler", order="run")
    with pytest.raises(DesignError, match="--share needs blocks"):
        _analyse(tmp_path, text, factor="scheduler", share=True)


def test_two_values_at_one_position(tmp_path: Path) -> None:
    with pytest.raises(DesignError, match=r"0.csv:3 and .*0.csv:2: two values for none, run 1"):
        _analyse(
            tmp_path, _rows("none,sda,1,10", "none,sda,1,12", "bfq,sda,1,9"), factor="scheduler", run="run"
        )
    same = _analyse(
        tmp_path, _rows("none,sda,1,10", "none,sda,1,10", "bfq,sda,1,9"), factor="scheduler", run="run"
    )
    assert not same.complete
    assert "repeats" in same.problems[0].message
    assert [one.n for one in same.findings[0].levels] == [1, 1]


def test_files_are_levels_only_where_that_follows(tmp_path: Path) -> None:
    one, other = ("rate_MBps,note\n10,a\n11,a\n12,a\n", "rate_MBps,note\n8,a\n9,a\n8,a\n")
    by_file = _analyse(tmp_path, one, other)
    assert by_file.sections[0].design.factor == "file"
    labelled = _analyse(tmp_path, one, other, labels=("none", "bfq"))
    assert labelled.sections[0].design.factor == "label"
    assert {level.level for level in labelled.findings[0].levels} == {"none", "bfq"}
    pooled = _analyse(tmp_path, one, other, labels=("none", "none"))
    assert [level.n for level in pooled.findings[0].levels] == [6]
    asked = _analyse(tmp_path, one, other, factor="none")
    assert [level.n for level in asked.findings[0].levels] == [6]


def test_the_same_content_twice_counts_once(tmp_path: Path) -> None:
    text = "rate_MBps,note\n10,a\n11,a\n12,a\n"
    result = _analyse(tmp_path, text, text + "\n")
    assert [level.n for level in result.findings[0].levels] == [3]
    assert "same content" in result.problems[0].message


def test_units_that_differ_are_converted_or_refused(tmp_path: Path) -> None:
    logs = {"a.log": "MB", "b.log": "kB"}
    for name, unit in logs.items():
        (tmp_path / name).write_text(
            f" Timing cached reads: 2048 MB in 2.00 seconds = {1024 if unit == 'MB' else 2**20} {unit}/sec\n"
        )
    result = analyse_files(AnalysisRequest(paths=[str(tmp_path / name) for name in logs]))
    assert [level.mean for level in result.findings[0].levels] == [1024, 1024]
    xml = (
        "<PhoronixTestSuite><Result><Title>T</Title><Scale>{}</Scale><Proportion>HIB</Proportion><Data><Entry>"
        "<Identifier>{}</Identifier><RawString>5:6</RawString></Entry></Data></Result></PhoronixTestSuite>\n"
    )
    for name, unit in (("a.xml", "MB/s"), ("b.xml", "MiB/s"), ("c.xml", "Frames")):
        (tmp_path / name).write_text(xml.format(unit, name))
    paths = [str(tmp_path / name) for name in ("a.xml", "b.xml")]
    mixed = analyse_files(AnalysisRequest(paths=paths, design=DesignRequest(factor="system")))
    assert [level.mean for level in mixed.findings[0].levels] == [5.5, pytest.approx(5.5 * 1.048576)]
    assert "units differ" in mixed.notes[0]
    with pytest.raises(DesignError, match="in Frames, but in"):
        analyse_files(
            AnalysisRequest(paths=[*paths, str(tmp_path / "c.xml")], design=DesignRequest(factor="system"))
        )


def test_a_files_own_order_is_known_where_files_are_levels(tmp_path: Path) -> None:
    paths = [tmp_path / "none.log", tmp_path / "bfq.log"]
    for path, first in zip(paths, (1000, 2000), strict=True):
        lines = [
            f" Timing cached reads: {2 * (first + run)} MB in 2.00 seconds = {first + run}.00 MB/sec\n"
            for run in range(6)
        ]
        path.write_text("".join(lines))
    labels = {str(path): path.stem for path in paths}
    result = analyse_files(AnalysisRequest(paths=list(labels), labels=labels))
    assert result.sections[0].design.factor == "label"
    trends = [level.trend for level in result.findings[0].levels]
    assert [trend.n for trend in trends if trend] == [6, 6]
    both = analyse_files(AnalysisRequest(paths=list(labels), labels=dict.fromkeys(labels, "same")))
    assert all(level.trend is None for level in both.findings[0].levels)


def test_order_and_stretches(tmp_path: Path) -> None:
    rows = [f"{'none' if i < 6 else 'bfq'},sda,{i},{100 + i}" for i in range(12)]
    found = _analyse(tmp_path, _rows(*rows), factor="scheduler", order="run").findings[0]
    assert any("one stretch" in warning for warning in found.warnings)
    assert sum("drifts" in warning for warning in found.warnings) == 2
    unknown = _analyse(tmp_path, _rows(*rows), factor="scheduler", pool=("run",)).findings[0]
    assert all(level.trend is None for level in unknown.levels)
    mixed = [f"{'none' if i % 2 else 'bfq'},sda,{i},{100 + i % 3}" for i in range(12)]
    again = _analyse(tmp_path, _rows(*mixed), factor="scheduler", order="run").findings[0]
    assert not any("one stretch" in warning for warning in again.warnings)
