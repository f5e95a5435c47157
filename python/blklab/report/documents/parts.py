"""Parts that several documents for machines are built from."""

from __future__ import annotations

from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict

AnyPart = TypeVar("AnyPart", bound="Part")
Outcome = Literal["better", "worse", "equal", "undecided"]

OUTCOME_SIGNS: dict[Outcome, str] = {
    "better": "▲ better",
    "worse": "▼ worse",
    "equal": "= equal",
    "undecided": "? open",
}
"""Signs and words of outcomes in reports."""


class Part(BaseModel):
    """A piece of a document: what it does not name does not belong into it."""

    model_config = ConfigDict(extra="forbid")

    @classmethod
    def of(cls: type[AnyPart], found: object, **given: object) -> AnyPart:
        """The part that says what was found.

        Args:
            found: Has the fields of the part under the same names, parts of parts likewise.
            given: Fields that are not to be taken from there.
        """
        names = [name for name in cls.model_fields if name not in given]
        taken = {name: getattr(found, name) for name in names}
        return cls.model_validate({**taken, **given}, from_attributes=True)


class MeanPart(Part):
    """A scheduler's geometric mean of a metric over its runs, with its interval."""

    scheduler: str
    metric: str
    n: int
    mean: float
    ci_low: float | None
    ci_high: float | None


class RatioPart(Part):
    """A ratio within blocks, with its interval, and its outcome at the experiment's margin."""

    metric: str
    n: int
    ratio: float
    ci_low: float | None
    ci_high: float | None
    p_adjusted: float
    outcome: Outcome


class PairPart(RatioPart):
    """Two schedulers within blocks: `ratio` is first over second."""

    first: str
    second: str
    more_blocks: int | None
    samples_per_value: int = 1
    """Blocks or rounds that each of the `n` values covers; percentiles of short slots need several."""
