"""Preconditioning tells how long it takes at most, from its first line on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from blklab.errors import RunFailedError
from blklab.linux.load import precondition as precondition_module
from blklab.linux.load.fio import Fio
from blklab.linux.load.fio_output import FioReport
from blklab.linux.load.precondition import LONGEST_S, precondition

STEP = "preconditioning by overwriting /srv at random"


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


class Overwriting:
    """fio, which ends after a time of the clock."""

    def __init__(self, clock: Clock, lasts_s: float) -> None:
        self._clock, self._ends_s = clock, clock.now_s + lasts_s

    @property
    def running(self) -> bool:
        return self._clock.now_s < self._ends_s


def said(
    monkeypatch: pytest.MonkeyPatch, lasts_s: float, error: str | None = None
) -> tuple[list[str], float]:
    """The lines of a preconditioning that lasts so long, and the time spent on telling."""
    clock = Clock()
    lines: list[str] = []

    def run(*_: Any, meanwhile: Any, **__: Any) -> FioReport:
        meanwhile(Overwriting(clock, lasts_s))
        return FioReport(jobs=[], error=error, warnings=[])

    monkeypatch.setattr(precondition_module, "time", clock)
    monkeypatch.setattr(precondition_module, "run_fio", run)
    precondition(
        Fio("/usr/bin/fio", "fio-3.36"),
        {"data": 1 << 20},
        folder="data",
        work_folder=Path("/nonexistent"),
        place="/srv",
        announce=lines.append,
    )
    return lines, clock.now_s - 1000


def test_the_time_left_is_told_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    lines, _ = said(monkeypatch, 12)
    assert lines[:2] == [f"at most 10 min, {STEP}", f"at most 10 min left, {STEP}"]
    assert len(lines) == 5
    assert lines[-1].startswith("preconditioned: ")


def test_the_last_minutes_count_down(monkeypatch: pytest.MonkeyPatch) -> None:
    lines, spent_s = said(monkeypatch, LONGEST_S + 60)
    left = [line.removesuffix(f", {STEP}").removeprefix("at most ") for line in lines]
    assert list(dict.fromkeys(left[1:-1]))[:3] == ["10 min left", "9 min left", "8 min left"]
    assert {"4 s left", "5 s left", "6 s left"} & set(left)
    # A program that does not end is waited for as before, under the limit of its process.
    assert LONGEST_S <= spent_s < LONGEST_S + 1


def test_a_failure_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RunFailedError, match="preconditioning failed: no space"):
        said(monkeypatch, 0, "no space")
