"""The study of ``hdparm -tT`` on two machines, with a kyber that busy-waits and mq-deadline's tunables."""

from __future__ import annotations

from blklab.labs.studies.hdparm.experiments import experiments
from blklab.labs.studies.hdparm.reading import read
from blklab.labs.studies.replication.options import STUDY_BACKENDS
from blklab.labs.studies.replication.protocol import Study

STUDY = Study("hdparm-four-schedulers", STUDY_BACKENDS, experiments, read)
