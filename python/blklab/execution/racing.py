"""Which runs come next: blocks are added until each question is settled.

The race for the first place of a workload is over when its verdict is: one is the best, or those that are
left are equal. Until then every scheduler runs that no other has been found better than; the beaten ones
leave at once, and settled workloads stop (racing: Maron and Moore, *Hoeffding races*, 1993; Birattari and
others, *A racing algorithm for configuring metaheuristics*, 2002). A workload is given up if even the
quickest of its open questions would probably take far more blocks than the budget has left. Controls run as
long as anything is open.

With a goal there is one race, for the goal's figure over all workloads. With sweeps nobody leaves before the
end, because their effects are contrasts over all cells of a block.

Looking after every block costs nothing of the stated confidence, because the decisions are those of
`blklab.analysis.statistics.anytime`. What comes next depends on the specification, on the samples so far and
on the number of blocks that the budget leaves, on nothing else; the analysis of the stored samples reaches
the same decisions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from blklab.analysis.comparison import FEWEST_BLOCKS, Comparison, Question, compare_all, metric_values
from blklab.analysis.goal_scores import GOAL_METRIC, goal_figures, question_over_all
from blklab.analysis.metrics import metric_named
from blklab.analysis.ranking import MetricVerdict, in_the_race, metric_verdict
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import RunSample
from blklab.spec.experiment import ExperimentSpec

FEWEST_BEFORE_GIVING_UP = 8
"""Estimates of the blocks still needed are poor before that."""
HOPELESS_FACTOR = 3
"""A question is given up if it would probably take this many times the blocks that are left."""


@dataclass(frozen=True)
class OpenQuestion:
    """A workload whose first place is not settled."""

    workload: str
    candidates: list[str]
    """Those that nothing has ruled out."""
    more_blocks: int | None
    """Blocks that it would probably take; nothing if nobody can tell."""


@dataclass(frozen=True)
class Standings:
    """How the race stands after some blocks."""

    running: Mapping[str, frozenset[str]]
    """Workload → schedulers that run in the next block; empty for a workload that has stopped."""
    open: list[OpenQuestion]
    given_up: list[str]
    """Workloads that are open but not worth the rest of the budget."""

    @property
    def over(self) -> bool:
        """Whether no run is left to be made."""
        return not any(self.running.values())


class Race:
    """The figures of an experiment as they come in, and what follows from them for the next block."""

    def __init__(self, spec: ExperimentSpec, record: ExperimentRecord | None = None) -> None:
        """Begins a race.

        Args:
            spec: The experiment, with its schedulers settled.
            record: The experiment as begun; needed with a goal, whose figures are taken from all samples.
        """
        if spec.goal is not None and record is None:
            raise ValueError("a race for a goal needs the record")
        self._spec = spec
        self._record = record
        self._samples: list[RunSample] = []
        self._labels = [choice.label for choice in spec.schedulers]
        self._figures: dict[str, dict[str, dict[int, float]]] = {w.name: {} for w in spec.workloads}
        self._blocks = 0
        self._judged = [w for w in spec.workloads if not w.control] or list(spec.workloads)

    def add(self, sample: RunSample) -> None:
        """Takes in a run; one that failed has no figure."""
        if self._spec.goal is not None:
            self._samples.append(sample)
        workload = self._spec.workload(sample.cell.workload)
        found = metric_values([sample], workload, metric_named(workload.decide_by))
        figure = found.get(sample.cell.scheduler, {}).get(sample.cell.block)
        self.add_figure(workload.name, sample.cell.scheduler, sample.cell.block, figure)

    def add_figure(self, workload: str, scheduler: str, block: int, figure: float | None) -> None:
        """Takes in the figure that decides a workload; nothing for a run that has none."""
        self._blocks = max(self._blocks, block + 1)
        if figure is not None:
            self._figures[workload].setdefault(scheduler, {})[block] = figure

    def standings(self, blocks_left: int | None) -> Standings:
        """Who runs in the next block.

        Args:
            blocks_left: Blocks that the budget still allows, as far as known.
        """
        running: dict[str, frozenset[str]] = {}
        still_open: list[OpenQuestion] = []
        given_up: list[str] = []
        for verdict, pairs, workloads in self._verdicts():
            runners: frozenset[str] = frozenset()
            if verdict.status == "undecided":
                contenders = in_the_race(pairs, self._labels)
                if self._hopeless(verdict, pairs, blocks_left):
                    given_up.append(verdict.workload)
                else:
                    runners = frozenset(self._labels if self._spec.sweeps else contenders)
                    still_open.append(OpenQuestion(verdict.workload, contenders, verdict.more_blocks))
            running |= dict.fromkeys(workloads, runners)
        everyone = frozenset(self._labels) if still_open else frozenset()
        for workload in self._spec.workloads:
            running.setdefault(workload.name, everyone)
        return Standings(running, still_open, given_up)

    def _verdicts(self) -> list[tuple[MetricVerdict, list[Comparison], list[str]]]:
        """Each race with its pairs and the workloads that are run for it."""
        questions = self._goal_question() if self._spec.goal is not None else self._workload_questions()
        return [
            (metric_verdict(question, pairs, self._spec, self._labels), pairs, workloads)
            for (question, pairs), (_, workloads) in zip(
                compare_all([question for question, _ in questions], self._spec, self._labels),
                questions,
                strict=True,
            )
        ]

    def _workload_questions(self) -> list[tuple[Question, list[str]]]:
        return [
            (
                Question(
                    workload,
                    metric_named(workload.decide_by),
                    decides=True,
                    values=self._figures[workload.name],
                    family=1 if workload.control else len(self._judged),
                ),
                [workload.name],
            )
            for workload in self._judged
        ]

    def _goal_question(self) -> list[tuple[Question, list[str]]]:
        if self._record is None or self._spec.goal is None:
            raise AssertionError("the constructor asks for a record")
        record = self._record.model_copy(update={"samples": self._samples})
        figures = goal_figures(record, self._spec.goal)
        question = question_over_all(record, GOAL_METRIC, figures.series)
        return [(question, [workload.name for workload in self._judged])]

    def _hopeless(self, verdict: MetricVerdict, pairs: list[Comparison], blocks_left: int | None) -> bool:
        """Whether no open question about the first place can be expected to close."""
        if self._blocks < FEWEST_BEFORE_GIVING_UP or blocks_left is None:
            return False
        among = set(verdict.candidates)
        undecided = [
            pair for pair in pairs if pair.outcome == "undecided" and {pair.first, pair.second} <= among
        ]
        if any(pair.n < FEWEST_BLOCKS for pair in undecided):
            return False
        needs = [pair.more_blocks for pair in undecided if pair.more_blocks is not None]
        return not needs or min(needs) > HOPELESS_FACTOR * blocks_left
