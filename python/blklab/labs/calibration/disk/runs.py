"""The measurements of a calibration, one after the other; those that were saved are not repeated."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Protocol

from blklab.errors import FormatError
from blklab.labs.calibration.disk.ground import DiskMeasurement, Ground
from blklab.labs.calibration.disk.loads import CalibrationLoad
from blklab.labs.calibration.disk.saved import SavedMeasurements

_MOST_REST_S = 8.0


class DiskObserver(Protocol):
    """Follows a calibration."""

    def announce(self, line: str) -> None:
        """A step that is not a measurement."""

    def measuring(self, load: CalibrationLoad, *, done: int, planned: int, left_ns: int) -> None:
        """A measurement begins."""


class Runs:
    """The measurements of a calibration.

    Args:
        ground: The disk.
        saved: What was measured before an interruption; new measurements are added.
        planned: Number of measurements, as far as is known.
        budget_ns: Time for measuring.
        observer: Follows it.
    """

    def __init__(
        self,
        ground: Ground,
        saved: SavedMeasurements,
        *,
        planned: int,
        budget_ns: int,
        observer: DiskObserver,
    ) -> None:
        self.ground = ground
        self.planned = planned
        self.needed = 0
        """Runs that are made in any case, also beyond the budget; known with the kind of disk."""
        self._saved = saved
        self.budget_s = budget_ns / 1e9
        self._observer = observer
        self._prepared: set[str] = set()
        self._unbudgeted = 0
        self.made: list[DiskMeasurement] = []

    @property
    def spent_s(self) -> float:
        """Time of measuring up to now, as far as it counts against the budget."""
        return sum(one.took_s for one in self.made[self._unbudgeted :])

    @property
    def measured_s(self) -> float:
        """Time of measuring up to now, whether or not it counts."""
        return sum(one.took_s for one in self.made)

    @property
    def next_is_saved(self) -> bool:
        """Whether the next measurement was made before an interruption."""
        return len(self.made) < len(self._saved.measurements)

    def need(self, number: int) -> None:
        """So many more runs are made in any case."""
        self.needed = len(self.made) + number

    def begin_budget(self) -> None:
        """From here on time counts; what was measured up to now comes on top."""
        self._unbudgeted = len(self.made)
        self.planned += len(self.made)

    @property
    def at_end(self) -> bool:
        """Whether the budget is used, or enough was measured."""
        return self.spent_s >= self.budget_s or len(self.made) >= self.planned

    def announce(self, line: str) -> None:
        """Tells of a step that is not a measurement."""
        self._observer.announce(line)

    def prepare(self, loads: Sequence[CalibrationLoad]) -> None:
        """Checks loads, and lays out their file, unless all that will be measured was saved."""
        new = [load for load in loads if load.name not in self._prepared]
        if new and not self.next_is_saved:
            self.ground.prepare(new, self._observer.announce)
            self._prepared.update(load.name for load in new)

    def make(self, loads: Iterable[CalibrationLoad], runtime_us: int, *, within_budget: bool = False) -> None:
        """Measures loads one after the other."""
        for load in loads:
            if within_budget and self.at_end:
                return
            self.one(load, runtime_us)

    def rested(self, load: CalibrationLoad, runtime_us: int) -> DiskMeasurement:
        """Measures a load once, after the disk has rested for as long, within reason."""
        if not (self.ground.facts.rested or self.next_is_saved):
            time.sleep(min(runtime_us / 1e6, _MOST_REST_S))
        return self.one(load, runtime_us)

    def one(self, load: CalibrationLoad, runtime_us: int) -> DiskMeasurement:
        """Measures a load once."""
        number = len(self.made)
        if self.next_is_saved:
            saved = self._saved.measurements[number]
            if saved.load != load.name:
                raise FormatError(
                    "the saved measurements are of another calibration", hint="--fresh measures anew"
                )
            self.made.append(saved)
            return saved
        self.prepare([load])
        left_s = self._left_s()
        planned = max(self.planned, number + 1)
        self._observer.measuring(load, done=number, planned=planned, left_ns=round(left_s * 1e9))
        begun = time.monotonic()
        at_s = self.spent_s
        found = self.ground.measure(load, number=number, runtime_us=runtime_us)
        found = found.model_copy(update={"at_s": at_s, "took_s": time.monotonic() - begun})
        self._saved.add(found)
        self.made.append(found)
        return found

    def of(self, load: CalibrationLoad) -> list[DiskMeasurement]:
        """All measurements of a load."""
        return [one for one in self.made if one.load == load.name]

    def _left_s(self) -> float:
        """At most the rest of the budget, less if so many runs will not be needed; more for those needed."""
        rest_s = max(0.0, self.budget_s - self.spent_s)
        counted = len(self.made) - self._unbudgeted
        if not counted:
            return rest_s
        run_s = self.spent_s / counted
        most_s = min(rest_s, run_s * max(0, self.planned - len(self.made)))
        return max(most_s, run_s * (self.needed - len(self.made)))
