"""Comparisons for programs: data frames, pictures, and the way back to a stored run."""

from __future__ import annotations

import math
import sys
from datetime import datetime
from typing import get_args
from xml.etree import ElementTree as ET

import pytest

import blklab
from blklab.api.tables import TableName
from blklab.errors import MissingToolError, SpecError, UnknownNameError, UsageError
from blklab.testing.experiments import make_experiment, make_spec, make_workload

JOB = "[reader]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=8\nnumber_ios=300\nsize=64m\n"
DEVICE = "sim:fixed,latency=200us,depth=4,jitter=40us"
HOSTILE = '</script><b>"it\'s" & more'


@pytest.fixture
def comparison(job: str) -> blklab.Comparison:
    return blklab.compare(DEVICE, workloads=[job], schedulers=["none", "mq-deadline"], blocks=3, seed=5)


@pytest.mark.parametrize("name", get_args(TableName))
def test_frames_hold_the_table(comparison: blklab.Comparison, name: TableName) -> None:
    pandas = pytest.importorskip("pandas", reason="needs pandas (blklab[pandas])")
    pytest.importorskip("polars", reason="needs polars (blklab[polars])")
    table = comparison.table(name)
    panda, polar = comparison.to_pandas(name), comparison.to_polars(name)
    assert list(panda.columns) == polar.columns == list(table)
    for column, held in table.items():
        if held.kind == "time":
            times = [datetime.fromisoformat(value) for value in held.values]
            assert list(panda[column]) == times
            assert polar[column].to_list() == times
        else:
            assert [None if one is pandas.NA else one for one in panda[column].tolist()] == held.values
            assert polar[column].to_list() == held.values


def test_frames_agree_with_the_document(comparison: blklab.Comparison) -> None:
    polars = pytest.importorskip("polars", reason="needs polars (blklab[polars])")
    results = comparison.to_polars()
    assert len(results) == len(comparison.document.results)
    runs = comparison.to_polars("runs")
    means = runs.group_by("scheduler").agg(polars.col("iops").log().mean().exp())
    for scheduler, mean in means.iter_rows():
        row = results.filter(scheduler=scheduler, metric="iops")
        assert row["mean"].item() == pytest.approx(mean)


def test_a_failed_run_has_no_values() -> None:
    record = make_experiment(
        make_spec(["none", "bfq"], [make_workload("reads")], blocks=3), failures=[(1, "reads", "bfq")]
    )
    table = blklab.Comparison(record).table("runs")
    failed = table["status"].values.index("failed")
    assert table["iops"].values[failed] is None
    assert table["error"].values[failed]
    assert sum(value is None for value in table["iops"].values) == 1


def test_a_missing_library_is_named(comparison: blklab.Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    for library, convert in (
        ("pandas", comparison.to_pandas),
        ("polars", comparison.to_polars),
        ("altair", comparison.interactive),
    ):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(MissingToolError, match=f"(?i){library}") as raised:
            convert()
        assert raised.value.hint == f"pip install 'blklab[{library}]'"


def test_a_stored_comparison_is_the_same_and_can_be_analysed_anew(comparison: blklab.Comparison) -> None:
    stored = blklab.load(comparison.record.run_id[-4:])
    assert stored.document == comparison.document
    assert stored.reanalysed(margin=0.4).document.margin == 0.4
    assert stored.document.margin == 0.02
    assert stored.reanalysed(margin=9.0 / 10).document.verdict.status == "equal"


def test_charts_are_pictures_of_their_own(comparison: blklab.Comparison) -> None:
    charts = comparison.charts()
    assert charts == comparison.charts(comparison.record.spec.workloads[0].name)
    for chart in charts:
        root = ET.fromstring(chart.svg)  # noqa: S314 - our own picture
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert "http" not in chart.svg.replace("http://www.w3.org/2000/svg", "")
        words = " ".join(root.itertext())
        assert "none" in words
        assert "mq-deadline" in words
        assert all(math.isfinite(float(number)) for number in root.attrib["viewBox"].split())
        bundle = chart._repr_mimebundle_(include=None, exclude=None)
        assert bundle == {"image/svg+xml": chart.svg, "text/plain": chart.description}


def test_an_interactive_chart_has_the_values(comparison: blklab.Comparison) -> None:
    pytest.importorskip("altair", reason="needs Altair (blklab[altair])")
    workload = comparison.record.spec.workloads[0].name
    for metric in (None, "latency_p99"):
        # Altair checks the document by Vega-Lite's schema.
        means, runs = comparison.interactive(workload, metric).to_dict()["vconcat"]
        wanted = metric or next(one.metric for one in comparison.document.verdicts if one.decides)
        assert [row["mean"] for row in means["data"]["values"]] == [
            one.mean for one in comparison.document.results if one.metric == wanted
        ]
        assert [row["value"] for row in runs["data"]["values"]] == comparison.table("runs")[wanted].values
    with pytest.raises(UnknownNameError, match="no values of speed") as raised:
        comparison.interactive(metric="speed")
    offered = str(raised.value.hint).removeprefix("there are ").split(", ")
    assert len(offered) == len(set(offered)), "a metric is offered once for each scheduler"
    with pytest.raises(UnknownNameError, match="no workload 'other'"):
        comparison.interactive("other")


def test_hostile_names_stay_text() -> None:
    workload = make_workload(HOSTILE, purpose=HOSTILE)
    spec = make_spec(["none", "bfq"], [workload], blocks=3)
    renamed = spec.schedulers[1].model_copy(update={"label": HOSTILE})
    spec = spec.model_copy(update={"schedulers": [spec.schedulers[0], renamed]})
    shown = blklab.Comparison(make_experiment(spec))
    for chart in shown.charts():
        assert "<b>" not in chart.svg
        assert ET.fromstring(chart.svg).tag.endswith("svg")  # noqa: S314
    html = shown._repr_html_()
    assert html.count("<") == 2
    assert html.startswith("<iframe ")


def test_a_comparison_shows_its_report(comparison: blklab.Comparison) -> None:
    html = comparison._repr_html_()
    assert 'sandbox="allow-scripts"' in html
    assert "allow-same-origin" not in html
    assert "mq-deadline" in str(comparison)
    assert comparison.record.run_id in repr(comparison)


def test_mistakes_are_named(comparison: blklab.Comparison, job: str) -> None:
    with pytest.raises(UsageError, match="no argument 'shedulers'"):
        blklab.compare(DEVICE, shedulers=["none"])  # type: ignore[call-arg]
    with pytest.raises(SpecError, match="blocks"):
        blklab.compare(DEVICE, workloads=[job], blocks="many")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="no workload 'other'"):
        comparison.charts("other")
    with pytest.raises(UnknownNameError, match="no table 'rows'"):
        comparison.table("rows")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError):
        blklab.load("no-such-run")
