"""The study of ionice levels 0 and 7 under cfq, extended to every class, level and scheduler."""

from __future__ import annotations

from blklab.labs.studies.ionice.experiments import experiments
from blklab.labs.studies.ionice.reading import read
from blklab.labs.studies.replication.options import STUDY_BACKENDS
from blklab.labs.studies.replication.protocol import Study

STUDY = Study("ionice", STUDY_BACKENDS, experiments, read)
