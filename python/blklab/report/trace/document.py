"""A simulated run in figures: what `blklab explain --json` prints and the other forms are made of."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from blklab.report.documents.comparison import JobPart, job_part
from blklab.report.documents.parts import Part
from blklab.report.trace.holding import Holding
from blklab.report.trace.parties import Cast, Floats
from blklab.simulator.timeline import FLUSH, MERGED, SECTOR_BYTES

NS_PER_US = 1_000
EXPLAIN_SCHEMA: Literal["blklab.explain/1"] = "blklab.explain/1"


class WaitPart(Part):
    """Times in microseconds."""

    mean: float | None
    p99: float | None
    max: float | None


class PartyPart(Part):
    """One job, or the kernel on nobody's behalf, as the device saw it."""

    name: str
    requests: int
    merged: int
    """Pieces of I/O that joined another request."""
    bytes: int
    device_share: float
    """Of the run's time; see `blklab.report.trace.holding`."""
    waiting_us: WaitPart
    """From submission until the device got it."""
    in_device_us: WaitPart
    mean_jump_bytes: float | None
    """How far the head had to go for it, on average; nothing without a head."""


class MemberPart(Part):
    """One disk of an array."""

    disk: int
    """Its index."""
    requests: int
    busy_share: float
    """Share of the run's time in which a request was in it."""
    mean_queued: float
    """Requests with its scheduler whenever it got one."""
    mean_in_flight: float
    mean_jump_bytes: float | None
    """How far its head had to go, on average; nothing without a head."""


class SlowestPart(Part):
    """The request that took longest."""

    name: str
    arrive_ns: int
    waiting_us: float
    in_device_us: float
    position_bytes: int
    held_meanwhile: dict[str, float]
    """Share of that time for which each party held the device."""


class ExplainDocument(Part):
    """`blklab.explain/1`."""

    schema_: Literal["blklab.explain/1"] = Field(default=EXPLAIN_SCHEMA, alias="schema")
    target: str
    workload: str
    scheduler: str
    tunables: dict[str, str | int]
    queue: dict[str, str | int]
    seed: int
    simulated_ns: int
    requests: int
    disks: int
    """Disks that served requests. For an array the figures are those of all members together."""
    members: list[MemberPart]
    """The disks of an array that served requests; empty for a single disk."""
    jobs: list[JobPart]
    parties: list[PartyPart]
    idle_share: float
    """Share of the run's time in which no request was in the device."""
    switches: int
    """How often the device went from one party to another."""
    longest_turn: tuple[str, int] | None
    """Who had most completions in a row, and how many."""
    mean_queued: float
    """Requests with the scheduler whenever the device got one."""
    mean_in_flight: float
    slowest: SlowestPart | None


def explain_document(cast: Cast, holding: Holding) -> ExplainDocument:
    """Puts a run into figures."""
    run, served = cast.timeline.run, cast.served
    jumps = head_jumps(cast)
    parties = [_party(cast, holding, index, jumps) for index in range(len(cast.parties))]
    changes = np.flatnonzero(np.diff(cast.party_of))
    return ExplainDocument(
        target=run.target,
        workload=run.workload,
        scheduler=run.scheduler,
        tunables=run.tunables,
        queue=run.queue,
        seed=run.seed,
        simulated_ns=run.simulated_ns,
        requests=len(served),
        disks=cast.disks,
        members=[_member(disk, member) for disk, member in cast.members().items()],
        jobs=[job_part(job) for job in run.jobs],
        parties=parties,
        idle_share=_idle_share(cast),
        switches=len(changes),
        longest_turn=_longest_turn(cast, changes),
        mean_queued=float(served["queued"].mean()) if len(served) else 0.0,
        mean_in_flight=float(served["in_flight"].mean()) if len(served) else 0.0,
        slowest=_slowest(cast, holding),
    )


def head_jumps(cast: Cast) -> Floats | None:
    """Distance in bytes from where the head was to each request, in order of completion; for disks only."""
    if not cast.has_head:
        return None
    heads = cast.served["head_complete"].astype(np.float64)
    before = np.concatenate([[0.0], heads[:-1]])
    jumps: Floats = np.abs(cast.served["sector"].astype(np.float64) - before) * SECTOR_BYTES
    return jumps


def _member(disk: int, member: Cast) -> MemberPart:
    jumps = head_jumps(member)
    data = member.served["operation"] != FLUSH
    return MemberPart(
        disk=disk,
        requests=len(member.served),
        busy_share=1.0 - _idle_share(member),
        mean_queued=float(member.served["queued"].mean()),
        mean_in_flight=float(member.served["in_flight"].mean()),
        mean_jump_bytes=None if jumps is None or not data.any() else float(jumps[data].mean()),
    )


def _party(cast: Cast, holding: Holding, index: int, jumps: Floats | None) -> PartyPart:
    mine = cast.party_of == index
    served = cast.served[mine]
    everything = cast.timeline.requests
    # A merged piece belongs to the party that submitted it.
    job = cast.parties[index].job
    pieces = everything[(everything["job"] == job) if job is not None else np.zeros(len(everything), bool)]
    if job is None:
        pieces = served
    merged = int(((pieces["flags"] & MERGED) != 0).sum())
    data = served["operation"] != FLUSH
    return PartyPart(
        name=cast.parties[index].name,
        requests=len(served),
        merged=merged,
        bytes=int(pieces["sectors"].sum(dtype=np.uint64)) * SECTOR_BYTES,
        device_share=holding.share(index, 0.0, float(cast.end_ns)),
        waiting_us=_wait(served["dispatch_ns"] - served["arrive_ns"]),
        in_device_us=_wait(served["complete_ns"] - served["dispatch_ns"]),
        mean_jump_bytes=None if jumps is None or not data.any() else float(jumps[mine][data].mean()),
    )


def _wait(times_ns: np.ndarray) -> WaitPart:
    if not len(times_ns):
        return WaitPart(mean=None, p99=None, max=None)
    return WaitPart(
        mean=float(times_ns.mean()) / NS_PER_US,
        p99=float(np.quantile(times_ns, 0.99, method="inverted_cdf")) / NS_PER_US,
        max=float(times_ns.max()) / NS_PER_US,
    )


def _idle_share(cast: Cast) -> float:
    """One minus the union of all intervals from dispatch to completion."""
    order = np.argsort(cast.served["dispatch_ns"], kind="stable")
    starts = cast.served["dispatch_ns"][order].astype(np.float64)
    reach = np.maximum.accumulate(cast.served["complete_ns"][order].astype(np.float64))
    before = np.concatenate([[0.0], reach[:-1]])
    idle_ns = np.maximum(starts - before, 0.0).sum() + max(
        0.0, cast.end_ns - (reach[-1] if len(reach) else 0.0)
    )
    return float(idle_ns / cast.end_ns)


def _longest_turn(cast: Cast, changes: np.ndarray) -> tuple[str, int] | None:
    if not len(cast.served):
        return None
    edges = np.concatenate([[0], changes + 1, [len(cast.served)]])
    lengths = np.diff(edges)
    longest = int(lengths.argmax())
    return cast.parties[int(cast.party_of[edges[longest]])].name, int(lengths[longest])


def slowest_request(cast: Cast) -> int | None:
    """Index of the served request that took longest from submission to completion, flushes aside."""
    took = (cast.served["complete_ns"] - cast.served["arrive_ns"]).astype(np.float64)
    took[cast.served["operation"] == FLUSH] = -1.0
    # Of requests that somebody waits for, if there are any: background writes may take their time.
    jobs = np.array([party.job is not None for party in cast.parties])
    if len(took) and jobs[cast.party_of].any():
        took[~jobs[cast.party_of]] = -1.0
    return int(took.argmax()) if len(took) and took.max() >= 0 else None


def _slowest(cast: Cast, holding: Holding) -> SlowestPart | None:
    index = slowest_request(cast)
    if index is None:
        return None
    row = cast.served[index]
    start_ns, end_ns = float(row["arrive_ns"]), float(row["complete_ns"])
    shares = {
        party.name: round(holding.share(number, start_ns, end_ns), 4)
        for number, party in enumerate(cast.parties)
    }
    return SlowestPart(
        name=cast.parties[int(cast.party_of[index])].name,
        arrive_ns=int(row["arrive_ns"]),
        waiting_us=float(row["dispatch_ns"] - row["arrive_ns"]) / NS_PER_US,
        in_device_us=float(row["complete_ns"] - row["dispatch_ns"]) / NS_PER_US,
        position_bytes=int(row["sector"]) * SECTOR_BYTES,
        held_meanwhile={name: share for name, share in shares.items() if share > 0},
    )
