"""The bench of how the simulator's cost grows counts what it says."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

BENCHES = Path(__file__).parents[2] / "benches"


@pytest.fixture(name="growth")
def growth_bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHES))
    return importlib.import_module("simulated_growth")


@pytest.mark.parametrize("size", ["jobs", "groups", "disks", "files"])
def test_each_job_does_50_ios_beyond_the_shorter_run(growth: Any, size: str) -> None:
    """With fewer, starting and ending would be much of what is counted."""
    chosen = growth.SIZES[size]
    for value in chosen.values:
        few, many = (
            int(found[1])
            for load in chosen.lengths(value, growth.FEW_IOS)
            if (found := re.search(r"^number_ios=(\d+)$", load.jobs, re.MULTILINE))
        )
        assert few >= 10 and many - few >= 50, f"{value}: {few} and {many} I/Os of each job"
