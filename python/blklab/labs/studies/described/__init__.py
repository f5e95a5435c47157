"""Studies as data: ``study.toml`` describes the experiments and what is read from them."""

from __future__ import annotations

from pathlib import Path

from blklab.labs.studies.described.experiments import described_experiments, description_of
from blklab.labs.studies.described.findings import read_described
from blklab.labs.studies.replication.protocol import Study
from blklab.labs.studies.replication.study_folder import StudyFolder


def described_study(name: str, folder: Path | None = None) -> Study:
    """The study that a folder describes.

    Args:
        name: Its name.
        folder: The folder; None for a study that ships.

    Raises:
        SpecError: if the folder's files have a mistake.
    """
    description = description_of(StudyFolder(name, folder))
    return Study(name, tuple(description.backends), described_experiments, read_described, folder)
