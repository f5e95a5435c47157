"""The study of dm-ioband with weights 10, 30 and 60, in which three groups got a third each."""

from __future__ import annotations

from blklab.labs.studies.ioband.experiments import experiments
from blklab.labs.studies.ioband.reading import read
from blklab.labs.studies.replication.options import STUDY_BACKENDS
from blklab.labs.studies.replication.protocol import Study

STUDY = Study("ioband", STUDY_BACKENDS, experiments, read)
