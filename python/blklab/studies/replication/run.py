"""Runs a study's experiments through the ordinary pipeline and has the study read them."""

from __future__ import annotations

from blklab.errors import UsageError
from blklab.execution.blocks import Observer
from blklab.execution.pipeline import compare
from blklab.records.experiment import ExperimentRecord
from blklab.records.store import Store
from blklab.studies.replication.protocol import Asked, Study
from blklab.studies.replication.report.finding import StudyFinding
from blklab.studies.replication.study_folder import Published


def carry_out(study: Study, asked: Asked, store: Store, observer: Observer) -> StudyFinding:
    """Makes all experiments of a study, stores them, and reads them.

    Raises:
        UsageError: if the study cannot run at that place.
        InterruptedRunError: a signal came; what was measured is stored.
        BlklabError: an experiment cannot be made or cannot go on.
    """
    if asked.place not in study.places:
        raise UsageError(
            f"the study {study.name} does not run on {asked.place}",
            hint=f"it runs on {', '.join(study.places)}",
        )
    published = Published(study.name)
    experiments = list(study.experiments(asked, published))
    records: dict[str, ExperimentRecord] = {}
    for number, experiment in enumerate(experiments, start=1):
        observer.announce(f"{study.name}, experiment {number} of {len(experiments)}: {experiment.title}")
        records[experiment.name] = compare(experiment.spec, store, observer)
    result = study.read(asked, published, records)
    return StudyFinding(study.name, asked, published, experiments, records, result)
