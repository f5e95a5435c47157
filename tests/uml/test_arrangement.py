"""Arrangements in guests: the same accidents as in the simulator, from the same seed."""

from __future__ import annotations

from importlib import import_module
from typing import Literal

import pytest

from blklab.backends.protocol import SessionOptions
from blklab.spec.plan import Cell, CellKey
from blklab.spec.schedulers import parse_scheduler_choice
from blklab.spec.targets import parse_target
from blklab.spec.workloads import parse_workload

pytestmark = pytest.mark.usefixtures("real_guest")

READERS = "[reader]\nrw=read\nbs=64k\ndirect=1\nnumjobs=2\nsize=1g\ntime_based\nruntime=1s\n"


def _reads(backend: str, seed: int, arrangement: Literal["drawn", "fixed"] = "drawn") -> int:
    module = import_module(f"blklab.backends.{backend}")
    workload = parse_workload(READERS, name="readers", source="readers.fio")
    scheduler = parse_scheduler_choice("mq-deadline")
    key = CellKey(block=0, sequence=0, position=0, workload="readers", scheduler="mq-deadline", seed=seed)
    options = SessionOptions(run_id="test", arrangement=arrangement)
    with module.BACKEND.open(parse_target(f"{backend}:hdd-7200"), options) as session:
        sample = session.run(Cell(key=key, workload=workload, scheduler=scheduler))
    assert sample.error is None
    assert sample.engine["arrangement"] == (seed if arrangement == "drawn" else None)
    return sum(direction.ios for job in sample.jobs for direction in job.directions)


def test_a_guest_has_the_accidents_of_the_simulator() -> None:
    found = {seed: _reads("uml", seed) for seed in (1, 2)}
    assert found[1] != found[2]
    for seed, reads in found.items():
        assert reads == pytest.approx(_reads("sim", seed), rel=0.01)


def test_a_fixed_arrangement_knows_no_accidents() -> None:
    assert _reads("uml", 1, "fixed") == _reads("uml", 2, "fixed")
