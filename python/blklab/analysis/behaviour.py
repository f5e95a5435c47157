"""Counts what a scheduler did, from the requests of one run.

A disk with a head serves one request at a time: the time up to a completion, from the completion before or
from the dispatch of the request, counts for the completed one. Devices without a head serve many at once: all
that are in the device share each moment equally.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from blklab.records.behaviour import NOBODY, Behaviour, PartyBehaviour, PartyWaits

_Floats = NDArray[np.float64]
_Indices = NDArray[np.int64]

SLOWEST = 0.01
"""Share of the requests that count as the slowest."""


@dataclass(frozen=True)
class ServedRequests:
    """Requests that a device served in one run, one element each, in order of completion."""

    names: Sequence[str]
    """Of the parties."""
    party: _Indices
    """Index into `names`."""
    arrived_ns: _Floats
    dispatched_ns: _Floats
    completed_ns: _Floats
    position_bytes: _Floats
    bytes: _Floats
    span_ns: int
    has_head: bool
    cpu_ns_per_io: float | None = None


def behaviour_of(
    served: ServedRequests, workload: str, scheduler: str, source: Literal["simulation", "recording"]
) -> Behaviour:
    """The counters of a run."""
    held = _held(served)
    in_device_ns = served.completed_ns - served.dispatched_ns
    idle_ns, idle_while_waiting_ns = _idle(served)
    span_ns = max(1, served.span_ns)
    jumps = _jumps(served)
    return Behaviour(
        workload=workload,
        scheduler=scheduler,
        source=source,
        span_ns=span_ns,
        requests=len(served.party),
        bytes=int(served.bytes.sum()),
        idle_share=idle_ns / span_ns,
        idle_while_waiting_share=idle_while_waiting_ns / span_ns,
        mean_in_device=float(in_device_ns.sum()) / span_ns,
        jumps=len(jumps),
        mean_jump_bytes=float(jumps.mean()) if served.has_head and len(jumps) else None,
        cpu_ns_per_io=served.cpu_ns_per_io,
        parties=[
            _party(served, number, held, in_device_ns, span_ns)
            for number in range(len(served.names))
            if (served.party == number).any()
        ],
    )


def _party(
    served: ServedRequests,
    number: int,
    held: list[tuple[_Floats, _Floats]],
    in_device_ns: _Floats,
    span_ns: int,
) -> PartyBehaviour:
    mine = np.flatnonzero(served.party == number)
    took_ns = served.completed_ns[mine] - served.arrived_ns[mine]
    many = max(1, int(len(mine) * SLOWEST))
    slowest = mine[np.argpartition(took_ns, len(mine) - many)[len(mine) - many :]]
    return PartyBehaviour(
        name=served.names[number],
        requests=len(mine),
        bytes=int(served.bytes[mine].sum()),
        mean_in_device=float(in_device_ns[mine].sum()) / span_ns,
        mean_turn=_mean_turn(served, number),
        overtaken=_overtaken(served, number),
        waits=_waits(served, mine, held),
        slowest=_waits(served, slowest, held),
    )


def _waits(served: ServedRequests, rows: _Indices, held: list[tuple[_Floats, _Floats]]) -> PartyWaits:
    arrived, dispatched, completed = (
        times[rows] for times in (served.arrived_ns, served.dispatched_ns, served.completed_ns)
    )
    in_queue, in_device = float((dispatched - arrived).mean()), float((completed - dispatched).mean())
    return PartyWaits(
        in_queue_ns=in_queue,
        in_device_ns=in_device,
        queue_held_ns=_holders(served.names, held, arrived, dispatched, in_queue),
        device_held_ns=_holders(served.names, held, dispatched, completed, in_device),
    )


def _holders(
    names: Sequence[str],
    held: list[tuple[_Floats, _Floats]],
    begins: _Floats,
    ends: _Floats,
    mean_ns: float,
) -> dict[str, float]:
    """The mean time between two moments by the party that held the device; the rest is nobody's."""
    found = {}
    for name, (moments, sums) in zip(names, held, strict=True):
        if len(moments):
            found[name] = float((np.interp(ends, moments, sums) - np.interp(begins, moments, sums)).mean())
    return found | {NOBODY: max(0.0, mean_ns - sum(found.values()))}


def _held(served: ServedRequests) -> list[tuple[_Floats, _Floats]]:
    """For each party moments, and the time until then for which it had held the device."""
    return _by_turns(served) if served.has_head else _shared(served)


def _by_turns(served: ServedRequests) -> list[tuple[_Floats, _Floats]]:
    ends = served.completed_ns
    before = np.concatenate([[0.0], ends[:-1]])
    starts = np.minimum(np.maximum(served.dispatched_ns, before), ends)
    held = []
    for number in range(len(served.names)):
        mine = served.party == number
        sums = np.cumsum(ends[mine] - starts[mine])
        moments = np.stack([starts[mine], ends[mine]], axis=1).ravel()
        until = np.stack([np.concatenate([[0.0], sums[:-1]]), sums], axis=1).ravel() if len(sums) else sums
        held.append((moments, until))
    return held


def _shared(served: ServedRequests) -> list[tuple[_Floats, _Floats]]:
    times = np.concatenate([served.dispatched_ns, served.completed_ns])
    steps = np.repeat([1.0, -1.0], len(served.party))
    whose = np.tile(served.party, 2)
    order = np.argsort(times, kind="stable")
    times, steps, whose = times[order], steps[order], whose[order]
    lengths = np.diff(times, append=times[-1:])
    everyone = np.maximum(np.cumsum(steps), 1.0)
    held = []
    for number in range(len(served.names)):
        mine = np.cumsum(np.where(whose == number, steps, 0.0)) / everyone
        held.append((times, np.concatenate([[0.0], np.cumsum(mine * lengths)[:-1]]) if len(times) else times))
    return held


def _idle(served: ServedRequests) -> tuple[float, float]:
    """Time with nothing in the device, and the part of it in which something waited."""
    count = len(served.party)
    if not count:
        return float(served.span_ns), 0.0
    times = np.concatenate([served.arrived_ns, served.dispatched_ns, served.completed_ns])
    none, one = np.zeros(count), np.ones(count)
    order = np.argsort(times, kind="stable")
    waiting = np.cumsum(np.concatenate([one, -one, none])[order])
    inside = np.cumsum(np.concatenate([none, one, -one])[order])
    times = times[order]
    lengths = np.diff(times, append=max(float(served.span_ns), float(times[-1])))
    idle = inside < 0.5
    return float(times[0] + lengths[idle].sum()), float(lengths[idle & (waiting > 0.5)].sum())


def _mean_turn(served: ServedRequests, number: int) -> float:
    whose = served.party[np.argsort(served.dispatched_ns, kind="stable")]
    mine = whose == number
    begins = np.flatnonzero(mine & np.concatenate([[True], ~mine[:-1]]))
    return float(mine.sum()) / max(1, len(begins))


def _overtaken(served: ServedRequests, number: int) -> float:
    mine = served.party == number
    others = np.sort(served.dispatched_ns[~mine])
    passed = np.searchsorted(others, served.dispatched_ns[mine], "left") - np.searchsorted(
        others, served.arrived_ns[mine], "right"
    )
    return float(np.maximum(passed, 0).mean())


def _jumps(served: ServedRequests) -> _Floats:
    """Distances between requests that do not follow each other on the device."""
    data = served.bytes > 0
    starts, lengths = served.position_bytes[data], served.bytes[data]
    distances = np.abs(starts[1:] - (starts[:-1] + lengths[:-1]))
    return distances[distances > 0]
