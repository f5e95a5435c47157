"""Finds a drive's front end: slots of the controller, its turns among queues, and programs that hold reads.

Each of them leaves writes as they are and makes reads wait, so reads beside writes tell them: with programs
that hold reads they wait beside the fewest writes already, with slots from that depth on at which writes
take them all, and how long they then wait in a queue of their own tells the turns. A drive without a front
end explains all loads as well as one with it; what explains nothing is not assumed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from blklab.labs.calibration.disk.document import Figure
from blklab.labs.calibration.disk.fit import TWO_SIDED
from blklab.labs.calibration.disk.flash.figures import FlashDrive, Floats, Hold
from blklab.labs.calibration.disk.ground import DiskMeasurement
from blklab.labs.calibration.disk.model import Model
from blklab.labs.calibration.disk.reads_beside_writes import RUNTIME_US, ReadsBesideWrites

_HOLDS: tuple[Hold, ...] = ("nothing", "program")
_ROUGH_ERROR = 0.1
"""Of a logarithm, where the search begins."""
_LEAST_ERROR = 0.02
_SEEDS = range(11, 13)
_CHANCE_SEEDS = range(101, 109)
_TOLERATED = 3.0
"""Standard errors beyond which a difference counts less."""
_CLEAR = 30.0
"""By so much must a part of the front end improve the fit, as a sum of squares, to be assumed."""
_MOST_BURST = 64
_RULED_OUT = TWO_SIDED**2
_POINTS = 3
"""Tried between two ends, where integers are too many to try all."""


@dataclass(frozen=True)
class FrontEnd:
    """The part of a drive that this module finds; as built, none."""

    slots: int = 0
    arbitration_burst: int = 1
    hold: Hold = "nothing"

    @property
    def exists(self) -> bool:
        """Whether the drive has one."""
        return self != FrontEnd()

    def of(self, drive: FlashDrive) -> FlashDrive:
        """The drive with this front end."""
        return replace(drive, slots=self.slots, arbitration_burst=self.arbitration_burst, hold=self.hold)


Interval = tuple[int, int]


@dataclass(frozen=True)
class FoundFrontEnd:
    """A front end, the intervals of its numbers, and its figures."""

    front_end: FrontEnd
    most_commands: int
    """In flight in the deepest load."""
    slots: Interval | None = None
    arbitration_burst: Interval | None = None

    def figures(self) -> list[Figure]:
        """As a profile lists them."""
        front_end = self.front_end
        unlimited = f"no limit seen with {self.most_commands} commands at once"
        slots = _figure("slots", front_end.slots, self.slots, unlimited)
        hold = Figure(
            key="hold", value=front_end.hold, low=None, high=None, how="suits reads beside writes best"
        )
        if not front_end.slots:
            return [slots, hold]
        unseen = "not identified by the loads"
        burst = _figure("arbitration_burst", front_end.arbitration_burst, self.arbitration_burst, unseen)
        return [slots, burst, hold]


def _figure(key: str, value: int, interval: Interval | None, unseen: str) -> Figure:
    low, high = interval or (None, None)
    return Figure(key=key, value=value, low=low, high=high, how="fitted" if interval else unseen)


class Contention:
    """The reads beside writes as measured, and as the simulator has them.

    Args:
        measured: By load, its repetitions.
        model: Simulates.
    """

    def __init__(self, measured: Mapping[ReadsBesideWrites, Sequence[DiskMeasurement]], model: Model) -> None:
        self._loads = list(measured)
        self._model = model
        self._logs = np.array([np.mean([_logs(one) for one in runs], axis=0) for runs in measured.values()])
        self._counts = np.array([[len(runs)] for runs in measured.values()])
        self.weigh_alike()
        for load in self._loads:
            model.runtimes_us[load.name] = RUNTIME_US

    @property
    def most_commands(self) -> int:
        """In flight in the deepest load, the read of a reader of its own among them."""
        return max(load.writes_in_flight + bool(load.writers) for load in self._loads)

    @property
    def degrees_of_freedom(self) -> int:
        """Numbers that were measured, without those of a front end."""
        return int(self._logs.size) - 3

    def weigh_alike(self) -> None:
        """Takes one error for all numbers: figures are not exact where a search begins."""
        self._errors = np.full(self._logs.shape, _ROUGH_ERROR)

    def weigh_at(self, drive: FlashDrive) -> None:
        """Takes the errors from the chance that the loads have on a drive."""
        chance = np.std(self._predicted(drive, _CHANCE_SEEDS), axis=0, ddof=1)
        parts = np.sqrt(1 / self._counts + 1 / len(_SEEDS))
        self._errors = np.hypot(chance * parts, _LEAST_ERROR)

    def cost(self, drive: FlashDrive, seeds: Sequence[int] = _SEEDS) -> float:
        """The sum of squares in standard errors, of which large ones count less."""
        misfit = (np.mean(self._predicted(drive, seeds), axis=0) - self._logs) / self._errors
        return float(2 * _TOLERATED**2 * np.sum(np.sqrt(1 + (misfit / _TOLERATED) ** 2) - 1))

    def _predicted(self, drive: FlashDrive, seeds: Sequence[int]) -> Floats:
        """By seed and load: logarithms of the numbers."""
        by_load = self._model.measured(drive.device(), self._loads, seeds)
        found: Floats = np.array([[_logs(one) for one in runs] for runs in by_load]).transpose(1, 0, 2)
        return found


def _logs(found: DiskMeasurement) -> tuple[float, float, float]:
    """Mean and 99th percentile of the reads' latency, and the writes' rate."""
    return (
        math.log(found.mean_ns or found.p50_ns),
        math.log(found.p99_ns),
        math.log(found.write_iops or found.iops),
    )


def front_end_of(contention: Contention, drive: FlashDrive) -> FrontEnd:
    """The front end under which reads wait beside writes as was measured.

    Args:
        contention: What was measured.
        drive: All other figures, about.
    """
    none = FrontEnd()
    contention.weigh_at(none.of(drive))
    if contention.cost(none.of(drive)) < contention.degrees_of_freedom:
        return none
    contention.weigh_alike()
    most = contention.most_commands
    halves = [0, *(most >> step for step in range(most.bit_length()))]

    def cost(front_end: FrontEnd) -> float:
        return contention.cost(front_end.of(drive), _SEEDS[:1])

    best = min((FrontEnd(slots, 1, hold) for slots in halves for hold in _HOLDS), key=cost)
    if best.slots:
        powers = [1 << power for power in range(_MOST_BURST.bit_length())]
        best = min((replace(best, arbitration_burst=burst) for burst in powers), key=cost)
    return refined(contention, drive, best)


def refined(contention: Contention, drive: FlashDrive, near: FrontEnd) -> FrontEnd:
    """The best front end near one, without the parts that explain nothing.

    Args:
        contention: What was measured.
        drive: All other figures.
        near: Where to look.
    """
    contention.weigh_at(near.of(drive))
    best = near

    def cost(front_end: FrontEnd) -> float:
        return contention.cost(front_end.of(drive))

    for _ in range(2):
        if not best.slots:
            break
        for key, most in (("slots", contention.most_commands), ("arbitration_burst", _MOST_BURST)):
            value = getattr(best, key)
            best = _with(
                best, key, _least(_along(cost, best, key), max(1, value // 2), min(most, 2 * value), value)
            )
    # What remains unexplained widens what counts as clear.
    clear = _CLEAR * _scale(contention, cost(best))
    simpler = (
        (FrontEnd(), clear),
        (FrontEnd(hold=best.hold), clear),
        (replace(best, hold="nothing"), clear),
        (replace(best, arbitration_burst=1), 0.0),
    )
    return next((one for one, margin in simpler if cost(one) <= cost(best) + margin), best)


def with_intervals(contention: Contention, drive: FlashDrive, front_end: FrontEnd) -> FoundFrontEnd:
    """The front end, with the numbers that are not ruled out at 95 %.

    Args:
        contention: What was measured.
        drive: All other figures.
        front_end: The best.
    """
    most = contention.most_commands
    if not front_end.slots:
        return FoundFrontEnd(front_end, most)

    def cost(other: FrontEnd) -> float:
        return contention.cost(other.of(drive))

    least = cost(front_end)
    limit = least + _RULED_OUT * _scale(contention, least)

    def interval(key: str, largest: int) -> Interval:
        along, value = _along(cost, front_end, key), int(getattr(front_end, key))
        low, high = (_last_within(along, value, end, limit) for end in (1, largest))
        return low, high

    burst = interval("arbitration_burst", _MOST_BURST)
    identified = burst[1] < _MOST_BURST or burst[0] > 1
    return FoundFrontEnd(front_end, most, interval("slots", most), burst if identified else None)


def _scale(contention: Contention, cost: float) -> float:
    return max(1.0, cost / contention.degrees_of_freedom)


def _with(front_end: FrontEnd, key: str, value: int) -> FrontEnd:
    if key == "slots":
        return replace(front_end, slots=value)
    return replace(front_end, arbitration_burst=value)


def _along(cost: Callable[[FrontEnd], float], best: FrontEnd, key: str) -> Callable[[int], float]:
    """The cost by one number, the others fixed."""
    known: dict[int, float] = {}

    def along(value: int) -> float:
        if value not in known:
            known[value] = cost(_with(best, key, value))
        return known[value]

    return along


def _least(cost: Callable[[int], float], low: int, high: int, value: int) -> int:
    """The number with the least cost between two others, on ever finer grids."""
    while True:
        points = {round(point) for point in np.geomspace(low, high, _POINTS + 2).tolist()} | {value}
        ordered = sorted(points)
        value = min(ordered, key=cost)
        if high - low <= _POINTS:
            return value
        place = ordered.index(value)
        narrower = (ordered[max(0, place - 1)], ordered[min(len(ordered) - 1, place + 1)])
        if narrower == (low, high):
            return value
        low, high = narrower


def _last_within(cost: Callable[[int], float], value: int, end: int, limit: float) -> int:
    """The farthest number towards an end that is not ruled out, met by growing steps and then by halving."""
    sign, step = (1 if end > value else -1), 1
    inside, outside = value, value
    while outside != end:
        outside = min(end, inside + step) if sign > 0 else max(end, inside - step)
        if cost(outside) > limit:
            break
        inside, step = outside, 2 * step
    while abs(outside - inside) > 1:
        middle = (inside + outside) // 2
        inside, outside = (middle, outside) if cost(middle) <= limit else (inside, middle)
    return inside
