"""Formats numbers for people: one unit per column or chart, and no more digits than the interval supports."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeGuard

MOST_DIGITS = 4
"""Limit even for a narrow interval: people do not read tables of six-digit numbers."""
FEWEST_DIGITS = 2
DIGITS_WITHOUT_INTERVAL = 3
_NOTHING = 1e-12
"""Anything smaller is what is left of a difference between equal numbers."""

TIMES = "\N{MULTIPLICATION SIGN}"

MOST_BLOCKS_WITHIN_REACH = 1_000
"""An estimate of more blocks than that is of no practical use."""

_RATIO_AS_FACTOR = 2.0
"""From this ratio upwards a factor reads better than a percentage."""

_NEARLY_NOTHING = 0.05
"""Ratios below it are -95 % or less."""
_MOST_DECIMALS = 4

_WIDE_INTERVAL = 3.0
"""From this ratio of its bounds upwards, an interval only gives a magnitude: each bound is rounded alone."""

_TIME_STEPS = ((1e-3, "ns"), (1.0, "µs"), (1e3, "ms"), (1e6, "s"))
_RATE_STEPS = ((1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T"))

_PERCENTILE = re.compile(r"(p\d+)_(\d+)")
_OF_JOBS = re.compile(r"(?:(share)|ratio):([^/]+)(?:/(.+))?")
_NAMED_NONE = re.compile(r"none([@:].*)?")
_ABBREVIATIONS = {"iops": "IOPS", "cpu": "CPU", "io": "I/O", "jain": "Jain's"}


@dataclass(frozen=True)
class Scale:
    """A unit for people: the displayed number is the value divided by `factor`."""

    factor: float
    unit: str

    def shown(self, value: float) -> float:
        """The value in this unit."""
        return value / self.factor

    def figure(self, value: float, low: float | None = None, high: float | None = None) -> str:
        """The value without its unit, rounded according to its interval."""
        return rounded(self.shown(value), self._half_width(low, high))

    def interval(self, value: float, low: float | None, high: float | None) -> str:
        """``12.3 [12.1, 12.5]`` without the unit; only the value if there is no interval."""
        figure = self.figure(value, low, high)
        if low is None or high is None:
            return figure
        if high > _WIDE_INTERVAL * low:
            bounds = (rounded(self.shown(bound), abs(self.shown(bound))) for bound in (low, high))
            return f"{rounded(self.shown(value), self.shown(value))} [{', '.join(bounds)}]"
        half = self._half_width(low, high)
        center = self.shown(value)
        bounds = (rounded(self.shown(bound), half, digits_of=center) for bound in (low, high))
        return f"{figure} [{', '.join(bounds)}]"

    def quantity(self, value: float, low: float | None = None, high: float | None = None) -> str:
        """The value with its unit."""
        return f"{self.figure(value, low, high)} {self.unit}"

    def _half_width(self, low: float | None, high: float | None) -> float | None:
        return None if low is None or high is None else (high - low) / 2 / self.factor


def scale_for(unit: str, values: Iterable[float]) -> Scale:
    """One scale for all values of a column: SI prefixes for rates and bytes, ns to s for times.

    Args:
        unit: A metric's unit: ``us``, ``B``, ``B/s``, ``IO/s``; any other unit stays as it is.
        values: The values; their median decides.
    """
    present = [abs(value) for value in values if value and math.isfinite(value)]
    typical = statistics.median_high(present) if present else 0.0
    if unit == "us":
        steps: tuple[tuple[float, str], ...] = _TIME_STEPS
        start = (1.0, "µs")
    elif unit == "B" or unit.endswith("/s"):
        steps = tuple((factor, f"{prefix}{unit}") for factor, prefix in _RATE_STEPS)
        start = steps[0]
    else:
        return Scale(1.0, unit)
    fitting = [step for step in steps if typical >= step[0]] if typical else [start]
    factor, name = fitting[-1] if fitting else steps[0]
    return Scale(factor, name)


def rounded(value: float, half_width: float | None = None, *, digits_of: float | None = None) -> str:
    """Rounds a number to its first uncertain digit: that of the leading digit of the interval's half width.

    If that leading digit is 1 or 2, the number gets one more digit. It always has at least `FEWEST_DIGITS`
    and at most `MOST_DIGITS` significant digits.

    Args:
        value: The number.
        half_width: Half the width of its interval; None if there is none.
        digits_of: The number whose magnitude determines the limits, so that bounds are written like their
            center; None for `value` itself.
    """
    reference = abs(value if digits_of is None else digits_of)
    if not math.isfinite(value) or not math.isfinite(reference):
        return "-"
    if reference < _NOTHING:
        value = reference = 0.0
    magnitude = math.floor(math.log10(reference)) if reference else 0
    if half_width is None or not math.isfinite(half_width):
        place: float = magnitude - DIGITS_WITHOUT_INTERVAL + 1
    else:
        place = _doubtful_place(half_width) if half_width > 0 else -math.inf
        place = max(magnitude - MOST_DIGITS + 1, min(place, magnitude - FEWEST_DIGITS + 1))
    number = round(value, -int(place))
    return _without_minus_zero(f"{number:.{max(0, -int(place))}f}")


def _doubtful_place(half_width: float) -> float:
    """The power of ten of the last significant digit."""
    place = math.floor(math.log10(half_width))
    return place - 1 if half_width / 10**place < 3 else place


def _without_minus_zero(text: str) -> str:
    return text[1:] if text.startswith("-") and not text.strip("-0.") else text


def ratio_text(ratio: float, low: float | None = None, high: float | None = None) -> str:
    """A ratio for people: ``+12 % [+8, +17]``, ``-93 % [-95, -90]``, from twice as much on a factor.

    Less than all is always a percentage: a ratio of a thousandth is ``-99.9 %``.
    """
    wide = low is not None and high is not None and high > _WIDE_INTERVAL * low
    if ratio >= _RATIO_AS_FACTOR:
        if wide and low is not None and high is not None:
            bounds = ", ".join(rounded(bound, abs(bound)) for bound in (low, high))
            return f"{rounded(ratio, ratio)} {TIMES} [{bounds}]"
        return _ratio_as_factor(ratio, low, high)
    decimals = _decimals(ratio, None if low is None or high is None else 50 * (high - low))
    figure = _signed_percent(ratio, decimals)
    if low is None or high is None:
        return f"{figure} %"
    return f"{figure} % [{_signed_percent(low, decimals)}, {_signed_percent(high, decimals)}]"


def _ratio_as_factor(ratio: float, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return f"{rounded(ratio)} {TIMES}"
    half = (high - low) / 2
    bounds = (rounded(bound, half, digits_of=ratio) for bound in (low, high))
    return f"{rounded(ratio, half)} {TIMES} [{', '.join(bounds)}]"


def _decimals(ratio: float, half_width: float | None) -> int:
    """Decimals of a percentage: two at most, and only those that the interval supports.

    Close to -100 there are as many as it takes to tell what is left.
    """
    decimals = 1
    if half_width is not None:
        decimals = 2 if half_width == 0 else int(min(2, max(0, -_doubtful_place(half_width))))
    if 0 < ratio < _NEARLY_NOTHING:
        decimals = max(decimals, min(_MOST_DECIMALS, math.ceil(-math.log10(ratio)) - 1))
    return decimals


def _signed_percent(ratio: float, decimals: int) -> str:
    text = f"{100 * (ratio - 1):+.{decimals}f}"
    return text if text.strip("+-0.") else text.replace("-", "±").replace("+", "±")


def margin_text(margin: float) -> str:
    """``2 %``."""
    return f"{100 * margin:g} %"


def confidence_text(confidence: float) -> str:
    """``95 %``."""
    return f"{100 * confidence:g} %"


def percent_text(share: float) -> str:
    """``14 %``."""
    return f"{100 * share:.0f} %"


def metric_title(name: str) -> str:
    """A metric's name for people: ``latency p99.9`` for ``latency_p99_9``."""
    if named := _OF_JOBS.fullmatch(name):
        kind, first, second = named.groups()
        return f"share of {first}" if kind == "share" else f"ratio of {first} to {second}"
    words = _PERCENTILE.sub(r"\1.\2", name).split("_")
    return " ".join(_ABBREVIATIONS.get(word, word) for word in words)


def scheduler_text(label: str) -> str:
    """A scheduler's name within a sentence: ``none``, a word of the language, is set off by backticks."""
    return f"`{label}`" if _NAMED_NONE.fullmatch(label) else label


def join_schedulers(labels: Sequence[str]) -> str:
    """Names of schedulers within a sentence, as `scheduler_text` has each."""
    return join_names([scheduler_text(label) for label in labels])


def within_reach(more_blocks: int | None) -> TypeGuard[int]:
    """Tells whether an estimate of the blocks still needed is small enough to report."""
    return more_blocks is not None and more_blocks <= MOST_BLOCKS_WITHIN_REACH


def count_of(number: int, thing: str, things: str | None = None) -> str:
    """``1 block``, ``2 blocks``; the plural is `things` if it is not regular."""
    return f"{number} {thing if number == 1 else things or f'{thing}s'}"


def join_names(names: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
