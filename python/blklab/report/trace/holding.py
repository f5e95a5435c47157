"""Computes when each submitter held the device.

A disk with a head serves one request at a time: the time up to a completion, from the previous completion or
from the dispatch of the request, counts for the completed request. A device without a head serves many at
once: all requests in the device share each moment equally. Work that a drive does on its own, such as
emptying its write cache, counts for no submitter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from blklab.report.trace.submitters import Floats, TracedRun


@dataclass(frozen=True)
class Holding:
    """The cumulative time for which each submitter held the device."""

    moments: list[Floats]
    held_ns: list[Floats]
    """Non-decreasing, linear between the moments."""

    def within(self, submitter: int, edges: Floats) -> Floats:
        """Share of the time between successive edges (ns) during which a submitter held the device."""
        if not len(self.moments[submitter]):
            return np.zeros(len(edges) - 1)
        held = np.interp(edges, self.moments[submitter], self.held_ns[submitter])
        return np.diff(held) / np.maximum(np.diff(edges), 1e-9)

    def share(self, submitter: int, start_ns: float, end_ns: float) -> float:
        """The same share for one interval."""
        return float(self.within(submitter, np.array([start_ns, end_ns]))[0])


def holding_of(traced: TracedRun) -> Holding:
    """Computes the holding times of a run."""
    return _by_turns(traced) if traced.has_head else _shared(traced)


def turns(traced: TracedRun) -> tuple[Floats, Floats]:
    """Start and end (ns) of the time during which each request held the device."""
    ends = traced.served["complete_ns"].astype(np.float64)
    before = np.concatenate([[0.0], ends[:-1]])
    return np.minimum(np.maximum(traced.served["dispatch_ns"].astype(np.float64), before), ends), ends


def _by_turns(traced: TracedRun) -> Holding:
    starts, ends = turns(traced)
    moments, held = [], []
    for submitter in range(len(traced.submitters)):
        mine = traced.submitter_of == submitter
        sums = np.cumsum(ends[mine] - starts[mine])
        moments.append(np.stack([starts[mine], ends[mine]], axis=1).ravel())
        held.append(
            np.stack([np.concatenate([[0.0], sums[:-1]]), sums], axis=1).ravel() if len(sums) else sums
        )
    return Holding(moments, held)


def _shared(traced: TracedRun) -> Holding:
    times = np.concatenate([traced.served["dispatch_ns"], traced.served["complete_ns"]]).astype(np.float64)
    steps = np.repeat([1.0, -1.0], len(traced.served))
    whose = np.tile(traced.submitter_of, 2)
    order = np.argsort(times, kind="stable")
    times, steps, whose = times[order], steps[order], whose[order]
    lengths = np.diff(times, append=times[-1:])
    everyone = np.maximum(np.cumsum(steps), 1.0)
    moments, held = [], []
    for submitter in range(len(traced.submitters)):
        mine = np.cumsum(np.where(whose == submitter, steps, 0.0)) / everyone
        moments.append(times)
        held.append(np.concatenate([[0.0], np.cumsum(mine * lengths)[:-1]]) if len(times) else times)
    return Holding(moments, held)
