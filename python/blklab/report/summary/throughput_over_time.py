"""The course of the speed over a run, in words: one end against the other.

`SteadinessPart.change` is the rise of the fitted line over the mean speed, as SNIA's rule has it. A run that
does all its work at once and then idles has a line that falls by several times its mean, a percentage that is
hard to read. The slower end as a share of the faster one says the same, from 0 to 100 %.
"""

from __future__ import annotations

import math

from blklab.report.documents.findings import SteadinessPart


def course_text(entry: SteadinessPart) -> str:
    """``last fifth at 72 % [71, 73] of the first``, or ``first fifth … of the last`` if the speed rises."""
    rises = entry.change > 0
    slower, faster = ("first", "last") if rises else ("last", "first")
    share = _end_over_begin(-abs(entry.change))
    if entry.ci_low is None or entry.ci_high is None:
        return f"{slower} fifth at {share:.0f} % of the {faster}"
    bounds = (-entry.ci_high, -entry.ci_low) if rises else (entry.ci_low, entry.ci_high)
    low, high = map(_end_over_begin, bounds)
    decimals = 0 if high - low >= 2 else 1
    interval = ", ".join(f"{bound:.{decimals}f}" if math.isfinite(bound) else "∞" for bound in (low, high))
    return f"{slower} fifth at {share:.{decimals}f} % [{interval}] of the {faster}"


def _end_over_begin(change: float) -> float:
    """The end of a line as a percentage of its beginning; the line rises by `change` times its middle.

    A line that reaches zero before its end is cut off there.
    """
    begin, end = 1 - change / 2, 1 + change / 2
    if begin <= 0:
        return math.inf
    return 100 * max(0.0, end) / begin
