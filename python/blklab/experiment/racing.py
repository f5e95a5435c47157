"""Racing: blocks are added, and beaten schedulers leave, until every question is settled.

The race for the first place of a workload is over when its verdict is: one scheduler is the best, or those
left are equal. Until then every unbeaten scheduler runs again; beaten ones leave at once, and settled
workloads stop (Maron and Moore, *Hoeffding races*, 1993; Birattari and others, *A racing algorithm for
configuring metaheuristics*, 2002). A workload is given up if even the quickest of its open questions would
probably take far more blocks than the budget has left. Controls run as long as any workload is open.

With a goal there is one race, for the goal's score over all workloads. If the experiment says what is good
enough, every race ends once some scheduler is known to be that close to the best (`blklab.analysis.regret`).
With sweeps no scheduler leaves before the end, because effects are contrasts over all cells of a block.

Checking after every block does not lower the stated confidence, because the tests of
`blklab.analysis.statistics.anytime` correct for it. The next block depends only on the specification, on the
samples so far and on the number of blocks that the budget leaves, so the analysis of the stored samples
reaches the same decisions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from blklab.analysis.comparison import PairwiseComparison, compare_all
from blklab.analysis.designs import Design, design_of
from blklab.analysis.designs.fixed import FEWEST_BLOCKS
from blklab.analysis.goal_scores import goal_scores
from blklab.analysis.metrics import metric_named
from blklab.analysis.questions import Question, deciding_questions
from blklab.analysis.ranking import MetricVerdict, in_the_race, metric_verdict
from blklab.analysis.regret import good_enough, regrets
from blklab.analysis.values import ExperimentValues, values_begun
from blklab.quantities.sample_units import BLOCKS, SampleUnit
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import RunSample
from blklab.spec.goals import Goal

FEWEST_BEFORE_GIVING_UP = 8
"""Before that, estimates of the blocks still needed are poor."""
HOPELESS_FACTOR = 3
"""A question is given up if it would probably take this many times the blocks that are left."""


@dataclass(frozen=True)
class OpenQuestion:
    """A workload whose first place is not settled."""

    workload: str
    candidates: list[str]
    """Those that are not ruled out."""
    more_blocks: int | None
    """Blocks or rounds that it would probably take; None if that cannot be estimated."""
    unit: SampleUnit = BLOCKS
    leader: str | None = None
    """The best so far, which may be chance; None until all have figures."""
    lead: float | None = None
    """Its lead over the next, as a fraction."""


@dataclass(frozen=True)
class Standings:
    """The state of the race after some blocks."""

    running: Mapping[str, frozenset[str]]
    """Workload → schedulers that run in the next block; empty for a workload that has stopped."""
    open: list[OpenQuestion]
    given_up: list[str]
    """Workloads that are open but not worth the rest of the budget."""
    good_enough: str | None = None
    """A scheduler that is so close to the best that the race ends, although it is open."""

    @property
    def over(self) -> bool:
        """Whether no run is left to be made."""
        return not any(self.running.values())


class Race:
    """Decides from the values so far which schedulers run in the next block."""

    def __init__(
        self,
        design: Design,
        values: ExperimentValues,
        *,
        goal: Goal | None = None,
        leaving: bool = True,
        good_enough: float | None = None,
    ) -> None:
        """Begins a race.

        Args:
            design: The experiment's.
            values: Those of the experiment, empty at first.
            goal: What the answer is for; None: each workload's own metric.
            leaving: Whether beaten schedulers leave at once, or stay until their workload is settled.
            good_enough: The race ends when the regret of some scheduler is at most this; None: never.
        """
        self._design = design
        self._values = values
        self._goal = goal
        self._leaving = leaving
        self._good_enough = good_enough
        self._blocks = 0
        self._workloads = {workload.name: workload for workload in values.workloads}

    def add(self, sample: RunSample) -> None:
        """Adds a run; a failed one has no value."""
        self._blocks = max(self._blocks, sample.cell.block + 1)
        self._values.add(sample)

    def add_value(self, workload: str, scheduler: str, block: int, value: float | None) -> None:
        """Adds the value that decides a workload, in place of a run; None for a run that has none."""
        self._blocks = max(self._blocks, block + 1)
        if value is not None:
            metric = metric_named(self._workloads[workload].decide_by)
            self._values.add_value(workload, metric.name, scheduler, block, value)

    def standings(
        self, blocks_left: int | None, *, rounds_left: Mapping[str, int | None] | None = None
    ) -> Standings:
        """The schedulers that run in the next block.

        Args:
            blocks_left: Blocks that the budget still allows; None if that is not known.
            rounds_left: The same for workloads that are switched, by name.
        """
        left = {} if rounds_left is None else rounds_left
        labels = self._values.labels
        running: dict[str, frozenset[str]] = {}
        still_open: list[OpenQuestion] = []
        given_up: list[str] = []
        questions = self._questions()
        verdicts = self._verdicts(questions)
        for verdict, pairs, workloads in verdicts:
            runners: frozenset[str] = frozenset()
            if verdict.status == "undecided":
                contenders = in_the_race(pairs, labels)
                unit = self._values.unit(workloads[0]) if self._goal is None else self._values.common_unit
                if self._hopeless(verdict, pairs, left.get(workloads[0], blocks_left)):
                    given_up.append(verdict.workload)
                else:
                    runners = frozenset(contenders if self._leaving else labels)
                    leader, lead = _leader(verdict, pairs, labels)
                    still_open.append(
                        OpenQuestion(verdict.workload, contenders, verdict.more_blocks, unit, leader, lead)
                    )
            running |= dict.fromkeys(workloads, runners)
        chosen = self._chosen(questions, [verdict for verdict, _, _ in verdicts]) if still_open else None
        if chosen is not None:
            running, still_open = dict.fromkeys(running, frozenset[str]()), []
        everyone = frozenset(labels) if still_open else frozenset()
        for workload in self._workloads:
            running.setdefault(workload, everyone)
        return Standings(running, still_open, given_up, chosen)

    def _chosen(self, questions: Sequence[Question], verdicts: Sequence[MetricVerdict]) -> str | None:
        """The scheduler whose regret is small enough to end the race."""
        if self._good_enough is None:
            return None
        labels, in_force = self._values.labels, self._values.in_force
        found = regrets(questions, self._design, labels, in_force)
        candidates = [label for label in labels if all(label in one.candidates for one in verdicts)]
        return good_enough(found, in_force[0] if in_force else None, candidates, self._good_enough)

    def _questions(self) -> list[Question]:
        """Those that the verdict rests on."""
        if self._goal is None:
            return deciding_questions(self._values)
        return [goal_scores(self._values, self._goal).question]

    def _verdicts(
        self, questions: Sequence[Question]
    ) -> list[tuple[MetricVerdict, list[PairwiseComparison], list[str]]]:
        """Each race with its pairs and the workloads that are run for it."""
        if self._goal is None:
            workloads = [[question.workload] for question in questions]
        else:
            workloads = [[workload.name for workload in self._values.judged]]
        labels = self._values.labels
        compared = compare_all(questions, self._design, labels)
        return [
            (metric_verdict(question, pairs, self._design, labels), pairs, names)
            for question, pairs, names in zip(questions, compared, workloads, strict=True)
        ]

    def _hopeless(
        self, verdict: MetricVerdict, pairs: Sequence[PairwiseComparison], blocks_left: int | None
    ) -> bool:
        """Whether no open question about the first place can be expected to close."""
        if self._blocks < FEWEST_BEFORE_GIVING_UP or blocks_left is None:
            return False
        among = set(verdict.candidates)
        undecided = [
            pair for pair in pairs if pair.outcome == "undecided" and {pair.first, pair.second} <= among
        ]
        if any(pair.n < FEWEST_BLOCKS for pair in undecided):
            return False
        needs = [pair.least_more_blocks for pair in undecided if pair.least_more_blocks is not None]
        return not needs or min(needs) > HOPELESS_FACTOR * blocks_left


def _leader(
    verdict: MetricVerdict, pairs: Sequence[PairwiseComparison], labels: Sequence[str]
) -> tuple[str | None, float | None]:
    """The first of the candidates and its lead over the next; None for both until all are compared."""
    leader = verdict.candidates[0]
    rivals = [pair for pair in pairs if leader in (pair.first, pair.second)]
    if len(rivals) < len(labels) - 1:
        return None, None
    among = [pair.ratio for pair in rivals if {pair.first, pair.second} <= set(verdict.candidates)]
    if not all(ratio > 0 and math.isfinite(ratio) for ratio in among) or not among:
        return leader, None
    return leader, math.exp(min(abs(math.log(ratio)) for ratio in among)) - 1


def race_of(record: ExperimentRecord) -> Race:
    """The race of an experiment, before its first run.

    Args:
        record: The experiment as begun, with its schedulers settled.
    """
    spec = record.spec
    values = values_begun(spec, record.target.default_scheduler)
    return Race(
        design_of(spec), values, goal=spec.goal, leaving=not spec.sweeps, good_enough=spec.good_enough
    )
