"""The seed of tests that draw at random: new for each run, shown on failure, fixed on request."""

from __future__ import annotations

import os
import secrets
from collections.abc import Generator

import pytest

SEED_VARIABLE = "BLKLAB_TEST_SEED"
"""Fixes the seed of all tests that draw at random, so that a failure can be reproduced."""


@pytest.fixture
def seed() -> int:
    """The seed of one test, drawn anew unless the environment fixes it."""
    fixed = os.environ.get(SEED_VARIABLE)
    return secrets.randbelow(1 << 31) if fixed is None else int(fixed)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds the seed to a failure's report."""
    report = yield
    drawn = getattr(item, "funcargs", {}).get("seed")
    if report.failed and drawn is not None:
        command = f"{SEED_VARIABLE}={drawn} pytest '{item.nodeid}'"
        report.sections.append(("Seed", f"the seed was {drawn}; to draw the same again: {command}"))
    return report
