"""Today's ways to give groups shares: bfq's group weights and io.cost."""

from __future__ import annotations

from collections.abc import Mapping

from blklab.records.experiment import ExperimentRecord
from blklab.studies.ioband.experiments import (
    BFQ,
    IO_COST,
    IO_COST_AUTOMATIC,
    competing_workload,
    modern_disks,
    modern_name,
    modern_ways,
)
from blklab.studies.ioband.set_up import GROUPS, IobandSetUp
from blklab.studies.ioband.shares import Shares, competing_shares, farthest, shares_text
from blklab.studies.replication.options import StudyOptions
from blklab.studies.replication.pictures import IntervalPicture, IntervalRow
from blklab.studies.replication.result import ComparedValue, Estimate, Statement, StudyResult
from blklab.studies.replication.statements import within

RIGHT_WITHIN = 5.0
"""Points: bfq serves groups by sectors of queues' turns, and a run has some hundred of them."""
NO_WEIGHTS = "no weights"
_WAYS = {NO_WEIGHTS: "no-weights", BFQ: "bfq", IO_COST: "io-cost", IO_COST_AUTOMATIC: "io-cost-automatic"}

Cells = Mapping[tuple[str, str, str], Shares]
"""By way, disk and phase."""


def read_modern(
    options: StudyOptions, set_up: IobandSetUp, records: Mapping[str, ExperimentRecord]
) -> StudyResult:
    """Shares by way, disk and phase."""
    disks, modern = modern_disks(options, set_up), set_up.modern
    runs = {
        NO_WEIGHTS: (BFQ, modern.bfq[1]),
        BFQ: (BFQ, modern.bfq[0]),
        IO_COST: (IO_COST, modern.io_cost[0]),
        IO_COST_AUTOMATIC: (IO_COST_AUTOMATIC, modern.io_cost[0]),
    }
    runs = {way: run for way, run in runs.items() if run[0] in modern_ways(options)}
    cells: dict[tuple[str, str, str], Shares] = {}
    for way, (experiment, scheduler) in runs.items():
        for disk in disks:
            record = records[modern_name(experiment, disk)]
            for phase in modern.phases:
                found = competing_shares(record, scheduler, competing_workload(phase, set_up.threads))
                if found is not None:
                    cells[way, disk, phase] = found
    statements = [_statement(way, disk, cells, set_up) for way in runs for disk in disks]
    values = [
        ComparedValue(
            f"{_place(way, disk, phase)}, group {group}",
            "Today's ways: shares",
            "%",
            Estimate(intended),
            Estimate(share),
            beside="intended",
        )
        for (way, disk, phase), found in cells.items()
        if way != NO_WEIGHTS
        for group, share, intended in zip(GROUPS, found, set_up.wanted, strict=True)
    ]
    rows = tuple(IntervalRow(_place(*key), found[-1]) for key, found in cells.items())
    picture = IntervalPicture(
        "modern",
        "Share of the group of weight 60 with today's ways",
        "Direct work all the time, four threads in each group.",
        "%",
        rows,
        ((100 / 3, "a third"), (set_up.wanted[-1], "intended")),
    )
    return StudyResult(values, statements, [picture] if rows else [])


def _statement(way: str, disk: str, cells: Cells, set_up: IobandSetUp) -> Statement:
    wanted = set_up.wanted if way != NO_WEIGHTS else tuple(100 / len(GROUPS) for _ in GROUPS)
    text = "/".join(f"{share:.0f}" for share in wanted)
    name = f"{_WAYS[way]}-{disk}" if disk else _WAYS[way]
    on_disk = f" on {disk}" if disk else ""
    says = (
        f"With {way}{on_disk}, four direct threads in each group get {text} % within {RIGHT_WITHIN:g} points."
    )
    mine = {key: found for key, found in cells.items() if key[:2] == (way, disk)}
    if not mine:
        return Statement(name, says, "ours", "undecided", "no run succeeded")
    found = "; ".join(f"{phase} {shares_text(shares)} %" for (_, _, phase), shares in mine.items())
    worst = max(farthest(shares, wanted) for shares in mine.values())
    return within(name, says, Estimate(worst), 0, RIGHT_WITHIN, unit="points", why=found)


def _place(way: str, disk: str, phase: str) -> str:
    return ", ".join(part for part in (way, disk, phase) if part)
