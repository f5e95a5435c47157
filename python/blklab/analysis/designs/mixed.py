"""An experiment in which some workloads have runs and others are switched back and forth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from blklab.analysis.designs.protocol import Design
from blklab.analysis.statistics.difference import Difference
from blklab.analysis.statistics.intervals import MeanInterval
from blklab.analysis.statistics.series import Series, Values


@dataclass(frozen=True, kw_only=True)
class MixedDesign:
    """Each workload has its own design; questions about several workloads have the design `overall`."""

    by_workload: Mapping[str, Design]
    overall: Design

    @property
    def confidence(self) -> float:
        """The same for all."""
        return self.overall.confidence

    @property
    def margin(self) -> float:
        """The same for all."""
        return self.overall.margin

    @property
    def nr_questions(self) -> int:
        """The same for all."""
        return self.overall.nr_questions

    @property
    def level(self) -> float:
        """1 - confidence."""
        return self.overall.level

    @property
    def fewest_samples(self) -> int:
        """Of questions about several workloads."""
        return self.overall.fewest_samples

    def of(self, workload: str) -> Design:
        """The design of one workload, or of several together."""
        return self.by_workload.get(workload, self.overall)

    def asking(self, nr_questions: int) -> MixedDesign:
        """The same designs with another number of questions."""
        return replace(
            self,
            by_workload={name: design.asking(nr_questions) for name, design in self.by_workload.items()},
            overall=self.overall.asking(nr_questions),
        )

    def means(self, series: Series) -> dict[str, MeanInterval]:
        """Of values over several workloads."""
        return self.overall.means(series)

    def difference(self, first: Values, second: Values) -> Difference | None:
        """Of values over several workloads."""
        return self.overall.difference(first, second)

    def more_samples(self, difference: Difference, *, at_least: bool = False) -> int | None:
        """Of values over several workloads."""
        return self.overall.more_samples(difference, at_least=at_least)
