"""A description beside its records: its series, its published values, and ratios of two schedulers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blklab.analysis.sweep_effects import Effect
from blklab.labs.studies.described.description import StudyDescription
from blklab.labs.studies.described.experiments import description_of
from blklab.labs.studies.described.parts import ALL_SCHEDULERS, DescribedStatement, ValueRows
from blklab.labs.studies.described.runs import (
    ByBlock,
    Published,
    loads_of,
    mean_ratio,
    measured_runs,
    paired_ratios,
    published_runs,
)
from blklab.labs.studies.described.sweeps import changed_level, inverse, main_effect, series_effects
from blklab.labs.studies.replication.result import IntervalEstimate
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.records.experiment import ExperimentRecord

NO_RUN = "no run has a value"


class StudyRuns:
    """The description of a study beside its records; series without records are left out."""

    def __init__(self, folder: StudyFolder, records: Mapping[str, ExperimentRecord]) -> None:
        self.description: StudyDescription = description_of(folder)
        self.records = records
        self.series = {
            name: measured_runs(records[one.experiment], one)
            for name, one in self.description.series.items()
            if one.experiment in records
        }
        self.published = {
            name: published_runs(folder, runs) for name, runs in self.description.published.items()
        }
        self._effects: dict[str, Sequence[Effect]] = {}

    def record(self, series: str) -> ExperimentRecord:
        """The experiment whose runs a series has."""
        return self.records[self.description.series[series].experiment]

    def printed(self, name: str | None) -> Published | None:
        """Published values by label."""
        return None if name is None else self.published[name]

    def runs(self, series: str) -> ByBlock:
        """A series, with the numbered runs of all schedulers beside each one's; empty if left out."""
        if series not in self.series:
            return {}
        found = self.series[series]
        together = [run for label in self._schedulers(series) for run in found.get(label, {}).values()]
        return {**found, ALL_SCHEDULERS: dict(enumerate(together))}

    def pairs(self, part: ValueRows | DescribedStatement, scheduler: str, over: str) -> list[float]:
        """Ratios of two schedulers within blocks; of two series where the part names another one.

        All schedulers over all of them: each one over itself.
        """
        ours = part.ours or ""
        first, second = self.series[ours], self.series.get(part.against or ours, {})
        labels = [(scheduler, over)]
        if scheduler == over == ALL_SCHEDULERS:
            labels = [(label, label) for label in self._schedulers(ours)]
        return [
            ratio
            for one, other in labels
            for ratio in paired_ratios(first.get(one, {}), second.get(other, {}))
        ]

    def _schedulers(self, series: str) -> list[str]:
        return [choice.label for choice in self.record(series).spec.schedulers]

    def effects(self, series: str) -> Sequence[Effect]:
        """Effects of the sweeps of the experiment that a series belongs to."""
        if series not in self._effects:
            described = self.description.series[series]
            self._effects[series] = series_effects(self.record(series), described, self.series[series])
        return self._effects[series]

    def ratio(
        self, part: ValueRows | DescribedStatement, scheduler: str, over: str
    ) -> IntervalEstimate | None:
        """One scheduler over another: within blocks, or a sweep's effect; None without a pair of runs."""
        if part.statistic == "effect":
            record, series = self.record(part.ours or ""), part.ours or ""
            level, undone = changed_level(record, scheduler, over), changed_level(record, over, scheduler)
            if level is not None:
                return main_effect(self.effects(series), level)
            if undone is not None:
                found = main_effect(self.effects(series), undone)
                return None if found is None else inverse(found)
        return mean_ratio(self.pairs(part, scheduler, over))

    def no_run(self, *names: str | None) -> str:
        """Why series have no value: no run has one, or their load came from another program."""
        for name in names:
            series = None if name is None else self.description.series[name]
            if name in self.series and series is not None and series.tool and not self.series[name]:
                return f"the load came from {loads_of(self.record(name), series)}"
        return NO_RUN
