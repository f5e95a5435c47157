"""Candidates on the model: each meets the default in the same blocks, so chance is common to both."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from blklab.analysis.metrics import Metric, metric_named
from blklab.analysis.values import ExperimentValues
from blklab.backends.protocol import Session
from blklab.errors import BlklabError, RunFailedError
from blklab.experiment.entitlement import with_promises
from blklab.records.samples import RunSample
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.plan import Cell, CellKey, derive_seed
from blklab.spec.schedulers import SchedulerChoice
from blklab.spec.workloads import Workload

_Key = tuple[str, str]
"""A workload and a metric, both by name."""


@dataclass(frozen=True)
class Dimension:
    """One of the things that a search improves: a metric of the goal, or a workload's own."""

    name: str
    weight: float
    """Its part of the score; all together are 1."""
    parts: tuple[_Key, ...]
    """The values whose mean it is."""


def dimensions_of(spec: ExperimentSpec) -> list[Dimension]:
    """With a goal its metrics, otherwise the workloads that the verdict rests on, each by its own metric.

    Raises:
        UnknownNameError: for a metric that does not exist.
    """
    judged = [one for one in spec.workloads if not one.control] or spec.workloads
    if spec.goal is None:
        return [Dimension(one.name, 1 / len(judged), ((one.name, one.decide_by),)) for one in judged]
    total = sum(spec.goal.weights.values())
    return [
        Dimension(metric, weight / total, tuple((one.name, metric) for one in judged))
        for metric, weight in spec.goal.weights.items()
    ]


@dataclass
class Trial:
    """A candidate and how much better than the default it is on the model."""

    number: int
    choice: SchedulerChoice
    gains: dict[str, list[float]] = field(default_factory=dict)
    """By dimension, one for each block: the logarithm of the ratio to the default; positive is better."""
    pruned: bool = False
    """Whether it was given up before its last block."""
    error: str | None = None
    """The reason why the model refused it."""

    @property
    def blocks(self) -> int:
        """The blocks that it ran in."""
        return max((len(values) for values in self.gains.values()), default=0)

    def gain(self, dimension: str) -> float:
        """The mean over the blocks; 0 where the load has no such metric."""
        values = self.gains.get(dimension, [])
        return statistics.fmean(values) if values else 0.0

    def score(self, dimensions: Sequence[Dimension]) -> float:
        """The weighted mean over the dimensions that the load has."""
        present = [one for one in dimensions if self.gains.get(one.name)]
        weight = sum(one.weight for one in present)
        return sum(one.weight * self.gain(one.name) for one in present) / weight if weight else 0.0


class ModelTrials:
    """Runs candidates on the model.

    Results depend on the candidate, the block and the seed alone, not on the number of threads.
    """

    def __init__(self, session: Session, spec: ExperimentSpec, default: SchedulerChoice) -> None:
        """Takes the model's session and the experiment.

        Args:
            session: Of the model; several threads call it.
            spec: Workloads, goal and seed.
            default: What candidates are compared with.
        """
        self._session = session
        self._spec = spec
        self._default = default
        self._workloads = [one for one in spec.workloads if not one.control] or list(spec.workloads)
        self.dimensions = dimensions_of(spec)
        self._defaults: dict[int, Mapping[_Key, float]] = {}
        self.runs = 0
        """Simulated runs so far."""

    def begin(self, choices: Sequence[SchedulerChoice], first_number: int = 0) -> list[Trial]:
        """Trials of candidates that the model takes; those that it refuses have an error."""
        trials = [Trial(first_number + place, choice) for place, choice in enumerate(choices)]
        for trial in trials:
            trial.error = self._refusal(trial.choice)
        return trials

    def _refusal(self, choice: SchedulerChoice) -> str | None:
        try:
            self._session.check([choice], self._workloads)
        except BlklabError as error:
            return error.message
        return None

    def run_block(self, trials: Sequence[Trial], block: int) -> None:
        """Runs a block of candidates, in parallel, and adds its gains.

        Raises:
            RunFailedError: if the default fails.
        """
        jobs = [] if block in self._defaults else [(self._default, workload) for workload in self._workloads]
        usable = [trial for trial in trials if trial.error is None]
        jobs += [(trial.choice, workload) for trial in usable for workload in self._workloads]
        with ThreadPoolExecutor(self._session.parallel) as executor:
            samples = list(executor.map(lambda job: self._run(block, *job), jobs))
        self.runs += len(jobs)
        width = len(self._workloads)
        if block not in self._defaults:
            own, samples = samples[:width], samples[width:]
            failed = next((sample for sample in own if sample.status == "failed"), None)
            if failed is not None:
                raise RunFailedError(f"the model fails under its default: {failed.error}")
            self._defaults[block] = self._logs(own)
        for place, trial in enumerate(usable):
            own = samples[place * width : (place + 1) * width]
            failed = next((sample for sample in own if sample.status == "failed"), None)
            if failed is not None:
                trial.error = failed.error
                continue
            self._add(trial, self._logs(own), self._defaults[block])

    def _run(self, block: int, choice: SchedulerChoice, workload: Workload) -> RunSample:
        cell = _cell(self._spec, block, choice, workload)
        return with_promises(self._session.run(cell), cell, self._spec.cgroups)

    def _add(self, trial: Trial, logs: Mapping[_Key, float], default: Mapping[_Key, float]) -> None:
        for dimension in self.dimensions:
            gains = [logs[key] - default[key] for key in dimension.parts if key in logs and key in default]
            if gains:
                trial.gains.setdefault(dimension.name, []).append(statistics.fmean(gains))

    def _logs(self, samples: Sequence[RunSample]) -> dict[_Key, float]:
        """The logarithm of each value, so turned that more is better."""
        label = samples[0].cell.scheduler
        values = ExperimentValues(self._workloads, [label], [])
        for sample in samples:
            values.add(sample)
        found = {}
        for dimension in self.dimensions:
            for workload, name in dimension.parts:
                metric = metric_named(name)
                for value in values.series[workload, name].get(label, {}).values():
                    if value > 0:
                        found[workload, name] = _sign(metric) * math.log(value)
        return found


def _sign(metric: Metric) -> int:
    return 1 if metric.better == "higher" else -1


def _cell(spec: ExperimentSpec, block: int, choice: SchedulerChoice, workload: Workload) -> Cell:
    key = CellKey(
        block=block,
        sequence=0,
        position=0,
        workload=workload.name,
        scheduler=choice.label,
        seed=derive_seed(spec.seed, "trial", block, workload.name),
    )
    return Cell(key=key, scheduler=choice, workload=workload)
