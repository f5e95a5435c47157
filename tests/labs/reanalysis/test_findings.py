"""Findings of a stratum: error rates, pairs, shares, and warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from blklab.labs.reanalysis.design import ComparisonScale, DataDesign, DesignRequest, infer_design
from blklab.labs.reanalysis.findings import StratumFindings, analyse_stratum
from blklab.labs.reanalysis.readers.protocol import Location, Measurement, Problem
from blklab.labs.reanalysis.report.wording import not_supported_sentences, supported_sentences
from blklab.labs.reanalysis.strata import arrange_strata, with_shares


def _measured(series: Mapping[str, Sequence[float]], **more: Sequence[str]) -> list[Measurement]:
    """Values by level; the n-th value of each level is in block n."""
    found: list[Measurement] = []
    for level, values in series.items():
        for index, value in enumerate(values):
            factors = {"level": level, "block": str(index)} | {name: v[index] for name, v in more.items()}
            line = len(found) + 1
            found.append(Measurement("rate", value, "MB/s", "higher", factors, Location("f", line)))
    return found


def _design(measurements: Sequence[Measurement], **request: object) -> DataDesign:
    asked = DesignRequest(factor="level", **request)  # type: ignore[arg-type]
    return infer_design(measurements, {"block": "description"}, asked, chronological=False)


def _examined(
    series: Mapping[str, Sequence[float]], *, block: bool = False, **more: object
) -> StratumFindings:
    measurements = _measured(series)
    design = _design(measurements, block=("block",) if block else (), **more)
    cells, _, _ = arrange_strata(measurements, design)
    return analyse_stratum(cells[0], design, confidence=0.95, margin=0.02)


@pytest.mark.parametrize("block", [False, True])
def test_false_claims_stay_below_the_level(block: bool) -> None:
    generator = np.random.default_rng(11)
    names = ("none", "mq-deadline", "kyber", "bfq")
    wrong = 0
    for _ in range(400):
        series = {name: np.exp(generator.normal(7, 0.05, 8)).tolist() for name in names}
        wrong += any(pair.different for pair in _examined(series, block=block).pairs)
    # 5 % of 400 are 20; more than 31 would be a chance of one in a hundred.
    assert wrong <= 31


def test_true_differences_and_equality_are_found() -> None:
    generator = np.random.default_rng(5)
    series = {
        "slow": generator.normal(100, 1, 20).tolist(),
        "fast": generator.normal(110, 1, 20).tolist(),
        "same": generator.normal(100.2, 1, 20).tolist(),
    }
    found = _examined(series)
    outcomes = {(pair.first, pair.second): pair.outcome for pair in found.pairs}
    assert outcomes == {("slow", "fast"): "lower", ("slow", "same"): "equal", ("fast", "same"): "higher"}
    assert supported_sentences(found)[0].startswith("fast is higher than slow (better): +")
    assert not not_supported_sentences(found)
    turned = found.pair("fast", "slow")
    assert turned is not None
    assert (turned.outcome, turned.estimate > 0) == ("higher", True)
    assert turned.ci_low is not None
    assert turned.ci_low < turned.estimate


def test_pairing_frees_from_what_blocks_share() -> None:
    generator = np.random.default_rng(8)
    common = generator.normal(0, 0.5, 12)
    series = {
        "a": np.exp(5 + common + generator.normal(0, 0.01, 12)).tolist(),
        "b": np.exp(5.1 + common + generator.normal(0, 0.01, 12)).tolist(),
    }
    assert _examined(series).pairs[0].outcome == "open"
    paired = _examined(series, block=True).pairs[0]
    assert (paired.outcome, paired.scale) == ("lower", "ratio")
    assert paired.ci_low is not None
    assert paired.ci_high is not None
    assert paired.ci_low < np.exp(-0.1) < paired.ci_high


@pytest.mark.parametrize("scale", ["difference", "ratio"])
def test_one_run_decides_nothing(scale: ComparisonScale) -> None:
    found = _examined({"a": [1.0], "b": [100.0, 101.0]}, scale=scale)
    assert [(pair.outcome, pair.ci_low, pair.p) for pair in found.pairs] == [("open", None, 1.0)]
    assert any("only one run of a" in warning for warning in found.warnings)
    assert any("different numbers" in warning for warning in found.warnings)
    assert "not enough" in not_supported_sentences(found)[0]


def test_zero_has_no_ratio() -> None:
    found = _examined({"a": [0.0, 1.0, 2.0], "b": [1.0, 2.0, 3.0]}, block=True)
    assert found.scale == "difference"
    assert "zero or negative" in found.warnings[0]
    wild = _examined({"a": [1e-30, 1e30], "b": [1e30, 1e-30]}, block=True)
    assert wild.pairs[0].outcome == "open"


def test_blocks_without_a_counterpart_are_said() -> None:
    found = _examined({"a": [1.0, 2.0, 3.0, 4.0], "b": [2.0, 3.0, 4.0]}, block=True)
    assert found.pairs[0].n == 3
    assert any("no counterpart" in warning for warning in found.warnings)


def test_outliers_are_pointed_out_and_take_part() -> None:
    found = _examined({"a": [10.0, 10.1, 9.9, 10.0, 10.2, 50.0], "b": [1.0] * 6})
    level = found.level("a")
    assert level is not None
    assert level.outliers == ("f:6",)
    assert level.mean == pytest.approx(np.mean([10.0, 10.1, 9.9, 10.0, 10.2, 50.0]))
    assert any("not left out" in warning for warning in found.warnings)


def test_shares_need_whole_blocks() -> None:
    measurements = _measured({"a": [10.0, 20.0, 30.0], "b": [30.0, 60.0]})
    design = _design(measurements, block=("block",), share=True)
    cells, _, _ = arrange_strata(measurements, design)
    problems: list[Problem] = []
    shares = with_shares(cells[0], problems)
    assert shares.values("a") == [25.0, 25.0]
    assert shares.values("b") == [75.0, 75.0]
    assert [str(problem.location) for problem in problems] == ["f:3"]


def test_averages_within_blocks_use_what_both_have() -> None:
    measurements = _measured({"a": [1.0, 4.0, 9.0, 100.0], "b": [2.0, 8.0, 18.0]}, test=["x", "x", "y", "y"])
    design = _design(measurements, block=("test",), average=("block",))
    cells, _, _ = arrange_strata(measurements, design)
    pair = analyse_stratum(cells[0], design, confidence=0.95, margin=0.02).pairs[0]
    assert pair.n == 2
    assert pair.estimate == pytest.approx(0.5)
