"""hdparm -tT over four schedulers on two machines, a kyber that waits, mq-deadline's tunables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blklab.experiment import ExperimentRecord
from blklab.studies.hdparm.four_schedulers.experiments import experiments
from blklab.studies.hdparm.four_schedulers.reading import read
from blklab.studies.protocol import Asked, NamedExperiment, Place
from blklab.studies.published import Published
from blklab.studies.result import StudyResult


class FourSchedulersStudy:
    """The study; its experiments and their reading are in the modules beside this one."""

    NAME = "hdparm-four-schedulers"
    PLACES: tuple[Place, ...] = ("sim", "uml", "host")

    def experiments(self, asked: Asked, published: Published) -> Sequence[NamedExperiment]:
        """What to run, in order."""
        return experiments(asked, published)

    def read(
        self, asked: Asked, published: Published, records: Mapping[str, ExperimentRecord]
    ) -> StudyResult:
        """What the records say, beside what was published."""
        return read(asked, published, records)


STUDY = FourSchedulersStudy()
