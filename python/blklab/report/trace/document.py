"""The JSON document that `blklab explain --json` prints; the other forms are made from it."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from blklab.quantities.units import NS_PER_US
from blklab.report.documents.comparison import JobPart, job_part
from blklab.report.documents.parts import Part
from blklab.report.trace.holding import Holding
from blklab.report.trace.submitters import Floats, TracedRun
from blklab.simulator.timeline import FLUSH, MERGED, SECTOR_BYTES

EXPLAIN_SCHEMA: Literal["blklab.explain/1"] = "blklab.explain/1"


class WaitPart(Part):
    """Times in microseconds."""

    mean: float | None
    p99: float | None
    max: float | None


class SubmitterPart(Part):
    """One job, or the kernel if no job waits for the request, as the device saw it."""

    name: str
    requests: int
    merged: int
    """Pieces of I/O that merged into another request."""
    bytes: int
    device_share: float
    """Share of the run's time; see `blklab.report.trace.holding`."""
    waiting_us: WaitPart
    """From submission to dispatch."""
    in_device_us: WaitPart
    mean_jump_bytes: float | None
    """Mean distance of the head to its requests; None without a head."""


class MemberPart(Part):
    """One disk of an array."""

    disk: int
    """Index of the disk."""
    requests: int
    busy_share: float
    """Share of the run's time with a request in the disk."""
    mean_queued: float
    """Mean number of requests in its scheduler at each dispatch."""
    mean_in_flight: float
    mean_jump_bytes: float | None
    """Mean distance of the head between requests; None without a head."""


class SlowestPart(Part):
    """The slowest request."""

    name: str
    arrive_ns: int
    waiting_us: float
    in_device_us: float
    position_bytes: int
    held_meanwhile: dict[str, float]
    """Share of that time during which each submitter held the device."""


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
    """Number of disks that served requests. The values of an array are those of all members together."""
    members: list[MemberPart]
    """The disks of an array that served requests; empty for a single disk."""
    jobs: list[JobPart]
    parties: list[SubmitterPart]
    idle_share: float
    """Share of the run's time without a request in the device."""
    switches: int
    """Number of changes from one submitter to another."""
    longest_turn: tuple[str, int] | None
    """The submitter with the most completions in a row, and their number."""
    mean_queued: float
    """Mean number of requests in the scheduler at each dispatch."""
    mean_in_flight: float
    slowest: SlowestPart | None


def explain_document(traced: TracedRun, holding: Holding) -> ExplainDocument:
    """Computes the document of a run."""
    run, served = traced.timeline.run, traced.served
    jumps = head_jumps(traced)
    submitters = [_submitter(traced, holding, index, jumps) for index in range(len(traced.submitters))]
    changes = np.flatnonzero(np.diff(traced.submitter_of))
    return ExplainDocument(
        target=run.target,
        workload=run.workload,
        scheduler=run.scheduler,
        tunables=run.tunables,
        queue=run.queue,
        seed=run.seed,
        simulated_ns=run.simulated_ns,
        requests=len(served),
        disks=traced.disks,
        members=[_member(disk, member) for disk, member in traced.members().items()],
        jobs=[job_part(job) for job in run.jobs],
        parties=submitters,
        idle_share=_idle_share(traced),
        switches=len(changes),
        longest_turn=_longest_turn(traced, changes),
        mean_queued=float(served["queued"].mean()) if len(served) else 0.0,
        mean_in_flight=float(served["in_flight"].mean()) if len(served) else 0.0,
        slowest=_slowest(traced, holding),
    )


def head_jumps(traced: TracedRun) -> Floats | None:
    """Distance in bytes from the head to each request, in order of completion; None without a head."""
    if not traced.has_head:
        return None
    heads = traced.served["head_complete"].astype(np.float64)
    before = np.concatenate([[0.0], heads[:-1]])
    jumps: Floats = np.abs(traced.served["sector"].astype(np.float64) - before) * SECTOR_BYTES
    return jumps


def _member(disk: int, member: TracedRun) -> MemberPart:
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


def _submitter(traced: TracedRun, holding: Holding, index: int, jumps: Floats | None) -> SubmitterPart:
    mine = traced.submitter_of == index
    served = traced.served[mine]
    everything = traced.timeline.requests
    # A merged piece belongs to the submitter that submitted it.
    job = traced.submitters[index].job
    pieces = everything[(everything["job"] == job) if job is not None else np.zeros(len(everything), bool)]
    if job is None:
        pieces = served
    merged = int(((pieces["flags"] & MERGED) != 0).sum())
    data = served["operation"] != FLUSH
    return SubmitterPart(
        name=traced.submitters[index].name,
        requests=len(served),
        merged=merged,
        bytes=int(pieces["sectors"].sum(dtype=np.uint64)) * SECTOR_BYTES,
        device_share=holding.share(index, 0.0, float(traced.end_ns)),
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


def _idle_share(traced: TracedRun) -> float:
    """Share of the run outside all intervals from dispatch to completion."""
    order = np.argsort(traced.served["dispatch_ns"], kind="stable")
    starts = traced.served["dispatch_ns"][order].astype(np.float64)
    reach = np.maximum.accumulate(traced.served["complete_ns"][order].astype(np.float64))
    before = np.concatenate([[0.0], reach[:-1]])
    idle_ns = np.maximum(starts - before, 0.0).sum() + max(
        0.0, traced.end_ns - (reach[-1] if len(reach) else 0.0)
    )
    return float(idle_ns / traced.end_ns)


def _longest_turn(traced: TracedRun, changes: np.ndarray) -> tuple[str, int] | None:
    if not len(traced.served):
        return None
    edges = np.concatenate([[0], changes + 1, [len(traced.served)]])
    lengths = np.diff(edges)
    longest = int(lengths.argmax())
    return traced.submitters[int(traced.submitter_of[edges[longest]])].name, int(lengths[longest])


def slowest_request(traced: TracedRun) -> int | None:
    """Index of the slowest served request from submission to completion, excluding flushes."""
    took = (traced.served["complete_ns"] - traced.served["arrive_ns"]).astype(np.float64)
    took[traced.served["operation"] == FLUSH] = -1.0
    # Prefer requests of jobs, because no job waits for background writes.
    jobs = np.array([submitter.job is not None for submitter in traced.submitters])
    if len(took) and jobs[traced.submitter_of].any():
        took[~jobs[traced.submitter_of]] = -1.0
    return int(took.argmax()) if len(took) and took.max() >= 0 else None


def _slowest(traced: TracedRun, holding: Holding) -> SlowestPart | None:
    index = slowest_request(traced)
    if index is None:
        return None
    row = traced.served[index]
    start_ns, end_ns = float(row["arrive_ns"]), float(row["complete_ns"])
    shares = {
        submitter.name: round(holding.share(number, start_ns, end_ns), 4)
        for number, submitter in enumerate(traced.submitters)
    }
    return SlowestPart(
        name=traced.submitters[int(traced.submitter_of[index])].name,
        arrive_ns=int(row["arrive_ns"]),
        waiting_us=float(row["dispatch_ns"] - row["arrive_ns"]) / NS_PER_US,
        in_device_us=float(row["complete_ns"] - row["dispatch_ns"]) / NS_PER_US,
        position_bytes=int(row["sector"]) * SECTOR_BYTES,
        held_meanwhile={name: share for name, share in shares.items() if share > 0},
    )
