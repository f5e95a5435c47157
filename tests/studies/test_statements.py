"""Statements and expectations: what decides, and what leaves them open."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from blklab.errors import DataError, SpecError
from blklab.studies.replication.expectations import Expected, ExpectedFigure, ExpectedStatement, unmet
from blklab.studies.replication.result import Figure, Quantity, Statement, StudyResult
from blklab.studies.replication.statements import equal, greater, mean_of, ordered, quantity_text, within
from blklab.studies.replication.study_folder import Published


@pytest.mark.parametrize(
    ("quantity", "outcome"),
    [
        (Quantity(2.0), "holds"),
        (Quantity(0.5), "fails"),
        (Quantity(2.0, 1.5, 2.5), "holds"),
        (Quantity(2.0, 0.9, 3.1), "undecided"),
        (Quantity(0.5, 0.4, 0.6), "fails"),
        (Quantity(1.0), "fails"),
        (Quantity(1.0, 1.0, 1.0), "fails"),
        (Quantity(1.05, 1.0, 1.1), "undecided"),
        (Quantity(1.05, 1.0 + 1e-12, 1.1), "holds"),
    ],
)
def test_greater_needs_the_whole_interval(quantity: Quantity, outcome: str) -> None:
    assert greater("x", "x", quantity).outcome == outcome


@pytest.mark.parametrize(
    ("quantity", "outcome"),
    [
        (Quantity(3.0, 2.5, 3.5), "holds"),
        (Quantity(3.0, 1.9, 3.5), "undecided"),
        (Quantity(5.0, 4.5, 5.5), "fails"),
        (Quantity(4.0), "holds"),
        (Quantity(4.01), "fails"),
    ],
)
def test_within_needs_the_whole_interval(quantity: Quantity, outcome: str) -> None:
    assert within("x", "x", quantity, 2.0, 4.0).outcome == outcome


def test_equal_is_a_margin_on_both_sides() -> None:
    assert equal("x", "x", Quantity(1.0, 0.99, 1.01)).outcome == "holds"
    assert equal("x", "x", Quantity(1.0, 0.97, 1.01)).outcome == "undecided"
    assert equal("x", "x", Quantity(1.1, 1.05, 1.15)).outcome == "fails"
    assert equal("x", "x", Quantity(1 / 1.02)).outcome == "holds"


def test_an_order_is_as_sure_as_its_least_sure_step() -> None:
    a, b, c = Quantity(3, 2.8, 3.2), Quantity(2, 1.9, 2.1), Quantity(1.95, 1.8, 2.0)
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
    assert quantity_text(Quantity(2.93, 2.22, 3.86), "s") == "2.9 [2.2, 3.9] s"


def _result(outcome: str = "holds") -> StudyResult:
    statement = Statement("s", "says", "ours", "holds" if outcome == "holds" else "fails", "1.0")
    figure = Figure("f", "t", "", Quantity(4.0), Quantity(5.0))
    return StudyResult([figure], [statement], [])


def test_expectations_find_what_is_wrong_missing_or_not_expected() -> None:
    wanted = {"s": ExpectedStatement(outcome="holds", why="")}
    bound = ExpectedFigure(table="t", name="f", at_least=4, at_most=6, why="")
    expected = Expected(statements=wanted, figures=[bound])
    assert unmet(expected, _result()) == []
    assert unmet(expected, _result("fails")) == ["s: fails, not holds: 1.0"]
    assert unmet(Expected(figures=[bound]), _result()) == ["nothing is expected of the statement s"]
    assert unmet(Expected(statements=wanted | {"u": wanted["s"]}), _result()) == ["there is no statement u"]
    tight = bound.model_copy(update={"at_most": 4.5})
    assert unmet(Expected(statements=wanted, figures=[tight]), _result()) == [
        "t: f is 5, not within 4 to 4.5"
    ]
    other = bound.model_copy(update={"name": "g"})
    assert unmet(Expected(statements=wanted, figures=[other]), _result()) == [
        "there is no figure of ours t: g"
    ]


def test_the_ratio_of_a_figure() -> None:
    assert _result().figure("t", "f").ratio == 1.25
    assert Figure("f", "t", "", None, Quantity(5.0)).ratio is None


def test_published_figures_by_column_and_condition() -> None:
    published = Published("ionice")
    assert published.figures("dd_summary.csv", "elapsed_s") == [4.17328, 5.39265]
    assert len(published.rows("iotop_processes.csv", ionice_prio="0")) == 4
    with pytest.raises(DataError, match="no line with"):
        published.rows("iotop_processes.csv", ionice_prio="3")
    with pytest.raises(DataError, match="column speed"):
        published.figures("dd_summary.csv", "speed")
    with pytest.raises(DataError, match="column machine"):
        published.figures("dd_summary.csv", "machine")
    with pytest.raises(DataError, match=r"published/none\.csv"):
        published.rows("none.csv")


class _Model(BaseModel):
    size: int


def test_mistakes_in_a_study_folder_name_file_and_key(tmp_path: Path) -> None:
    published = Published("ionice")
    published.folder = tmp_path
    with pytest.raises(SpecError, match=r"studies/ionice/set-up\.toml: cannot be read"):
        published.set_up(_Model)
    (tmp_path / "set-up.toml").write_text("size = 'large'")
    with pytest.raises(SpecError, match=r"set-up\.toml: size: "):
        published.set_up(_Model)
    (tmp_path / "set-up.toml").write_text("size = ")
    with pytest.raises(SpecError, match=r"studies/ionice/set-up\.toml: "):
        published.set_up(_Model)
    (tmp_path / "x.fio").write_text("[r]\nrw=read\nsize=$size\n")
    assert published.workload("x.fio", size="1m").jobs[0].size_bytes == 1 << 20
    with pytest.raises(SpecError, match="no value for 'size'"):
        published.workload("x.fio")
    with pytest.raises(SpecError, match="cannot be read"):
        published.workload("y.fio")
