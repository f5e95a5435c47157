"""ionice levels 0 and 7 under cfq: two direct writers, and what every class and level is worth elsewhere."""

from __future__ import annotations

from blklab.studies.ionice.experiments import experiments
from blklab.studies.ionice.reading import read
from blklab.studies.replication.options import STUDY_BACKENDS
from blklab.studies.replication.protocol import Study

STUDY = Study("ionice", STUDY_BACKENDS, experiments, read)
