"""Puts together what the cases, the competing groups and today's ways show."""

from __future__ import annotations

from collections.abc import Mapping

from blklab.records.experiment import ExperimentRecord
from blklab.studies.ioband.cases import read_cases
from blklab.studies.ioband.competing import read_competing
from blklab.studies.ioband.modern import read_modern
from blklab.studies.ioband.set_up import IobandSetUp
from blklab.studies.replication.options import StudyOptions
from blklab.studies.replication.result import StudyResult
from blklab.studies.replication.study_folder import StudyFolder


def read(options: StudyOptions, folder: StudyFolder, records: Mapping[str, ExperimentRecord]) -> StudyResult:
    """What the records say, beside what was published."""
    set_up = folder.set_up(IobandSetUp)
    parts = [read_modern(options, set_up, records)]
    if options.backend == "sim":
        parts = [read_cases(folder, set_up, records), read_competing(set_up, records), *parts]
    return StudyResult.of(parts, _remarks(options, set_up))


def _remarks(options: StudyOptions, set_up: IobandSetUp) -> list[str]:
    if options.backend != "sim":
        return [
            (
                "dm-ioband was never part of Linux, so its four cases run on the simulator alone; here are "
                "today's ways."
            )
        ]
    return [
        "The groups' phases begin together here; in the document each terminal went on by itself.",
        (
            "How the document's direct runs were told to be direct is not said; the disk, the kernel and the "
            "elevator "
            f"beneath are not given either. Here they are {set_up.sim.target} and {set_up.sim.schedulers[0]}."
        ),
        "Buffered reads begin with an empty page cache: the published ones ran at the speed of a disk.",
        (
            "In cases 1 and 2 all groups are aimed at the same partition and so at the same blocks: what one "
            "has read "
            "into the page cache the others find there."
        ),
        (
            "An ioband device for each group shares nothing with the others, so cases 3 and 4 have no "
            "counterpart that "
            "could weigh the groups; partitions that are to share need the same device group."
        ),
    ]
