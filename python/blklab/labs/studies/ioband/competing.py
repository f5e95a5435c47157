"""Reads the runs of groups that always have work on the ioband device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from blklab.labs.studies.ioband.experiments import BUFFERED, competing_name, competing_workload
from blklab.labs.studies.ioband.set_up import GROUPS, PHASES, IobandSetUp
from blklab.labs.studies.ioband.shares import Shares, competing_shares, farthest, shares_text
from blklab.labs.studies.replication.pictures import LinePicture, LineSeries, MatrixPicture
from blklab.labs.studies.replication.result import ComparedValue, IntervalEstimate, Statement, StudyResult
from blklab.labs.studies.replication.statements import greater, within
from blklab.records.experiment import ExperimentRecord

WITHIN_POINTS = 2.0
"""Percentage points within which shares count as those of the weights."""
_RANDOM = ("random write", "random read")


def read_competing(set_up: IobandSetUp, records: Mapping[str, ExperimentRecord]) -> StudyResult:
    """Compares the shares by scheduler, phase and number of threads with the weights."""
    default, other = set_up.competing.io_throttle
    direct, eager = records[competing_name(default)], records[competing_name(other)]
    few, many = set_up.threads, max(set_up.competing.threads)
    shares = {
        (scheduler, phase, threads): found
        for scheduler in set_up.competing.schedulers
        for phase in PHASES
        for threads in set_up.competing.threads
        if (found := competing_shares(direct, scheduler, competing_workload(phase, threads))) is not None
    }
    cured = {
        (scheduler, phase): found
        for scheduler in set_up.competing.sorting
        for phase in PHASES
        if (found := competing_shares(eager, scheduler, competing_workload(phase, few))) is not None
    }
    wanted = set_up.wanted
    text = "/".join(f"{share:.0f}" for share in wanted)
    right = {
        key: found for key, found in shares.items() if key[2] == many and _undisturbed(set_up, key[0], key[1])
    }
    single = {
        key: found for key, found in shares.items() if key[2] == few and key[0] in set_up.competing.sorting
    }
    idled = shares[set_up.sim.schedulers[0], "write", few]
    statements = [
        _within_weights(
            "competing-direct",
            f"Direct load on the ioband device, {many} threads in each group: {text} % within "
            f"{WITHIN_POINTS:g} percentage points, under every scheduler for random I/O, and for sequential "
            "I/O under those that do not idle.",
            right,
            wanted,
        ),
        greater(
            "four-threads-too-few",
            f"With {few} threads in each group, as in the document, the shares miss the weights by more than "
            f"{WITHIN_POINTS:g} percentage points.",
            IntervalEstimate(min(farthest(found, wanted) for found in single.values())),
            WITHIN_POINTS,
            origin="ours",
            why=f"nearest of {len(single)} cells, in percentage points; {_spelt(single)}. While a bio of a "
            "group "
            f"completes, {few - 1} are in flight: fewer than io_throttle ({default}), so dm-ioband issues "
            "new "
            "tokens before the heaviest group has used its own",
        ),
        _within_weights(
            "io-throttle-cures",
            f"With io_throttle {other}, {few} threads are enough: {text} % within {WITHIN_POINTS:g} "
            "percentage "
            "points under schedulers that do not idle.",
            cured,
            wanted,
        ),
        greater(
            "idling-hides-weights",
            f"With {set_up.sim.schedulers[0]} beneath, sequential streams do not follow the weights: shares "
            f"miss them by more than {WITHIN_POINTS:g} percentage points.",
            IntervalEstimate(farthest(idled, wanted)),
            WITHIN_POINTS,
            origin="ours",
            why=f"{shares_text(idled)} %: it idles for the process that it serves, which leaves the device "
            "to "
            "one group at a time and tokens unused",
        ),
        _buffered(set_up, records[competing_name(default, BUFFERED)]),
    ]
    return StudyResult(
        _intended_values(shares, many, wanted),
        statements,
        [_by_threads(set_up, shares), _matrix(shares, few, many)],
    )


def _undisturbed(set_up: IobandSetUp, scheduler: str, phase: str) -> bool:
    return scheduler in set_up.competing.sorting or phase in _RANDOM


RunKey = TypeVar("RunKey", bound=tuple[object, ...])


def _within_weights(name: str, says: str, cells: Mapping[RunKey, Shares], wanted: Shares) -> Statement:
    worst = max(cells, key=lambda key: farthest(cells[key], wanted))
    return within(
        name,
        says,
        IntervalEstimate(farthest(cells[worst], wanted)),
        0,
        WITHIN_POINTS,
        unit="percentage points",
        why=f"farthest of {len(cells)} cells: {', '.join(map(str, worst[:2]))}, {shares_text(cells[worst])} "
        "%",
    )


def _spelt(cells: Mapping[tuple[str, str, int], Shares]) -> str:
    return "; ".join(f"{key[0]}, {key[1]}: {shares_text(found)}" for key, found in cells.items())


def _buffered(set_up: IobandSetUp, record: ExperimentRecord) -> Statement:
    third = tuple(100 / len(GROUPS) for _ in GROUPS)
    cells = {
        (scheduler, phase): found
        for scheduler in set_up.competing.schedulers
        for phase in PHASES
        if (found := competing_shares(record, scheduler, competing_workload(phase, set_up.threads)))
    }
    worst = max(cells, key=lambda key: farthest(cells[key], third))
    return within(
        "competing-buffered",
        f"Buffered writes on the ioband device: each group gets a third, within {WITHIN_POINTS:g} percentage "
        "points, whatever its weight.",
        IntervalEstimate(farthest(cells[worst], third)),
        0,
        WITHIN_POINTS,
        unit="percentage points",
        why=f"farthest of {len(cells)} cells: {', '.join(worst)}, {shares_text(cells[worst])} %. "
        "dm-ioband charges the flusher's bios to the default group",
    )


def _intended_values(
    shares: Mapping[tuple[str, str, int], Shares], many: int, wanted: Shares
) -> list[ComparedValue]:
    return [
        ComparedValue(
            f"{scheduler}, {phase}, group {group}",
            f"On the ioband device, {many} threads: shares",
            "%",
            IntervalEstimate(intended),
            IntervalEstimate(share),
            beside="intended",
        )
        for (scheduler, phase, threads), found in shares.items()
        if threads == many
        for group, share, intended in zip(GROUPS, found, wanted, strict=True)
    ]


def _by_threads(set_up: IobandSetUp, shares: Mapping[tuple[str, str, int], Shares]) -> LinePicture:
    scheduler = set_up.competing.schedulers[0]
    counts = set_up.competing.threads
    phase = "random read"
    return LinePicture(
        "threads",
        f"Shares by the threads of each group: {phase}s under {scheduler}",
        "Shares follow the weights as soon as a group has more in flight than io_throttle (4).",
        "threads in each group",
        "%",
        tuple(
            LineSeries(
                f"weight {weight}",
                tuple(float(count) for count in counts),
                tuple(shares[scheduler, phase, count][index] for count in counts),
            )
            for index, weight in enumerate(set_up.weights)
        ),
    )


def _matrix(shares: Mapping[tuple[str, str, int], Shares], few: int, many: int) -> MatrixPicture:
    rows = [
        (scheduler, threads)
        for scheduler in dict.fromkeys(key[0] for key in shares)
        for threads in (few, many)
    ]
    return MatrixPicture(
        "competing",
        "Share of the group of weight 60 on the ioband device, %",
        "Continuous direct I/O. 60 is intended; without weights it would be a third.",
        "scheduler beneath, threads",
        "phase",
        tuple(f"{scheduler}, {threads}" for scheduler, threads in rows),
        tuple(PHASES),
        tuple(
            tuple(shares[scheduler, phase, threads][-1] for phase in PHASES) for scheduler, threads in rows
        ),
        1,
        100 / 3,
    )
