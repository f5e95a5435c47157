"""Reads the runs of the kyber that busy-waits in every dispatch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from blklab.labs.studies.described.runs import arithmetic_mean
from blklab.labs.studies.hdparm.experiments import stock_name, waiting_name
from blklab.labs.studies.hdparm.jobs import BUFFERED, TESTS
from blklab.labs.studies.hdparm.set_up import BusyWait
from blklab.labs.studies.hdparm.timing_tests import (
    MIB,
    UNIT,
    rates_of,
    read_bytes,
    requests_of,
    runtime_s,
)
from blklab.labs.studies.replication.options import StudyOptions
from blklab.labs.studies.replication.pictures import LinePicture, LineSeries
from blklab.labs.studies.replication.result import ComparedValue, IntervalEstimate, StudyResult
from blklab.labs.studies.replication.statements import greater, mean_of, within
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.records.experiment import ExperimentRecord

_TABLE_FILE = "patched_kyber.csv"
_WITHIN = 0.1
"""Tolerance around the rate that the dispatches imply: a run may end in the middle of a dispatch."""


@dataclass(frozen=True)
class Waiting:
    """The rates at one command size."""

    rate: float
    """MiB/s of the kyber that waits."""
    implied: float
    """MiB/s that its dispatches imply: mean bytes of a dispatch over the wait."""
    control: float
    """MiB/s of none."""


def read_busy_wait(
    options: StudyOptions, folder: StudyFolder, wait: BusyWait, records: Mapping[str, ExperimentRecord]
) -> StudyResult:
    """Rates by command size beside the published ones; the host keeps its kernel, so it has none."""
    printed = _published(folder, "kyber")
    table = f"kyber that waits {wait.wait} in every dispatch"
    if options.backend == "host":
        reason = "this machine's kernel is not replaced"
        runs = enumerate(printed, start=1)
        return StudyResult(
            [ComparedValue(f"run {n}", table, UNIT, IntervalEstimate(rate), None, reason) for n, rate in runs]
        )
    measured = {
        size: _waiting(records, wait, options, size)
        for size in wait.max_sectors_kb
        if waiting_name(size) in records
    }
    kept = [one.rate / one.implied for one in measured.values()]
    falls = [one.control / one.rate for one in measured.values()]
    sizes = wait.between_kb
    small, large = (measured[size].rate for size in sizes)
    values = [
        ComparedValue(
            f"commands of at most {size} KiB",
            table,
            UNIT,
            IntervalEstimate(arithmetic_mean(printed)) if size == wait.usual_max_sectors_kb else None,
            IntervalEstimate(one.rate),
        )
        for size, one in measured.items()
    ]
    unknown = "it depends on unknown hardware"
    values.append(
        ComparedValue("none", table, UNIT, IntervalEstimate(_published(folder, "none")[0]), None, unknown)
    )
    statements = [
        within(
            "rate-from-dispatches",
            f"The rate is the bytes of a dispatch over {wait.wait}, within 10 %, at every command size",
            IntervalEstimate(arithmetic_mean(kept), min(kept), max(kept)),
            1 - _WITHIN,
            1 + _WITHIN,
            why="the disk gets only the requests that kyber dispatches",
        ),
        within(
            "published-rate-between",
            f"Published rates lie between ours at {sizes[0]} and {sizes[1]} KiB a command",
            IntervalEstimate(arithmetic_mean(printed), min(printed), max(printed)),
            small,
            large,
            unit=UNIT,
            why="the document does not print the size of its commands",
        ),
        greater(
            "patched-kyber-slower",
            "The patched kyber is slower than none in buffered reads",
            IntervalEstimate(min(falls)),
            why=f"{mean_of(falls).value:.0f} times on average over command sizes",
        ),
    ]
    return StudyResult(values, statements, [_picture(wait, measured, printed)])


def _published(folder: StudyFolder, scheduler: str) -> list[float]:
    return folder.values(_TABLE_FILE, "throughput_MBps", scheduler=scheduler, test=TESTS[BUFFERED])


def _waiting(
    records: Mapping[str, ExperimentRecord], wait: BusyWait, options: StudyOptions, size: int
) -> Waiting:
    record = records[waiting_name(size)]
    in_guest = options.backend == "uml"
    sample = record.successes(wait.patched if in_guest else "kyber", BUFFERED)[0]
    control = (
        rates_of(record, BUFFERED, wait.control)
        if in_guest
        else rates_of(records[stock_name(size)], BUFFERED, "none")
    )
    mebibytes, dispatches = read_bytes(sample) / MIB, requests_of(sample) or 0
    return Waiting(mebibytes / runtime_s(sample), mebibytes / (dispatches * wait.wait_s), control[0])


def _picture(wait: BusyWait, measured: Mapping[int, Waiting], printed: list[float]) -> LinePicture:
    sizes = tuple(float(size) for size in measured)
    return LinePicture(
        "busy-wait",
        f"Buffered reads under a kyber that waits {wait.wait} in every dispatch",
        "The rate follows from the bytes of a dispatch. The published runs are drawn at the largest command "
        "of a "
        "SCSI disk; the document does not print their size.",
        "largest command, KiB",
        UNIT,
        (
            LineSeries("measured", sizes, tuple(one.rate for one in measured.values())),
            LineSeries(
                "from dispatches", sizes, tuple(one.implied for one in measured.values()), dashed=True
            ),
            LineSeries("published", (float(wait.usual_max_sectors_kb),) * len(printed), tuple(printed)),
        ),
    )
