"""The unit in which the samples of a workload are counted: blocks of runs, or rounds of slots."""

from __future__ import annotations

import math
from dataclasses import dataclass

from blklab.quantities.formatting import MOST_BLOCKS_WITHIN_REACH, count_of

MOST_DRIVES_WITHIN_REACH = 100
"""An estimate of more drives than that is of no practical use."""
LONGEST_LOAD_WITHIN_REACH_NS = 2 * 3_600_000_000_000
"""An estimate of more load than that is of no practical use."""

_SECOND_NS = 1_000_000_000
_MINUTE_NS = 60 * _SECOND_NS
_HOUR_NS = 60 * _MINUTE_NS


@dataclass(frozen=True)
class SampleUnit:
    """A block, in which every scheduler has a run, or a round, in which every scheduler has a slot."""

    slot_ns: int | None = None
    """Length of a slot; None for blocks of runs."""

    @property
    def name(self) -> str:
        """``block`` or ``round``."""
        return "block" if self.slot_ns is None else "round"

    @property
    def plain_name(self) -> str:
        """``repetition``: the word for both in sentences that need no knowledge of designs."""
        return "repetition"

    @property
    def part(self) -> str:
        """One scheduler's share of it: ``run`` or ``slot``."""
        return "run" if self.slot_ns is None else "slot"

    def count(self, number: int) -> str:
        """``1 block``, ``40 rounds``."""
        return count_of(number, self.name)

    def within_reach(self, more: int | None, nr_schedulers: int) -> bool:
        """Tells whether an estimate of the samples still needed is small enough to report.

        Args:
            more: The estimate; None if there is none.
            nr_schedulers: How many schedulers still run.
        """
        if more is None:
            return False
        if self.slot_ns is None:
            return more <= MOST_BLOCKS_WITHIN_REACH
        return more * nr_schedulers * self.slot_ns <= LONGEST_LOAD_WITHIN_REACH_NS

    def more(self, number: int, nr_schedulers: int) -> str:
        """``12 more repetitions``, with slots ``300 more repetitions (5 min of load)``.

        Args:
            number: Of samples.
            nr_schedulers: How many schedulers still run.
        """
        text = count_of(number, f"more {self.plain_name}")
        if self.slot_ns is None:
            return text
        return f"{text} ({rough_duration(number * nr_schedulers * self.slot_ns)} of load)"

    def more_between(self, least: int, most: int | None, nr_schedulers: int) -> str:
        """``12 to 90 more repetitions``, with slots ``300 to 900 more repetitions (5 to 15 min of load)``.

        Args:
            least: Of samples.
            most: None if there is no telling.
            nr_schedulers: How many schedulers still run.
        """
        if most is None:
            return f"at least {self.more(least, nr_schedulers)}"
        if most == least:
            return f"about {self.more(least, nr_schedulers)}"
        text = f"{least} to {count_of(most, f'more {self.plain_name}')}"
        if self.slot_ns is None:
            return text
        first, last = (rough_duration(number * nr_schedulers * self.slot_ns) for number in (least, most))
        amount, _, unit = first.partition(" ")
        both = f"{amount} to {last}" if last.endswith(f" {unit}") else f"{first} to {last}"
        return f"{text} ({both} of load)" if first != last else f"{text} ({last} of load)"


BLOCKS = SampleUnit()


@dataclass(frozen=True)
class DriveUnit(SampleUnit):
    """A drive, on which every scheduler was measured."""

    @property
    def name(self) -> str:
        """``drive``."""
        return "drive"

    @property
    def plain_name(self) -> str:
        """``drive``, too."""
        return self.name

    def within_reach(self, more: int | None, nr_schedulers: int) -> bool:  # noqa: ARG002 - all are measured
        """Tells whether an estimate of the drives still needed is small enough to report."""
        return more is not None and more <= MOST_DRIVES_WITHIN_REACH


DRIVES = DriveUnit()


def rough_duration(duration_ns: float) -> str:
    """An estimate of a time, rounded up to a step that suits it: ``7 s``, ``45 s``, ``4 min``, ``1.5 h``."""
    amount, unit = _rough(duration_ns)
    return f"{amount:g} {'min' if unit == 'm' else unit}"


def rough_budget(duration_ns: float) -> str:
    """The same as the command line takes it: ``45s``, ``4m``, ``1.5h``."""
    amount, unit = _rough(duration_ns)
    return f"{amount:g}{unit}"


def _rough(duration_ns: float) -> tuple[float, str]:
    if duration_ns <= 10 * _SECOND_NS:
        return max(1, math.ceil(duration_ns / _SECOND_NS)), "s"
    if duration_ns <= 90 * _SECOND_NS:
        return 5 * math.ceil(duration_ns / (5 * _SECOND_NS)), "s"
    if duration_ns <= 90 * _MINUTE_NS:
        return math.ceil(duration_ns / _MINUTE_NS), "m"
    return math.ceil(2 * duration_ns / _HOUR_NS) / 2, "h"
