"""Puts together what the machines, the kyber that waits and the tunables show."""

from __future__ import annotations

from collections.abc import Mapping

from blklab.records.experiment import ExperimentRecord
from blklab.studies.hdparm.four_schedulers.agreement import read_agreement
from blklab.studies.hdparm.four_schedulers.busy_wait import read_busy_wait
from blklab.studies.hdparm.four_schedulers.experiments import AGREEMENT
from blklab.studies.hdparm.four_schedulers.machines import read_machines
from blklab.studies.hdparm.four_schedulers.set_up import SetUp
from blklab.studies.hdparm.four_schedulers.tunables import read_tunables
from blklab.studies.replication.protocol import Asked
from blklab.studies.replication.result import StudyResult
from blklab.studies.replication.study_folder import Published


def read(asked: Asked, published: Published, records: Mapping[str, ExperimentRecord]) -> StudyResult:
    """What the records say, beside what was published."""
    set_up = published.set_up(SetUp)
    parts = [
        read_machines(asked, published, set_up, records),
        read_busy_wait(asked, published, set_up.busy_wait, records),
        *([read_agreement(set_up.agreement, records[AGREEMENT])] if asked.place == "host" else []),
        read_tunables(published, set_up.tunables.at(asked), records),
    ]
    return StudyResult.of(parts, _remarks(asked, set_up))


def _remarks(asked: Asked, set_up: SetUp) -> list[str]:
    kept = ", ".join(f"{name} at {value}" for name, value in set_up.tunables.set_before.items())
    remarks = [
        (
            f"Tunables are compared with what the document found before: Linux's defaults, and {kept}, as "
            "many requests as its disk's queue held. Linux sets it to the queue's length when the scheduler "
            "comes into force, and a longer nr_requests does not reach it."
        ),
    ]
    if asked.place != "sim":
        remarks.append(
            "The kernel counts expiry times in ticks of its clock, and 1 ms may be less than a tick: "
            "prio_aging_expire is longer here. Tunables are changed one at a time; the simulator crosses "
            "them."
        )
    return remarks
