"""Joins the results of the machines, the kyber that waits, and the tunables."""

from __future__ import annotations

from collections.abc import Mapping

from blklab.labs.studies.hdparm.agreement import read_agreement
from blklab.labs.studies.hdparm.busy_wait import read_busy_wait
from blklab.labs.studies.hdparm.experiments import AGREEMENT, waiting_name
from blklab.labs.studies.hdparm.machines import read_machines
from blklab.labs.studies.hdparm.set_up import FourSchedulersSetUp
from blklab.labs.studies.hdparm.tunables import read_tunables
from blklab.labs.studies.replication.options import StudyOptions
from blklab.labs.studies.replication.result import StudyResult
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.records.experiment import ExperimentRecord


def read(options: StudyOptions, folder: StudyFolder, records: Mapping[str, ExperimentRecord]) -> StudyResult:
    """Compares the records with the published values."""
    set_up = folder.set_up(FourSchedulersSetUp)
    parts = [
        read_machines(options, folder, set_up, records),
        *_busy_wait(options, folder, set_up, records),
        *([read_agreement(set_up.agreement, records[AGREEMENT])] if options.backend == "host" else []),
        read_tunables(folder, set_up.tunables.under(options), records),
    ]
    return StudyResult.of(parts, _remarks(options, set_up))


def _busy_wait(
    options: StudyOptions,
    folder: StudyFolder,
    set_up: FourSchedulersSetUp,
    records: Mapping[str, ExperimentRecord],
) -> list[StudyResult]:
    """Nothing if its experiments were left out, for lack of the patched kernel."""
    made = any(waiting_name(size) in records for size in set_up.busy_wait.max_sectors_kb)
    if options.backend != "host" and not made:
        return []
    return [read_busy_wait(options, folder, set_up.busy_wait, records)]


def _remarks(options: StudyOptions, set_up: FourSchedulersSetUp) -> list[str]:
    kept = ", ".join(f"{name} at {value}" for name, value in set_up.tunables.set_before.items())
    remarks = [
        (
            f"The baseline of the tunables is what the document found before: Linux's defaults, and {kept}, "
            "the "
            "length of its disk's queue. Linux sets this tunable to the queue's length when it switches to "
            "the "
            "scheduler; raising nr_requests later does not change it."
        ),
    ]
    if options.backend != "sim":
        remarks.append(
            "The kernel counts expiry times in ticks of its clock, and 1 ms may be less than a tick, so "
            "prio_aging_expire is longer here. Tunables change one at a time; the simulator crosses "
            "them."
        )
    return remarks
