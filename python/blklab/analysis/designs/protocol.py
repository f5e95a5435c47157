"""The protocol of an experimental design."""

from __future__ import annotations

from typing import Protocol

from blklab.analysis.statistics.difference import Difference
from blklab.analysis.statistics.intervals import MeanInterval
from blklab.analysis.statistics.series import Series, Values


class Design(Protocol):
    """The part of an analysis that depends on how the samples were taken.

    A sample is one position in the experiment, numbered in order of time. In `FixedDesign` and
    `AnytimeDesign` it is a block, in which every scheduler runs once. A design whose schedulers take turns
    may give each position to one scheduler only. Therefore `means` and `difference` receive whole series with
    their positions, and the design decides which values to compare and how to allow for serial correlation.

    Designs are immutable and hold no data.
    """

    @property
    def confidence(self) -> float:
        """Coverage of every single interval, and of all claims of a family together; such as 0.95."""

    @property
    def margin(self) -> float:
        """Ratios between 1/(1+margin) and 1+margin count as equal."""

    @property
    def nr_questions(self) -> int:
        """Number of questions that are corrected together, 1 or more."""

    @property
    def level(self) -> float:
        """1 - confidence: the chance of any false claim in a family."""

    @property
    def fewest_samples(self) -> int:
        """Samples needed before any of the questions may be decided."""

    def of(self, workload: str) -> Design:
        """The design of one workload; experiments may mix runs and switchbacks."""

    def asking(self, nr_questions: int) -> Design:
        """The same design with another number of questions."""

    def means(self, series: Series) -> dict[str, MeanInterval]:
        """Geometric mean and interval of each scheduler that has a positive value."""

    def difference(self, first: Values, second: Values) -> Difference | None:
        """First against second.

        Returns:
            None if the two share no sample.
        """

    def more_samples(self, difference: Difference, *, at_least: bool = False) -> int | None:
        """Samples that an undecided question would probably take in addition, at least one.

        Args:
            difference: As found so far.
            at_least: Whether to suppose that the estimate is off in the way that helps, where a design gives
                up a question by this number.

        Returns:
            None if it is hopeless.
        """
