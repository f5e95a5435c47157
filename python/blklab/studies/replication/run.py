"""Runs a study's experiments through the ordinary pipeline and reads their records."""

from __future__ import annotations

import dataclasses

from blklab.backends import THIS_MACHINE, Workers
from blklab.errors import UsageError
from blklab.execution.blocks import Observer, Progress
from blklab.execution.outlook import Outlook
from blklab.execution.pipeline import compare
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import RunSample
from blklab.records.store import Store
from blklab.studies.replication.options import StudyKernel, StudyOptions
from blklab.studies.replication.protocol import NamedExperiment, Study
from blklab.studies.replication.report.finding import StudyFinding
from blklab.studies.replication.study_folder import StudyFolder


class NullRunObserver:
    """An `Observer` that ignores every event."""

    def announce(self, line: str) -> None:
        """A step other than a run begins."""

    def begun(self, record: ExperimentRecord) -> None:
        """The experiment has its name."""

    def planned(self, outlook: Outlook) -> None:
        """The size of the experiment is known."""

    def progressed(self, progress: Progress) -> None:
        """A run begins."""

    def measured(self, sample: RunSample) -> None:
        """A run ended."""


def run_study(
    study: Study, options: StudyOptions, store: Store, observer: Observer, *, workers: Workers = THIS_MACHINE
) -> StudyFinding:
    """Runs all experiments of a study, stores their records, and reads them.

    Raises:
        UsageError: if the study cannot run on this backend.
        InterruptedRunError: if a signal arrived; the samples measured so far are stored.
        BlklabError: if an experiment cannot start or continue.
    """
    if options.backend not in study.backends:
        raise UsageError(
            f"the study {study.name} does not run on {options.backend}",
            hint=f"it runs on {', '.join(study.backends)}",
        )
    folder = StudyFolder(study.name)
    experiments = experiments_of(study, options, folder)
    records: dict[str, ExperimentRecord] = {}
    for number, experiment in enumerate(experiments, start=1):
        observer.announce(f"{study.name}, experiment {number} of {len(experiments)}: {experiment.title}")
        with store.part_of(study.name):
            records[experiment.name] = compare(experiment.spec, store, observer, workers=workers)
    result = study.read(options, folder, records)
    return StudyFinding(study.name, options, folder, experiments, records, result)


def experiments_of(study: Study, options: StudyOptions, folder: StudyFolder) -> list[NamedExperiment]:
    """The experiments of a study, on the guest kernel that the options name."""
    return [_on_kernel(one, options.kernel) for one in study.experiments(options, folder)]


def _on_kernel(experiment: NamedExperiment, kernel: StudyKernel | None) -> NamedExperiment:
    """The experiment on a guest kernel; schedulers that name one stay there, and all keep their labels."""
    if kernel is None:
        return experiment
    choices = [
        choice.model_copy(update={"kernel": choice.kernel or kernel.name})
        for choice in experiment.spec.schedulers
    ]
    return dataclasses.replace(experiment, spec=experiment.spec.model_copy(update={"schedulers": choices}))
