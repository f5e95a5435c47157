"""Reports on fleets and on pairs of runs, for whatever a store may hold."""

from __future__ import annotations

import io
import json
import random

import pytest

from blklab.analysis.between_runs import compare_runs
from blklab.analysis.fleet import analyse_fleet
from blklab.records.experiment import ExperimentRecord
from blklab.report.documents.between_runs import change_document
from blklab.report.documents.fleet import fleet_document
from blklab.report.terminal import Terminal
from blklab.report.text.between_runs import render_change
from blklab.report.text.fleet import evidence_lines, render_fleet
from blklab.spec.drive_classes import DriveClass
from blklab.testing.experiments import (
    SchedulerBehaviour,
    make_experiment,
    make_spec,
    make_target,
    make_workload,
)
from fleet_records import on_drive

_SCHEDULERS = ("none", "mq-deadline", "bfq", "kyber:read_lat_nsec=5", "mine=bfq:slice_idle=0")


def _drawn(chance: random.Random, number: int) -> ExperimentRecord:
    """An experiment of any size, of which any part may have failed."""
    workloads = [
        make_workload(name, control=name == "c", decide_by="latency_p99" if name == "b" else "iops")
        for name in chance.sample("abc", chance.randint(1, 3))
    ]
    spec = make_spec(
        tuple(chance.sample(_SCHEDULERS, chance.randint(1, 4))),
        workloads,
        blocks=chance.randint(1, 5),
        seed=chance.randint(1, 5),
    )
    share = chance.choice((0, 0.1, 0.9))
    record = make_experiment(
        spec,
        failures={
            (block, workload.name, choice.label)
            for block in range(5)
            for workload in workloads
            for choice in spec.schedulers
            if chance.random() < share
        },
        behaviours={
            choice.label: SchedulerBehaviour(noise=chance.choice((0, 0.02))) for choice in spec.schedulers
        },
        block_noise=chance.choice((0, 0.05)),
        state=chance.choice(("complete", "interrupted", "running")),
        target=make_target(spec, backend=chance.choice(("host", "sim"))),
    )
    if chance.random() < 0.2:
        return record.model_copy(update={"run_id": f"20260102-0304-z{number:03d}"})
    return on_drive(record, chance.randint(0, 4), run_id=f"20260102-0304-{number:04d}")


@pytest.mark.parametrize("draw", range(12))
def test_whatever_is_stored_has_a_report(draw: int, seed: int) -> None:
    chance = random.Random(seed + draw)  # noqa: S311 - not for secrets
    records = [_drawn(chance, number) for number in range(chance.randint(1, 6))]
    fleet = analyse_fleet(records, confidence=0.95, margin=0.02)
    change = compare_runs(chance.choice(records), chance.choice(records), confidence=0.95, margin=0.02)
    assert all("\n" not in line for line in evidence_lines(fleet))
    for encoding, width in (("utf-8", 80), ("ascii", 60)):
        out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        console = Terminal(file=out, width=width)
        render_fleet(fleet, DriveClass(model="EXAMPLE*"), console)
        render_change(change, console)
        out.flush()
        assert out.buffer.tell() > 100
    for document in (fleet_document(DriveClass(kind="nvme"), fleet), change_document(change)):
        json.loads(document.model_dump_json(by_alias=True), parse_constant=pytest.fail)
