"""Statements and expectations: decided and left open."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from blklab.errors import DataError, SpecError
from blklab.labs.studies.replication.expectations import (
    ExpectedOutcomes,
    ExpectedStatement,
    ExpectedValue,
)
from blklab.labs.studies.replication.result import ComparedValue, IntervalEstimate, Statement, StudyResult
from blklab.labs.studies.replication.statements import equal, estimate_text, greater, mean_of, ordered, within
from blklab.labs.studies.replication.study_folder import StudyFolder
from study_expectations import unmet


@pytest.mark.parametrize(
    ("quantity", "outcome"),
    [
        (IntervalEstimate(2.0), "holds"),
        (IntervalEstimate(0.5), "fails"),
        (IntervalEstimate(2.0, 1.5, 2.5), "holds"),
        (IntervalEstimate(2.0, 0.9, 3.1), "undecided"),
        (IntervalEstimate(0.5, 0.4, 0.6), "fails"),
        (IntervalEstimate(1.0), "fails"),
        (IntervalEstimate(1.0, 1.0, 1.0), "fails"),
        (IntervalEstimate(1.05, 1.0, 1.1), "undecided"),
        (IntervalEstimate(1.05, 1.0 + 1e-12, 1.1), "holds"),
    ],
)
def test_greater_needs_the_whole_interval(quantity: IntervalEstimate, outcome: str) -> None:
    assert greater("x", "x", quantity).outcome == outcome


@pytest.mark.parametrize(
    ("quantity", "outcome"),
    [
        (IntervalEstimate(3.0, 2.5, 3.5), "holds"),
        (IntervalEstimate(3.0, 1.9, 3.5), "undecided"),
        (IntervalEstimate(5.0, 4.5, 5.5), "fails"),
        (IntervalEstimate(4.0), "holds"),
        (IntervalEstimate(4.01), "fails"),
    ],
)
def test_within_needs_the_whole_interval(quantity: IntervalEstimate, outcome: str) -> None:
    assert within("x", "x", quantity, 2.0, 4.0).outcome == outcome


def test_equal_is_a_margin_on_both_sides() -> None:
    assert equal("x", "x", IntervalEstimate(1.0, 0.99, 1.01)).outcome == "holds"
    assert equal("x", "x", IntervalEstimate(1.0, 0.97, 1.01)).outcome == "undecided"
    assert equal("x", "x", IntervalEstimate(1.1, 1.05, 1.15)).outcome == "fails"
    assert equal("x", "x", IntervalEstimate(1 / 1.02)).outcome == "holds"


def test_an_order_is_as_sure_as_its_least_sure_step() -> None:
    a, b, c = IntervalEstimate(3, 2.8, 3.2), IntervalEstimate(2, 1.9, 2.1), IntervalEstimate(1.95, 1.8, 2.0)
    assert ordered("x", "x", {"a": a, "b": b}).outcome == "holds"
    assert ordered("x", "x", {"a": a, "b": b, "c": c}).outcome == "undecided"
    assert ordered("x", "x", {"b": b, "a": a, "c": c}).outcome == "fails"


def test_means_are_geometric_and_equal_figures_have_no_width() -> None:
    assert mean_of([1.0, 4.0]).value == pytest.approx(2.0)
    single = mean_of([3.0])
    assert single.value == pytest.approx(3.0)
    assert single.low is None and single.high is None
    same = mean_of([0.7, 0.7, 0.7])
    assert same.low == pytest.approx(same.high)
    assert estimate_text(IntervalEstimate(2.93, 2.22, 3.86), "s") == "2.9 [2.2, 3.9] s"


def _result(outcome: str = "holds") -> StudyResult:
    statement = Statement("s", "says", "ours", "holds" if outcome == "holds" else "fails", "1.0")
    figure = ComparedValue("f", "t", "", IntervalEstimate(4.0), IntervalEstimate(5.0))
    return StudyResult([figure], [statement], [])


def test_expectations_find_what_is_wrong_missing_or_not_expected() -> None:
    wanted = {"s": ExpectedStatement(outcome="holds", why="")}
    bound = ExpectedValue(table="t", name="f", at_least=4, at_most=6, why="")
    expected = ExpectedOutcomes(statements=wanted, values=[bound])
    assert unmet(expected, _result()) == []
    assert unmet(expected, _result("fails")) == ["s: fails, not holds: 1.0"]
    assert unmet(ExpectedOutcomes(values=[bound]), _result()) == ["the statement s has no expected outcome"]
    assert unmet(ExpectedOutcomes(statements=wanted | {"u": wanted["s"]}), _result()) == [
        "there is no statement u"
    ]
    tight = bound.model_copy(update={"at_most": 4.5})
    assert unmet(ExpectedOutcomes(statements=wanted, values=[tight]), _result()) == [
        "t: f is 5, not within 4 to 4.5"
    ]
    other = bound.model_copy(update={"name": "g"})
    assert unmet(ExpectedOutcomes(statements=wanted, values=[other]), _result()) == [
        "there is no value of ours t: g"
    ]


def test_the_ratio_of_a_value() -> None:
    assert _result().value("t", "f").ratio == 1.25
    assert ComparedValue("f", "t", "", None, IntervalEstimate(5.0)).ratio is None


def test_published_values_by_column_and_condition() -> None:
    folder = StudyFolder("ionice")
    assert folder.values("dd_summary.csv", "elapsed_s") == [4.17328, 5.39265]
    assert len(folder.rows("iotop_processes.csv", ionice_prio="0")) == 4
    with pytest.raises(DataError, match="no row with"):
        folder.rows("iotop_processes.csv", ionice_prio="3")
    with pytest.raises(DataError, match="no column 'speed'"):
        folder.values("dd_summary.csv", "speed")
    with pytest.raises(DataError, match="column machine"):
        folder.values("dd_summary.csv", "machine")
    with pytest.raises(DataError, match=r"published/none\.csv"):
        folder.rows("none.csv")


class _Model(BaseModel):
    size: int


def test_mistakes_in_a_study_folder_name_file_and_key(tmp_path: Path) -> None:
    folder = StudyFolder("ionice")
    folder.folder = tmp_path
    with pytest.raises(SpecError, match=r"studies/ionice/set-up\.toml: cannot be read"):
        folder.set_up(_Model)
    (tmp_path / "set-up.toml").write_text("size = 'large'")
    with pytest.raises(SpecError, match=r"set-up\.toml: size: "):
        folder.set_up(_Model)
    (tmp_path / "set-up.toml").write_text("size = ")
    with pytest.raises(SpecError, match=r"studies/ionice/set-up\.toml: "):
        folder.set_up(_Model)
    (tmp_path / "x.fio").write_text("[r]\nrw=read\nsize=$size\n")
    assert folder.workload("x.fio", size="1m").jobs[0].size_bytes == 1 << 20
    with pytest.raises(SpecError, match="no value for \\$size"):
        folder.workload("x.fio")
    with pytest.raises(SpecError, match="cannot be read"):
        folder.workload("y.fio")
