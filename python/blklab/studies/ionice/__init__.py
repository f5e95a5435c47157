"""The study of ionice levels 0 and 7 under cfq, extended to every class, level and scheduler."""

from __future__ import annotations

from blklab.studies.ionice.experiments import experiments
from blklab.studies.ionice.reading import read
from blklab.studies.replication.options import STUDY_BACKENDS
from blklab.studies.replication.protocol import Study

STUDY = Study("ionice", STUDY_BACKENDS, experiments, read)
