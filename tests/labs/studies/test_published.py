"""The five published studies: the findings of an independent analysis, and the page."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from blklab.cli.analyse import command
from blklab.errors import SpecError, UnknownNameError
from blklab.labs.studies.published.claims import Claim, read_claim
from blklab.labs.studies.published.page import IMAGES, published_studies_page
from blklab.labs.studies.published.study import (
    load_published_study,
    published_study_names,
    read_published_study,
)
from blklab.report.pages.page_files import FOLDER

ROOT = Path(__file__).parents[3]
REFRESH = "refresh with `python -m blklab.labs.studies.published.page docs/appendix/studies.md`"


def _cells(study: str, reanalysis: str, *more: str) -> list[dict[str, object]]:
    """The cells that the command itself prints for a reanalysis of a study."""
    options = next(one for one in load_published_study(study)[0].reanalyses if one.name == reanalysis)
    arguments = options.arguments(study)
    arguments[0] = str(ROOT / arguments[0])
    result = CliRunner().invoke(command, [*arguments, *more, "--json", "-"], standalone_mode=False)
    assert result.exception is None, result.output
    cells: list[dict[str, object]] = json.loads(result.output)["cells"]
    return cells


def _pair(cell: dict[str, object], first: str, second: str) -> dict[str, Any]:
    pairs = cell["pairs"]
    assert isinstance(pairs, list)
    found: dict[str, Any] = next(one for one in pairs if {one["first"], one["second"]} == {first, second})
    if found["first"] == first:
        return found
    values = (found["estimate"], found["ci_high"], found["ci_low"])
    turned = [1 / value if found["scale"] == "ratio" else -value for value in values]
    return {**found, **dict(zip(("estimate", "ci_low", "ci_high"), turned, strict=True))}


def _interval(pair: dict[str, Any], digits: int) -> tuple[float, float, float]:
    estimate, low, high = (round(pair[name], digits) for name in ("estimate", "ci_low", "ci_high"))
    return estimate, low, high


def test_fifteen_runs_only_mq_deadline_over_bfq_survives() -> None:
    cached, buffered = _cells("hdparm-fifteen", "schedulers")
    assert buffered["condition"] == {"test": "buffered disk reads"}
    pairs = buffered["pairs"]
    assert isinstance(pairs, list)
    survivors = [(one["first"], one["second"]) for one in pairs if one["p_adjusted"] < 0.05]
    assert survivors == [("mq-deadline", "bfq")]
    assert _interval(_pair(buffered, "mq-deadline", "bfq"), 1) == (47.0, 18.4, 75.6)
    for cell in (cached, buffered):
        kyber = _pair(cell, "kyber", "mq-deadline")
        assert kyber["outcome"] == "open"
        assert kyber["ci_low"] < 0 < kyber["ci_high"]


def test_fifteen_runs_drift() -> None:
    cached, _ = _cells("hdparm-fifteen", "schedulers")
    levels = cached["levels"]
    assert isinstance(levels, list)
    drifting = {one["level"]: one["trend"]["tau"] for one in levels if one["trend"]["p_adjusted"] < 0.05}
    assert drifting == {"mq-deadline": pytest.approx(0.524, abs=0.001)}
    assert {one["level"] for one in levels if one["trend"]["p"] < 0.05} == {"mq-deadline", "kyber"}


@pytest.mark.parametrize("machine", ["machine-1", "machine-2"])
def test_with_three_runs_no_pair_survives(machine: str) -> None:
    cells = _cells("hdparm-four-schedulers", machine)
    assert len(cells) == 2
    for cell in cells:
        pairs = cell["pairs"]
        assert isinstance(pairs, list)
        assert len(pairs) == 6
        assert all(one["p_adjusted"] >= 0.05 and one["outcome"] == "open" for one in pairs)


def test_ioband_weights_are_not_visible() -> None:
    case_1 = _cells("ioband", "shares")[0]
    levels = case_1["levels"]
    assert isinstance(levels, list)
    assert [round(one["mean"], 1) for one in levels] == [33.3, 33.3, 33.4]
    assert {reading.status for reading in read_published_study("ioband").claims} == {"contradicted"}


def test_ionice_ratio_is_the_mean_of_four_samples() -> None:
    pair = _pair(_cells("ionice", "priorities")[0], "0", "7")
    assert pair["n"] == 4
    assert _interval(pair, 2) == (2.93, 2.22, 3.86)


def test_deadline_and_noop_are_equal() -> None:
    pair = _pair(_cells("iozone-raid10", "tests")[0], "deadline", "noop")
    assert pair["n"] == 13
    assert _interval(pair, 3) == (0.998, 0.987, 1.008)
    assert pair["outcome"] == "equal"


def test_every_claim_is_read_and_the_readings_are_these() -> None:
    counts = {
        name: [claim.status for claim in read_published_study(name).claims]
        for name in published_study_names()
        if load_published_study(name)[0].claims
    }
    assert set(counts) == {"hdparm-fifteen", "hdparm-four-schedulers", "ioband", "ionice", "iozone-raid10"}
    assert counts["ionice"] == ["supported"]
    assert counts["iozone-raid10"] == ["contradicted", "not supported"]
    assert set(counts["hdparm-four-schedulers"]) == {"not supported"}
    assert counts["hdparm-fifteen"].count("supported") == 1


def test_a_claim_turned_round_is_contradicted() -> None:
    reading = read_published_study("ionice")
    turned = reading.study.claims[0].model_copy(update={"kind": "lower"})
    answer = reading.answers["priorities"]
    assert read_claim(turned, answer.findings, 0.95).status == "contradicted"
    fifteen = read_published_study("hdparm-fifteen").answers["schedulers"]
    claim = Claim(
        says="mq-deadline beats bfq",
        reanalysis="schedulers",
        condition={"test": "buffered disk reads"},
        kind="higher",
        level="mq-deadline",
        than=["bfq"],
    )
    assert read_claim(claim, fifteen.findings, 0.95).status == "supported"
    assert (
        read_claim(claim.model_copy(update={"kind": "equal"}), fifteen.findings, 0.95).status
        == "contradicted"
    )
    shares = read_published_study("ioband").answers["shares"]
    thirds = Claim(
        says="a third each",
        reanalysis="shares",
        condition={"test_case": "case 1"},
        kind="shares",
        shares={"1": 33.3, "2": 33.3, "3": 33.4},
    )
    assert read_claim(thirds, shares.findings, 0.95).status == "supported"
    mistakes: list[dict[str, Any]] = [{"level": "cfq"}, {"condition": {}}, {"condition": {"test": "x"}}]
    for wrong in mistakes:
        with pytest.raises(SpecError):
            read_claim(claim.model_copy(update=wrong), fifteen.findings, 0.95)


def test_the_page_and_its_plots_are_up_to_date() -> None:
    page = published_studies_page()
    appendix = ROOT / "docs" / "appendix"
    assert (appendix / "studies.md").read_text(encoding="utf-8") == page.text, REFRESH
    for folder, kind, files in (
        (appendix / IMAGES, "*.svg", page.pictures),
        (appendix / FOLDER, "studies-*.csv", page.tables),
    ):
        assert {path.name for path in folder.glob(kind)} == set(files), REFRESH
        for name, text in files.items():
            assert (folder / name).read_text(encoding="utf-8") == text, f"{name}: {REFRESH}"


def test_the_command_writes_page_and_plots(tmp_path: Path) -> None:
    page = tmp_path / "studies.md"
    old = tmp_path / IMAGES / "old.svg"
    old.parent.mkdir(parents=True)
    old.touch()
    subprocess.run([sys.executable, "-m", "blklab.labs.studies.published.page", str(page)], check=True)
    assert page.read_text(encoding="utf-8").startswith("# Five published studies")
    assert not old.exists()
    assert str(ROOT) not in page.read_text(encoding="utf-8")


def test_unknown_study() -> None:
    with pytest.raises(UnknownNameError, match="there are: hdparm-fifteen"):
        try:
            load_published_study("x")
        except UnknownNameError as error:
            raise UnknownNameError(error.hint or "") from error
