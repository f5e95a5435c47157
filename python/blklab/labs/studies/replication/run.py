"""Runs a study's experiments through the ordinary pipeline and reads their records."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from blklab.backends import THIS_MACHINE, Workers
from blklab.errors import BlklabError, UsageError
from blklab.experiment.blocks import Observer
from blklab.experiment.pipeline import compare
from blklab.experiment.prerequisites import missing_for, require_all
from blklab.labs.studies.replication.options import StudyKernel, StudyOptions
from blklab.labs.studies.replication.protocol import NamedExperiment, Study
from blklab.labs.studies.replication.report.finding import StudyFinding
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.quantities.formatting import count_of
from blklab.records.experiment import ExperimentRecord
from blklab.records.store import Store


@dataclass(frozen=True)
class StudyPlan:
    """The experiments of a study that can run on this machine."""

    study: Study
    options: StudyOptions
    folder: StudyFolder
    experiments: Sequence[NamedExperiment]
    left_out: Sequence[str]
    """Sentences on missing things, each with its remedy and the experiments that are left out for it."""


def plan_study(study: Study, options: StudyOptions) -> StudyPlan:
    """Lists a study's experiments, and checks before the first one that nothing is missing for any.

    Raises:
        UsageError: if the study cannot run on this backend.
        BlklabError: if something is missing without which the study cannot be read.
    """
    if options.backend not in study.backends:
        raise UsageError(
            f"the study {study.name} does not run on {options.backend}",
            hint=f"it runs on {', '.join(study.backends)}",
        )
    folder = study.files()
    experiments = experiments_of(study, options, folder)
    require_all(one.spec for one in experiments if not one.dispensable)
    obstacles = {one.name: missing_for([one.spec]) for one in experiments if one.dispensable}
    left_out = [one for one in experiments if obstacles.get(one.name)]
    return StudyPlan(
        study,
        options,
        folder,
        [one for one in experiments if one not in left_out],
        _reasons([(one, obstacles[one.name]) for one in left_out]),
    )


def run_study(
    study: Study, options: StudyOptions, store: Store, observer: Observer, *, workers: Workers = THIS_MACHINE
) -> StudyFinding:
    """Plans a study and runs it.

    Raises:
        BlklabError: as `plan_study` and `run_plan` do.
    """
    return run_plan(plan_study(study, options), store, observer, workers=workers)


def run_plan(
    plan: StudyPlan, store: Store, observer: Observer, *, workers: Workers = THIS_MACHINE
) -> StudyFinding:
    """Runs all experiments of a study, stores their records, and reads them.

    Raises:
        InterruptedRunError: if a signal arrived; the samples measured so far are stored.
        BlklabError: if an experiment cannot start or continue.
    """
    name, experiments = plan.study.name, plan.experiments
    records: dict[str, ExperimentRecord] = {}
    for number, experiment in enumerate(experiments, start=1):
        observer.announce(f"{name}, experiment {number} of {len(experiments)}: {experiment.title}")
        with store.part_of(name):
            records[experiment.name] = compare(experiment.spec, store, observer, workers=workers)
    result = plan.study.read(plan.options, plan.folder, records)
    result.remarks = [*plan.left_out, *result.remarks]
    return StudyFinding(name, plan.options, plan.folder, experiments, records, result)


def _reasons(left_out: Sequence[tuple[NamedExperiment, Sequence[BlklabError]]]) -> list[str]:
    """One sentence for each set of missing things."""
    titles: dict[tuple[str, str], list[str]] = {}
    for experiment, errors in left_out:
        message = "; ".join(error.message for error in errors)
        remedies = "; ".join(error.hint for error in errors if error.hint)
        titles.setdefault((message, remedies), []).append(experiment.title)
    return [
        f"{message}{f'. {remedies}' if remedies else ''}. "
        f"Left out: {count_of(len(names), 'experiment')} ({'; '.join(names)})."
        for (message, remedies), names in titles.items()
    ]


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
