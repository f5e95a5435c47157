"""The study of iozone under deadline, noop and cfq on btrfs raid10 of four disks."""

from __future__ import annotations

from blklab.labs.studies.iozone_raid10.experiments import experiments
from blklab.labs.studies.iozone_raid10.reading import read
from blklab.labs.studies.replication.options import STUDY_BACKENDS
from blklab.labs.studies.replication.protocol import Study

STUDY = Study("iozone-raid10", STUDY_BACKENDS, experiments, read)
