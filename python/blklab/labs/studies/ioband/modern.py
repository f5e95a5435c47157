"""Reads the runs of today's controllers: bfq's group weights and io.cost."""

from __future__ import annotations

from collections.abc import Mapping

from blklab.labs.studies.ioband.experiments import (
    BFQ,
    IO_COST,
    IO_COST_AUTOMATIC,
    competing_workload,
    modern_controllers,
    modern_disks,
    modern_name,
)
from blklab.labs.studies.ioband.set_up import GROUPS, IobandSetUp
from blklab.labs.studies.ioband.shares import Shares, competing_shares, farthest, shares_text
from blklab.labs.studies.replication.options import StudyOptions
from blklab.labs.studies.replication.pictures import IntervalPicture, IntervalRow
from blklab.labs.studies.replication.result import ComparedValue, IntervalEstimate, Statement, StudyResult
from blklab.labs.studies.replication.statements import within
from blklab.records.experiment import ExperimentRecord

WITHIN_POINTS = 5.0
"""Tolerance in percentage points: bfq charges groups by the sectors of a queue's turn, and a run has some
hundred turns."""
NO_WEIGHTS = "no weights"
_STATEMENT_NAMES = {
    NO_WEIGHTS: "no-weights",
    BFQ: "bfq",
    IO_COST: "io-cost",
    IO_COST_AUTOMATIC: "io-cost-automatic",
}

SharesByRun = Mapping[tuple[str, str, str], Shares]
"""By controller, disk and phase."""


def read_modern(
    options: StudyOptions, set_up: IobandSetUp, records: Mapping[str, ExperimentRecord]
) -> StudyResult:
    """Compares the shares by controller, disk and phase with the weights."""
    disks, modern = modern_disks(options, set_up), set_up.modern
    runs = {
        NO_WEIGHTS: (BFQ, modern.bfq[1]),
        BFQ: (BFQ, modern.bfq[0]),
        IO_COST: (IO_COST, modern.io_cost[0]),
        IO_COST_AUTOMATIC: (IO_COST_AUTOMATIC, modern.io_cost[0]),
    }
    runs = {controller: run for controller, run in runs.items() if run[0] in modern_controllers(options)}
    shares_by_run: dict[tuple[str, str, str], Shares] = {}
    for controller, (experiment, scheduler) in runs.items():
        for disk in disks:
            record = records[modern_name(experiment, disk)]
            for phase in modern.phases:
                found = competing_shares(record, scheduler, competing_workload(phase, set_up.threads))
                if found is not None:
                    shares_by_run[controller, disk, phase] = found
    statements = [
        _statement(controller, disk, shares_by_run, set_up) for controller in runs for disk in disks
    ]
    values = [
        ComparedValue(
            f"{_run_name(controller, disk, phase)}, group {group}",
            "Today's controllers: shares",
            "%",
            IntervalEstimate(intended),
            IntervalEstimate(share),
            beside="intended",
        )
        for (controller, disk, phase), found in shares_by_run.items()
        if controller != NO_WEIGHTS
        for group, share, intended in zip(GROUPS, found, set_up.wanted, strict=True)
    ]
    rows = tuple(IntervalRow(_run_name(*key), found[-1]) for key, found in shares_by_run.items())
    picture = IntervalPicture(
        "modern",
        "Share of the group of weight 60 under today's controllers",
        "Continuous direct I/O, four threads in each group.",
        "%",
        rows,
        ((100 / 3, "a third"), (set_up.wanted[-1], "intended")),
    )
    return StudyResult(values, statements, [picture] if rows else [])


def _statement(controller: str, disk: str, shares_by_run: SharesByRun, set_up: IobandSetUp) -> Statement:
    wanted = set_up.wanted if controller != NO_WEIGHTS else tuple(100 / len(GROUPS) for _ in GROUPS)
    text = "/".join(f"{share:.0f}" for share in wanted)
    name = f"{_STATEMENT_NAMES[controller]}-{disk}" if disk else _STATEMENT_NAMES[controller]
    on_disk = f" on {disk}" if disk else ""
    says = (
        f"With {controller}{on_disk}, four direct threads in each group get {text} % within "
        f"{WITHIN_POINTS:g} percentage points."
    )
    mine = {key: found for key, found in shares_by_run.items() if key[:2] == (controller, disk)}
    if not mine:
        return Statement(name, says, "ours", "undecided", "no run succeeded")
    found = "; ".join(f"{phase} {shares_text(shares)} %" for (_, _, phase), shares in mine.items())
    worst = max(farthest(shares, wanted) for shares in mine.values())
    return within(name, says, IntervalEstimate(worst), 0, WITHIN_POINTS, unit="percentage points", why=found)


def _run_name(controller: str, disk: str, phase: str) -> str:
    return ", ".join(part for part in (controller, disk, phase) if part)
