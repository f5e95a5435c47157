"""What a study is: experiments to make, and a reading of what they left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

from blklab.experiment import ExperimentRecord
from blklab.spec import DEFAULT_SEED, ExperimentSpec
from blklab.studies.published import Published
from blklab.studies.result import StudyResult

Place = Literal["sim", "uml", "host"]
"""Where a study runs: on the simulator, in a kernel in virtual time, on this machine."""

PLACES: tuple[Place, ...] = get_args(Place)


@dataclass(frozen=True)
class Asked:
    """What a person asked of a study."""

    place: Place = "sim"
    quick: bool = False
    """Whether smaller sizes and fewer cases will do."""
    seed: int = DEFAULT_SEED
    directory: str = "."
    """Where scratch files go on the place ``host``."""


@dataclass(frozen=True)
class NamedExperiment:
    """One experiment of a study."""

    name: str
    """Unique within the study; `Study.read` finds the record under it."""
    title: str
    spec: ExperimentSpec


class Study(Protocol):
    """A published experiment that can be run again. Both methods are pure: files that ship and arguments."""

    NAME: str
    """The folder of `studies/`, whose ``claims.toml`` has the title and the source."""
    PLACES: tuple[Place, ...]

    def experiments(self, asked: Asked, published: Published) -> Sequence[NamedExperiment]:
        """What to run, in order."""

    def read(
        self, asked: Asked, published: Published, records: Mapping[str, ExperimentRecord]
    ) -> StudyResult:
        """What the records say, beside what was published.

        Args:
            asked: As it was given to `experiments`.
            published: The study's folder.
            records: By the names that `experiments` gave, all of them.
        """
