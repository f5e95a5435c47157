"""The order of measurements: rounds in which every load runs once, then the loads that tell most."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from blklab.labs.calibration.disk.fit import DiskFit
from blklab.labs.calibration.disk.loads import ARM_PROBES, REFERENCE, DiskLoad
from blklab.labs.calibration.disk.observations import DiskObservation, Row
from blklab.labs.calibration.disk.parameters import Floats
from blklab.spec.plan import derive_seed

PROBE_ROUNDS = 3
ROUNDS = 2
"""Before anything can be fitted."""
MOST_ROUNDS = 6
"""Further measurements would say little more than these."""
_REFERENCE_EVERY = 12
_CHOSEN = 9
_HOLDOUTS = 3
"""Of these so many in each batch of chosen loads: they are tested with, so they must be known too."""


class Order:
    """All orders of a calibration, which its seed and its measurements decide."""

    def __init__(self, fitted: Sequence[DiskLoad], holdouts: Sequence[DiskLoad], seed: int) -> None:
        self.fitted = list(fitted)
        self.holdouts = list(holdouts)
        self._seed = seed

    @property
    def all_loads(self) -> list[DiskLoad]:
        """Every load, each once."""
        return list(dict.fromkeys([*ARM_PROBES, REFERENCE, *self.fitted, *self.holdouts]))

    @property
    def most_runs(self) -> int:
        """Runs after which a calibration ends, whatever its budget."""
        return PROBE_ROUNDS * len(ARM_PROBES) + MOST_ROUNDS * len(self.round(0))

    def probes(self, number: int) -> list[DiskLoad]:
        """A round of the runs that look for an arm."""
        return self._shuffled(ARM_PROBES, "probe", number)

    def round(self, number: int) -> list[DiskLoad]:
        """Every load once, with the reference now and then."""
        loads = self._shuffled([*self.fitted, *self.holdouts], "round", number)
        found: list[DiskLoad] = []
        for position, load in enumerate(loads):
            if position % _REFERENCE_EVERY == _REFERENCE_EVERY // 2:
                found.append(REFERENCE)
            found.append(load)
        return found

    def batch(
        self, number: int, fit: DiskFit, found: Mapping[Row, DiskObservation], counts: Mapping[str, int]
    ) -> list[DiskLoad]:
        """Loads that tell most about the figures, a few to test with, and the reference.

        Args:
            number: The batch's.
            fit: To the first rounds.
            found: The observations that it rests on.
            counts: How often each load was measured up to now, by name.
        """
        chosen = most_telling(fit, found, self.fitted, counts, _CHOSEN)
        first = number * _HOLDOUTS
        tests = [self.holdouts[(first + step) % len(self.holdouts)] for step in range(_HOLDOUTS)]
        return self._shuffled([*chosen, *tests, REFERENCE], "batch", number)

    def _shuffled(self, loads: Iterable[DiskLoad], *path: str | int) -> list[DiskLoad]:
        order = random.Random(derive_seed(self._seed, "calibration", *path))  # noqa: S311 - not for secrets
        shuffled = list(loads)
        order.shuffle(shuffled)
        return shuffled


def most_telling(
    fit: DiskFit,
    found: Mapping[Row, DiskObservation],
    loads: Sequence[DiskLoad],
    counts: Mapping[str, int],
    number: int,
) -> list[DiskLoad]:
    """The runs that shrink the joint uncertainty of the figures most, chosen one after the other.

    Each adds most to the logarithm of the determinant of the information (D-optimality). A load whose error
    is the model's rather than the measurement's adds little, however often it runs.
    """
    of_load: dict[DiskLoad, list[int]] = {}
    for index, (load, _) in enumerate(fit.rows):
        of_load.setdefault(load, []).append(index)
    times = Counter({load.name: counts.get(load.name, 0) for load in loads})
    scatter = np.array([found[row].error ** 2 * found[row].count for row in fit.rows])
    prior = np.diag(1 / fit.layout.prior_deviations() ** 2)

    def information(times: Mapping[str, int]) -> Floats:
        nr_runs = np.array([max(1, times[load.name]) for load, _ in fit.rows])
        weights = 1 / (scatter / nr_runs + fit.model_error**2)
        return np.asarray((fit.slopes * weights[:, None]).T @ fit.slopes + prior)

    chosen: list[DiskLoad] = []
    for _ in range(number):
        best = max(
            of_load,
            key=lambda load: float(np.linalg.slogdet(information(times + Counter([load.name])))[1]),
        )
        chosen.append(best)
        times[best.name] += 1
    return chosen
