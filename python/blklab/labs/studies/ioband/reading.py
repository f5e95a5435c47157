"""Joins the results of the cases, the competing groups, and today's controllers."""

from __future__ import annotations

from collections.abc import Mapping

from blklab.labs.studies.ioband.cases import read_cases
from blklab.labs.studies.ioband.competing import read_competing
from blklab.labs.studies.ioband.modern import read_modern
from blklab.labs.studies.ioband.set_up import IobandSetUp
from blklab.labs.studies.replication.options import StudyOptions
from blklab.labs.studies.replication.result import StudyResult
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.records.experiment import ExperimentRecord


def read(options: StudyOptions, folder: StudyFolder, records: Mapping[str, ExperimentRecord]) -> StudyResult:
    """Compares the records with the published values."""
    set_up = folder.set_up(IobandSetUp)
    parts = [read_modern(options, set_up, records)]
    if options.backend == "sim":
        parts = [read_cases(folder, set_up, records), read_competing(set_up, records), *parts]
    return StudyResult.of(parts, _remarks(options, set_up))


def _remarks(options: StudyOptions, set_up: IobandSetUp) -> list[str]:
    if options.backend != "sim":
        return [
            (
                "dm-ioband was never part of Linux, so its four cases run on the simulator alone; here only "
                "today's controllers run."
            )
        ]
    return [
        "Here the phases of all groups begin together; in the document each terminal continued on its own.",
        (
            "The document does not say how its direct runs were made direct, nor does it name the disk, the "
            "kernel "
            "or the elevator beneath. "
            f"Here disk and elevator are {set_up.sim.target} and {set_up.sim.schedulers[0]}."
        ),
        "Buffered reads begin with an empty page cache, because the published ones ran at disk speed.",
        (
            "In cases 1 and 2 all groups use the same partition and so the same blocks: pages that one group "
            "reads "
            "into the page cache are there for the others."
        ),
        (
            "Separate ioband devices share nothing, so cases 3 and 4 have no counterpart that could weigh "
            "the "
            "groups; partitions share only within one device group."
        ),
    ]
