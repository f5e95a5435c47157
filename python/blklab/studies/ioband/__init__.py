"""dm-ioband, weights 10, 30 and 60: why three groups got a third each, and what does give the shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blklab.experiment import ExperimentRecord
from blklab.studies.ioband.experiments import experiments
from blklab.studies.ioband.reading import read
from blklab.studies.protocol import Asked, NamedExperiment, Place
from blklab.studies.published import Published
from blklab.studies.result import StudyResult


class IobandStudy:
    """The study; its experiments and their reading are in the modules beside this one."""

    NAME = "ioband"
    PLACES: tuple[Place, ...] = ("sim", "uml", "host")

    def experiments(self, asked: Asked, published: Published) -> Sequence[NamedExperiment]:
        """What to run, in order."""
        return experiments(asked, published)

    def read(
        self, asked: Asked, published: Published, records: Mapping[str, ExperimentRecord]
    ) -> StudyResult:
        """What the records say, beside what was published."""
        return read(asked, published, records)


STUDY = IobandStudy()
