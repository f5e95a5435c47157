"""Published rates by number of jobs, which the simulator is to reproduce (benches/scaling)."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

SCALING = Path(__file__).parents[2] / "benches" / "scaling"


@pytest.fixture(name="cells")
def cells_of_bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SCALING))
    # Another bench's module of this name may have been imported before.
    monkeypatch.delitem(sys.modules, "cells", raising=False)
    return importlib.import_module("cells")


def test_findings_are_those_of_the_published_rates(cells: Any) -> None:
    published = cells.published_rates()
    findings = importlib.import_module("findings").FINDINGS
    assert len(published) == 144
    assert all(finding.holds(published) for finding in findings)


def test_rates_that_were_not_fitted_are_predicted(cells: Any) -> None:
    published = cells.published_rates()
    chosen = [
        cells.Cell(figure, cpus, jobs, depth, scheduler)
        for figure, cpus, jobs, depth in (("2", 1, 1, 8), ("2", 1, 1, 32), ("7", 10, 6, 128))
        for scheduler in cells.SCHEDULERS
    ]
    assert not any(cell.is_fitted for cell in chosen)
    simulated = cells.simulated_rates(chosen)
    for cell in chosen:
        assert simulated[cell] == pytest.approx(published[cell], rel=0.15), cell
