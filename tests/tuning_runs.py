"""Specifications and searches for tests of tuning."""

from __future__ import annotations

from pathlib import Path

from blklab.experiment.blocks import Progress
from blklab.experiment.outlook import Outlook, Shortage
from blklab.labs.tuning.model import opened
from blklab.labs.tuning.search import search
from blklab.labs.tuning.trials import ModelTrials, Trial
from blklab.labs.tuning.tuning import Preparation
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import RunSample
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.request import SpecValues, build_specs


class SilentObserver:
    """Ignores the progress of a tuning."""

    def announce(self, line: str) -> None: ...
    def begun(self, record: ExperimentRecord) -> None: ...
    def progressed(self, progress: Progress) -> None: ...
    def falls_short(self, shortage: Shortage, schedulers: int) -> None: ...
    def planned(self, outlook: Outlook) -> None: ...
    def measured(self, sample: RunSample) -> None: ...
    def searching(self, done: int, planned: int, best: Trial | None, gain: float) -> None: ...


def spec_of(folder: Path, text: str, target: str = "sim:ssd-sata", **values: object) -> ExperimentSpec:
    """The specification of a job file's text, which is written into the folder."""
    jobs = folder / "jobs.fio"
    jobs.write_text(text)
    (spec,) = build_specs(SpecValues(targets=[target], workloads=[str(jobs)], **values))
    return spec


def searched(prepared: Preparation, trials: int, seed: int = 7) -> tuple[list[Trial], ModelTrials]:
    """The trials of a search, and the model that ran them."""
    with opened(prepared.on_model) as session:
        model = ModelTrials(session, prepared.on_model, prepared.target.default)
        made = search(prepared.space, model, trials=trials, seed=seed, progressed=lambda _done, _best: None)
        return made, model
