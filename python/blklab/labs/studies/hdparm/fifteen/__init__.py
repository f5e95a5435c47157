"""The study of fifteen ``hdparm -tT`` runs for each scheduler in turn, then a tuned bfq."""

from __future__ import annotations

from blklab.labs.studies.hdparm.fifteen.experiments import experiments
from blklab.labs.studies.hdparm.fifteen.reading import read
from blklab.labs.studies.replication.options import STUDY_BACKENDS
from blklab.labs.studies.replication.protocol import Study

STUDY = Study("hdparm-fifteen", STUDY_BACKENDS, experiments, read)
