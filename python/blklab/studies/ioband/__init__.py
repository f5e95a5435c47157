"""dm-ioband, weights 10, 30 and 60: why three groups got a third each, and what does give the shares."""

from __future__ import annotations

from blklab.studies.ioband.experiments import experiments
from blklab.studies.ioband.reading import read
from blklab.studies.replication.options import STUDY_BACKENDS
from blklab.studies.replication.protocol import Study

STUDY = Study("ioband", STUDY_BACKENDS, experiments, read)
