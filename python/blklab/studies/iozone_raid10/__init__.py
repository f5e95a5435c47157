"""iozone on btrfs raid10 of four disks: whether deadline, noop or cfq makes a difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blklab.experiment import ExperimentRecord
from blklab.studies.iozone_raid10.experiments import experiments
from blklab.studies.iozone_raid10.reading import read
from blklab.studies.protocol import Asked, NamedExperiment, Place
from blklab.studies.published import Published
from blklab.studies.result import StudyResult


class IozoneRaid10Study:
    """The study; its experiments and their reading are in the modules beside this one."""

    NAME = "iozone-raid10"
    PLACES: tuple[Place, ...] = ("sim", "uml", "host")

    def experiments(self, asked: Asked, published: Published) -> Sequence[NamedExperiment]:
        """What to run, in order."""
        return experiments(asked, published)

    def read(
        self, asked: Asked, published: Published, records: Mapping[str, ExperimentRecord]
    ) -> StudyResult:
        """What the records say, beside what was published."""
        return read(asked, published, records)


STUDY = IozoneRaid10Study()
