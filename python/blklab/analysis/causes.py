"""The cause of a difference between two schedulers, from what each of them did in one run.

The mean wait of the I/Os that the question is about is taken apart: in the queue or in the device, and by who
held the device meanwhile. The part that differs most between the two leads to the cause, and a counter of the
scheduler's doing names it. Where waits are alike, the time is lost outside of the block layer.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from blklab.records.behaviour import NOBODY, Behaviour, PartyWaits

CauseKind = Literal[
    "idling",
    "idled",
    "limit",
    "order",
    "turns",
    "slices",
    "held",
    "runs",
    "distance",
    "merging",
    "depth",
    "processors",
]
"""``idling``: the better one leaves the device idle for the next I/O. ``idled``: the other one left it
idle while I/O waited. ``limit``: the better one lets fewer I/Os of another party into the device. ``order``:
it lets I/O go before that of another party. ``turns``: the other one serves another party for long in a row.
``slices``: the better one serves the I/O in question for long in a row. ``held``: another party held the
device longer. ``runs``: more is read in one place before the head moves. ``distance``: the head moves less
far. ``merging``: requests are larger. ``depth``: more requests are in the device at a time. ``processors``:
an I/O takes less processor time."""

Phase = Literal["queue", "device"]

LEAST_DIFFERENCE = 0.1
"""Waits or rates that differ by less are alike."""
LEAST_IDLE_SHARE = 0.02
"""A device that is left idle for a smaller share of the time more is not left idle on purpose."""
_LEAST_FACTOR = 1.3
_LEAST_TURN_FACTOR = 2.0
_MOST_BEHIND_LOCKS = 10.0
"""Computing under a lock delays the others too, by so many times its length at most."""
_LEAST_TURN = 4.0
"""Fewer dispatches in a row are no turn."""


@dataclass(frozen=True)
class Cause:
    """The reason for which one scheduler is better than another under a workload."""

    workload: str
    better: str
    worse: str
    kind: CauseKind
    focus: str
    """The party whose I/O waited less; several are joined; empty for the device as a whole."""
    other: str
    """The party that it waited for; empty if the cause lies with none."""
    better_count: float
    worse_count: float
    """The counter that the kind is about, under each."""
    phase: Phase | None
    """Where the difference in waiting lies; None if waits are alike."""
    better_wait_ns: float
    worse_wait_ns: float
    """The mean wait there of an I/O of the focus."""

    @property
    def weight(self) -> float:
        """The worse wait over the better one."""
        return self.worse_wait_ns / max(self.better_wait_ns, 1.0)


@dataclass(frozen=True)
class _Side:
    """One scheduler, with the waits of the I/Os that the question is about."""

    behaviour: Behaviour
    waits: PartyWaits
    overtaken: float
    turn: float
    bytes: int

    @property
    def bytes_per_second(self) -> float:
        return self.bytes / self.behaviour.span_ns * 1e9

    def of_others(self, phase: Phase, focus: Collection[str]) -> dict[str, float]:
        """The waiting by the other parties that held the device meanwhile."""
        held = self.waits.queue_held_ns if phase == "queue" else self.waits.device_held_ns
        return {name: ns for name, ns in held.items() if name != NOBODY and name not in focus}


def cause_of(
    better: Behaviour, worse: Behaviour, focus: Sequence[str] = (), *, of_slowest: bool = False
) -> Cause | None:
    """The cause of the difference between two schedulers.

    Args:
        better: What the better scheduler did.
        worse: What the other one did, under the same workload.
        focus: The parties whose I/O the question is about; empty: all.
        of_slowest: Whether it is about their slowest I/Os, as percentiles are.

    Returns:
        None if neither waits nor rates differ, or if no counter tells why.
    """
    names = [one.name for one in better.parties if (not focus or one.name in focus) and worse.party(one.name)]
    if not names:
        return None
    sides = [_side(one, names, of_slowest=of_slowest) for one in (better, worse)]
    first, second = sides
    gap_ns = second.waits.total_ns - first.waits.total_ns
    if gap_ns < LEAST_DIFFERENCE * second.waits.total_ns:
        return _outside_of_waits(first, second, names)
    parts = {
        "others_queue": _sum(second.of_others("queue", names)) - _sum(first.of_others("queue", names)),
        "others_device": _sum(second.of_others("device", names)) - _sum(first.of_others("device", names)),
        "idle": second.waits.queue_held_ns.get(NOBODY, 0.0) - first.waits.queue_held_ns.get(NOBODY, 0.0),
    }
    parts["own"] = gap_ns - sum(parts.values())
    largest = max(parts, key=lambda name: parts[name])
    if largest == "idle":
        counts = (better.idle_while_waiting_share, worse.idle_while_waiting_share)
        return _cause(first, second, names, "idled", "", counts, "queue")
    if largest == "own":
        return _of_service(first, second, names)
    return _of_others(first, second, names, "queue" if largest == "others_queue" else "device")


def _of_others(first: _Side, second: _Side, focus: Sequence[str], phase: Phase) -> Cause:
    """Another party held the device longer while the focus waited; the first sign that is there counts."""
    before, after = first.of_others(phase, focus), second.of_others(phase, focus)
    other = max(after, key=lambda name: after[name] - before.get(name, 0.0))
    better, worse = first.behaviour, second.behaviour
    there, here = better.party(other), worse.party(other)
    idle = (better.idle_while_waiting_share, worse.idle_while_waiting_share)
    inside = (there.mean_in_device if there else 0.0, here.mean_in_device if here else 0.0)
    turn = (there.mean_turn if there else 0.0, here.mean_turn if here else 0.0)
    overtaken = (first.overtaken, second.overtaken)
    queued = phase == "queue"
    signs: list[tuple[CauseKind, tuple[float, float], bool]] = [
        ("idling", idle, idle[0] - idle[1] >= LEAST_IDLE_SHARE),
        ("slices", (first.turn, second.turn), _is_turn(first.turn, second.turn)),
        ("limit", inside, not queued and inside[1] >= _LEAST_FACTOR * inside[0]),
        ("order", overtaken, queued and overtaken[0] < 1.0 <= overtaken[1]),
        ("turns", turn, queued and _is_turn(turn[1], turn[0])),
        ("order", overtaken, queued and overtaken[1] >= max(1.0, _LEAST_FACTOR * overtaken[0])),
        ("held", (before.get(other, 0.0), after[other]), True),
    ]
    kind, counts = next((kind, counts) for kind, counts, tells in signs if tells)
    return _cause(first, second, focus, kind, other, counts, phase)


def _is_turn(longer: float, shorter: float) -> bool:
    return longer >= max(_LEAST_TURN, _LEAST_TURN_FACTOR * shorter)


def _of_service(first: _Side, second: _Side, focus: Sequence[str]) -> Cause | None:
    """The device took longer for the I/Os of the focus themselves."""
    better, worse = first.behaviour, second.behaviour
    in_queue_ns = second.waits.in_queue_ns - first.waits.in_queue_ns
    phase: Phase = "queue" if in_queue_ns > second.waits.in_device_ns - first.waits.in_device_ns else "device"
    jumps = (better.mean_jump_bytes, worse.mean_jump_bytes)
    if worse.mean_jump_bytes is not None and better.bytes_per_jump >= _LEAST_FACTOR * worse.bytes_per_jump:
        runs = (better.bytes_per_jump, worse.bytes_per_jump)
        return _cause(first, second, focus, "runs", "", runs, phase)
    if jumps[0] is not None and jumps[1] is not None and jumps[1] >= _LEAST_FACTOR * jumps[0]:
        return _cause(first, second, focus, "distance", "", (jumps[0], jumps[1]), phase)
    if better.bytes_per_request >= _LEAST_FACTOR * worse.bytes_per_request:
        sizes = (better.bytes_per_request, worse.bytes_per_request)
        return _cause(first, second, focus, "merging", "", sizes, phase)
    if phase == "queue" and better.mean_in_device >= _LEAST_FACTOR * worse.mean_in_device:
        depths = (better.mean_in_device, worse.mean_in_device)
        return _cause(first, second, focus, "depth", "", depths, phase)
    return None


def _outside_of_waits(first: _Side, second: _Side, focus: Sequence[str]) -> Cause | None:
    """Requests wait alike, but more is done under one: larger requests, or less computing for each."""
    if first.bytes_per_second < (1 + LEAST_DIFFERENCE) * second.bytes_per_second:
        return None
    better, worse = first.behaviour, second.behaviour
    if better.bytes_per_request >= _LEAST_FACTOR * worse.bytes_per_request:
        sizes = (better.bytes_per_request, worse.bytes_per_request)
        return _cause(first, second, focus, "merging", "", sizes, None)
    computing = (better.cpu_ns_per_io, worse.cpu_ns_per_io)
    if computing[0] is None or computing[1] is None:
        return None
    faster = first.bytes_per_second / second.bytes_per_second
    # Computing explains a difference only if it differs by about as much.
    if computing[1] / computing[0] - 1 < (faster - 1) / 2:
        return None
    # Nor do microseconds of computing, even behind a lock, explain milliseconds between requests.
    between_ns = [one.span_ns / max(1, one.requests) for one in (better, worse)]
    if _MOST_BEHIND_LOCKS * (computing[1] - computing[0]) < between_ns[1] - between_ns[0]:
        return None
    return _cause(first, second, focus, "processors", "", (computing[0], computing[1]), None)


def _cause(
    first: _Side,
    second: _Side,
    focus: Sequence[str],
    kind: CauseKind,
    other: str,
    counts: tuple[float, float],
    phase: Phase | None,
) -> Cause:
    waits = [
        side.waits.in_queue_ns
        if phase == "queue"
        else side.waits.in_device_ns
        if phase == "device"
        else side.waits.total_ns
        for side in (first, second)
    ]
    everyone = {one.name for one in second.behaviour.parties}
    return Cause(
        workload=first.behaviour.workload,
        better=first.behaviour.scheduler,
        worse=second.behaviour.scheduler,
        kind=kind,
        focus="" if set(focus) >= everyone else ", ".join(focus),
        other=other,
        better_count=counts[0],
        worse_count=counts[1],
        phase=phase,
        better_wait_ns=waits[0],
        worse_wait_ns=waits[1],
    )


def _side(behaviour: Behaviour, focus: Sequence[str], *, of_slowest: bool) -> _Side:
    parties = [one for one in behaviour.parties if one.name in focus]
    waits = [one.slowest if of_slowest else one.waits for one in parties]
    counts = [one.requests for one in parties]
    return _Side(
        behaviour=behaviour,
        waits=_mean_waits(waits, counts),
        overtaken=_weighted([one.overtaken for one in parties], counts),
        turn=_weighted([one.mean_turn for one in parties], counts),
        bytes=sum(one.bytes for one in parties),
    )


def _mean_waits(waits: Sequence[PartyWaits], counts: Sequence[int]) -> PartyWaits:
    def mean_of(held: Sequence[dict[str, float]]) -> dict[str, float]:
        names = dict.fromkeys(name for one in held for name in one)
        return {name: _weighted([one.get(name, 0.0) for one in held], counts) for name in names}

    return PartyWaits(
        in_queue_ns=_weighted([one.in_queue_ns for one in waits], counts),
        in_device_ns=_weighted([one.in_device_ns for one in waits], counts),
        queue_held_ns=mean_of([one.queue_held_ns for one in waits]),
        device_held_ns=mean_of([one.device_held_ns for one in waits]),
    )


def _weighted(values: Sequence[float], counts: Sequence[int]) -> float:
    return sum(value * count for value, count in zip(values, counts, strict=True)) / max(1, sum(counts))


def _sum(held: dict[str, float]) -> float:
    return sum(held.values())
