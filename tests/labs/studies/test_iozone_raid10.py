"""Rates, rows and ratios of iozone's tables, and the surface plot of them."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from blklab.labs.studies.iozone_raid10.experiments import DIRECT_TESTS, STDIO_TESTS, experiments
from blklab.labs.studies.iozone_raid10.orders import order_statements
from blklab.labs.studies.iozone_raid10.rates import mean_rates, overall_ratio, published_rates, rises
from blklab.labs.studies.replication.options import StudyOptions
from blklab.labs.studies.replication.pictures import SurfacePicture
from blklab.labs.studies.replication.report.drawing import draw
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.report.drawing.picture_frame import NARROW
from blklab.simulator.benchmark_emulation import IOZONE_TESTS

SURFACE = SurfacePicture(
    "surface",
    "Title",
    "Note.",
    "test",
    "size",
    "MB/s",
    ("back", "front"),
    ("1k", "2k"),
    ((4.0, 8.0), (1.0, 2.0)),
)


@pytest.fixture(scope="module")
def folder() -> StudyFolder:
    return StudyFolder("iozone-raid10")


def sizes(folder: StudyFolder) -> list[int]:
    return sorted({size for _, _, size in published_rates(folder)})


def test_the_published_table_is_complete(folder: StudyFolder) -> None:
    rates = published_rates(folder)
    assert len(rates) == 390
    assert rates["noop", "write", 32] == pytest.approx(77.720 * 1.024)
    assert {test for _, test, _ in rates} == set(IOZONE_TESTS) == {*DIRECT_TESTS, *STDIO_TESTS}


def test_the_published_ratio_is_that_of_its_reading(folder: StudyFolder) -> None:
    found = overall_ratio(published_rates(folder), "deadline", "noop", sizes(folder))
    assert (found.value, found.low, found.high) == pytest.approx((0.998, 0.987, 1.008), abs=5e-4)


def test_rows_rise_within_the_slack() -> None:
    assert rises([1.0, 2.0, 1.9, 3.0], 0.08)
    assert not rises([1.0, 2.0, 1.7, 3.0], 0.08)


def test_orders_can_fail(folder: StudyFolder) -> None:
    theirs, records = mean_rates(published_rates(folder)), sizes(folder)
    same = {one.name: one.outcome for one in order_statements(theirs, theirs, records, records)}
    assert set(same.values()) == {"holds"}
    level = dict.fromkeys(theirs, 100.0)
    other = {one.name: one.outcome for one in order_statements(level, theirs, records, records)}
    assert {other[name] for name in ("rows-rise", "sequential-over-random-small", "reads-over-writes")} == {
        "fails"
    }


def test_the_printed_experiment_has_every_cell(folder: StudyFolder) -> None:
    printed, *_ = experiments(StudyOptions(), folder)
    spec = printed.spec
    assert (spec.order, spec.blocks) == ("by-scheduler", 1)
    assert [choice.label for choice in spec.schedulers] == ["noop", "cfq", "deadline"]
    assert len(spec.workloads) == 2 * len(sizes(folder))
    assert "raid=10,members=4" in spec.target


@pytest.mark.parametrize("width", [720.0, NARROW])
def test_a_surface_stays_on_its_paper(width: float) -> None:
    image = ET.fromstring(str(draw(SURFACE, width=width, standalone=True)))  # noqa: S314 - our own drawing
    _, _, right, bottom = map(float, image.attrib["viewBox"].split())
    facets = [one.attrib["d"] for one in image.iter() if one.attrib.get("class") == "ground"]
    assert len(facets) == 1
    for path in (one.attrib["d"] for one in image.iter() if "d" in one.attrib):
        for x, y in re.findall(r"(-?[\d.]+) (-?[\d.]+)", path):
            assert 0 <= float(x) <= right
            assert 0 <= float(y) <= bottom
    names = {one.text for one in image.iter() if one.tag.endswith("text")}
    assert {"back", "front", "1k", "2k", "MB/s"} <= names


def test_a_taller_figure_stands_higher() -> None:
    def ridges(picture: SurfacePicture) -> list[str]:
        image = ET.fromstring(str(draw(picture)))  # noqa: S314 - our own drawing
        return [one.attrib["d"] for one in image.iter() if "thin" in one.attrib.get("class", "")]

    def top(path: str) -> float:
        return min(float(y) for _, y in re.findall(r"(-?[\d.]+) (-?[\d.]+)", path))

    lower = replace(SURFACE, values=((4.0, 6.0), (1.0, 8.0)))
    assert top(ridges(SURFACE)[0]) < top(ridges(lower)[0])
