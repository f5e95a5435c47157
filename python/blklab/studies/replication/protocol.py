"""What a study is: experiments to make, and a reading of what they left."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar, get_args

from blklab.records.experiment import ExperimentRecord
from blklab.spec.experiment import DEFAULT_SEED, ExperimentSpec
from blklab.studies.replication.result import StudyResult
from blklab.studies.replication.study_folder import Published

Place = Literal["sim", "uml", "host"]
"""Where a study runs: on the simulator, in a kernel in virtual time, on this machine."""

PLACES: tuple[Place, ...] = get_args(Place)

Size = TypeVar("Size", int, str)
"""Of a set-up: a number of runs, a length, a size."""


@dataclass(frozen=True)
class Asked:
    """What a person asked of a study."""

    place: Place = "sim"
    quick: bool = False
    """Whether smaller sizes and fewer cases will do."""
    seed: int = DEFAULT_SEED
    directory: str = "."
    """Where scratch files go on the place ``host``."""
    directory_named: bool = False
    """Whether a person chose the folder, and so the disks to be tested."""

    def choose(self, usual: Size, *, quick: Size, uml: Size) -> Size:
        """One of the sizes of a set-up: the guest's own there, whose time is dear, or the one asked for."""
        if self.place == "uml":
            return uml
        return quick if self.quick else usual


@dataclass(frozen=True)
class NamedExperiment:
    """One experiment of a study."""

    name: str
    """Unique within the study; `Study.read` finds the record under it."""
    title: str
    spec: ExperimentSpec


@dataclass(frozen=True)
class Study:
    """A published experiment that can be run again. Its functions are pure: files and arguments."""

    name: str
    """The folder of `studies/`, whose ``claims.toml`` has the title and the source."""
    places: tuple[Place, ...]
    experiments: Callable[[Asked, Published], Sequence[NamedExperiment]]
    """What to run, in order."""
    read: Callable[[Asked, Published, Mapping[str, ExperimentRecord]], StudyResult]
    """What the records say, beside what was published. Takes the records by the names that `experiments`
    gave, all of them."""
