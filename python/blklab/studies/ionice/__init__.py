"""ionice levels 0 and 7 under cfq: two direct writers, and what every class and level is worth elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blklab.experiment import ExperimentRecord
from blklab.studies.ionice.experiments import experiments
from blklab.studies.ionice.reading import read
from blklab.studies.protocol import Asked, NamedExperiment, Place
from blklab.studies.published import Published
from blklab.studies.result import StudyResult


class IoniceStudy:
    """The study; its experiments and their reading are in the modules beside this one."""

    NAME = "ionice"
    PLACES: tuple[Place, ...] = ("sim", "uml", "host")

    def experiments(self, asked: Asked, published: Published) -> Sequence[NamedExperiment]:
        """What to run, in order."""
        return experiments(asked, published)

    def read(
        self, asked: Asked, published: Published, records: Mapping[str, ExperimentRecord]
    ) -> StudyResult:
        """What the records say, beside what was published."""
        return read(asked, published, records)


STUDY = IoniceStudy()
