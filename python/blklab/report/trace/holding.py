"""Who held the device when.

A disk with a head serves one request at a time: the time up to a completion, from the completion before it
(or from when the device got the request), counts for the one that completed. A device without a head serves
many at once: each moment is shared equally by all requests in the device. What a drive does of its own
accord (emptying its write cache) counts for nobody.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from blklab.report.trace.parties import Cast, Floats


@dataclass(frozen=True)
class Holding:
    """For each party, the time for which it has held the device up to a moment."""

    moments: list[Floats]
    held_ns: list[Floats]
    """Non-decreasing, linear between the moments."""

    def within(self, party: int, edges: Floats) -> Floats:
        """Share of the time between successive edges (ns) that a party held the device."""
        if not len(self.moments[party]):
            return np.zeros(len(edges) - 1)
        held = np.interp(edges, self.moments[party], self.held_ns[party])
        return np.diff(held) / np.maximum(np.diff(edges), 1e-9)

    def share(self, party: int, start_ns: float, end_ns: float) -> float:
        """Share of an interval."""
        return float(self.within(party, np.array([start_ns, end_ns]))[0])


def holding_of(cast: Cast) -> Holding:
    """Works out who held the device."""
    return _by_turns(cast) if cast.has_head else _shared(cast)


def turns(cast: Cast) -> tuple[Floats, Floats]:
    """Start and end (ns) of the time that each request had the device for itself."""
    ends = cast.served["complete_ns"].astype(np.float64)
    before = np.concatenate([[0.0], ends[:-1]])
    return np.minimum(np.maximum(cast.served["dispatch_ns"].astype(np.float64), before), ends), ends


def _by_turns(cast: Cast) -> Holding:
    starts, ends = turns(cast)
    moments, held = [], []
    for party in range(len(cast.parties)):
        mine = cast.party_of == party
        sums = np.cumsum(ends[mine] - starts[mine])
        moments.append(np.stack([starts[mine], ends[mine]], axis=1).ravel())
        held.append(
            np.stack([np.concatenate([[0.0], sums[:-1]]), sums], axis=1).ravel() if len(sums) else sums
        )
    return Holding(moments, held)


def _shared(cast: Cast) -> Holding:
    times = np.concatenate([cast.served["dispatch_ns"], cast.served["complete_ns"]]).astype(np.float64)
    steps = np.repeat([1.0, -1.0], len(cast.served))
    whose = np.tile(cast.party_of, 2)
    order = np.argsort(times, kind="stable")
    times, steps, whose = times[order], steps[order], whose[order]
    lengths = np.diff(times, append=times[-1:])
    everyone = np.maximum(np.cumsum(steps), 1.0)
    moments, held = [], []
    for party in range(len(cast.parties)):
        mine = np.cumsum(np.where(whose == party, steps, 0.0)) / everyone
        moments.append(times)
        held.append(np.concatenate([[0.0], np.cumsum(mine * lengths)[:-1]]) if len(times) else times)
    return Holding(moments, held)
