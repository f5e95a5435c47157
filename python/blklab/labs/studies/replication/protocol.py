"""The interface of a study that can be run again: its experiments, and how to read their records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from blklab.labs.studies.replication.options import StudyBackend, StudyOptions
from blklab.labs.studies.replication.result import StudyResult
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.records.experiment import ExperimentRecord
from blklab.spec.experiment import ExperimentSpec


@dataclass(frozen=True)
class NamedExperiment:
    """One experiment of a study."""

    name: str
    """Unique within the study; `Study.read` gets the record under this name."""
    title: str
    spec: ExperimentSpec
    dispensable: bool = False
    """Whether the study can be read without it, if this machine lacks what it needs."""


@dataclass(frozen=True)
class Study:
    """A published experiment that can be run again.

    Both functions are pure: they depend on the study's files and their arguments alone.
    """

    name: str
    """Folder name in `studies/`; its ``claims.toml`` holds the title and the source."""
    backends: tuple[StudyBackend, ...]
    experiments: Callable[[StudyOptions, StudyFolder], Sequence[NamedExperiment]]
    """Lists the experiments to run, in order."""
    read: Callable[[StudyOptions, StudyFolder, Mapping[str, ExperimentRecord]], StudyResult]
    """Compares the records with the published values. Needs the record of every experiment that is not
    dispensable, by name."""
    folder: Path | None = None
    """Its folder, if it is a reader's or another package ships it; None for one in `studies/`."""

    def files(self) -> StudyFolder:
        """The files of its folder.

        Raises:
            SpecError: if its claims have a mistake.
        """
        return StudyFolder(self.name, self.folder)
