"""Reads fio's report (JSON+) into samples."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from blklab.linux.processes.ending import ending
from blklab.quantities.units import NS_PER_MS
from blklab.records.samples import Direction, DirectionSample, JobSample, LatencyHistogram
from blklab.spec.workloads import Workload

_DATA_DIRECTIONS: tuple[Direction, ...] = ("read", "write", "trim")
_MOST_MESSAGES = 4
"""A failing device makes fio repeat the same message for every I/O in flight."""


@dataclass(frozen=True)
class FioReport:
    """The outcome of one run of fio."""

    jobs: list[JobSample]
    """In the order of the workload's jobs; empty if fio reported none."""
    error: str | None
    """The error in fio's words; None if fio succeeded."""
    warnings: list[str]
    """Messages of a fio that succeeded."""


def read_fio_report(output: str, *, messages: str, returncode: int, workload: Workload) -> FioReport:
    """Reads fio's output.

    Args:
        output: Text of the output file; may be empty or truncated if fio failed.
        messages: fio's terminal output.
        returncode: Exit code of fio; negative for a signal.
        workload: The workload that was run: the clones of a job are merged into one sample.
    """
    said = _distinct_lines(messages)
    # fio's early messages precede the JSON.
    start = output.find("{\n")
    said += [line for line in _distinct_lines(output[: max(start, 0)]) if line not in said]
    entries: list[dict[str, Any]] = []
    try:
        entries = json.loads(output[start:])["jobs"] if start >= 0 else []
    except (ValueError, KeyError):
        returncode = returncode or 1
    clones = sum(job.numjobs for job in workload.jobs)
    failed = [entry for entry in entries if entry.get("error")]
    if returncode or failed or len(entries) != clones:
        reasons = [f"job {entry['jobname']}: {os.strerror(abs(entry['error']))}" for entry in failed]
        if not reasons and not said:
            reasons = [f"fio reported {len(entries)} of {clones} jobs"]
        told = "; ".join([*dict.fromkeys(reasons), *said[:_MOST_MESSAGES]])
        error = f"{ending(returncode, 'fio')}: {told}"
        return FioReport(jobs=[], error=error, warnings=[])
    samples = []
    position = 0
    for job in workload.jobs:
        samples.append(_job_sample(job.name, entries[position : position + job.numjobs]))
        position += job.numjobs
    return FioReport(jobs=samples, error=None, warnings=said)


def _distinct_lines(text: str) -> list[str]:
    return list(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))


def _job_sample(name: str, entries: Sequence[dict[str, Any]]) -> JobSample:
    """Merges a section's clones into one sample."""
    directions = []
    for direction in _DATA_DIRECTIONS:
        parts = [entry[direction] for entry in entries if entry.get(direction, {}).get("total_ios")]
        if parts:
            directions.append(
                DirectionSample(
                    direction=direction,
                    ios=sum(part["total_ios"] for part in parts),
                    bytes=sum(part["io_bytes"] for part in parts),
                    runtime_ns=max(part["runtime"] for part in parts) * NS_PER_MS,
                    latency=LatencyHistogram.merged(latency_histogram(part["lat_ns"]) for part in parts),
                )
            )
    # fio divides I/Os by this time; in a mix the directions may end slightly apart.
    runtime_ns = max((entry.runtime_ns for entry in directions), default=_longest_ms(entries) * NS_PER_MS)
    syncs = LatencyHistogram.merged(
        latency_histogram(entry["sync"]["lat_ns"]) for entry in entries if "sync" in entry
    )
    if syncs.count:
        directions.append(
            DirectionSample(direction="sync", ios=syncs.count, bytes=0, runtime_ns=runtime_ns, latency=syncs)
        )
    return JobSample(
        name=name,
        clones=len(entries),
        runtime_ns=runtime_ns,
        directions=directions,
        cpu_user_ns=_cpu_ns(entries, "usr_cpu"),
        cpu_system_ns=_cpu_ns(entries, "sys_cpu"),
        context_switches=sum(int(entry.get("ctx", 0)) for entry in entries),
        clone_bytes=[
            sum(int(entry.get(direction, {}).get("io_bytes", 0)) for direction in _DATA_DIRECTIONS)
            for entry in entries
        ],
    )


def latency_histogram(block: dict[str, Any]) -> LatencyHistogram:
    """Reads a latency block of fio's report (``lat_ns``)."""
    bins = cast("dict[str, int]", block.get("bins", {}))
    count = int(block["N"])
    return LatencyHistogram(
        count=count,
        # fio keeps a running mean in double precision; the sum is exact to its last printed digit.
        sum_ns=float(block["mean"]) * count,
        min_ns=int(block["min"]) if count else 0,
        max_ns=int(block["max"]) if count else 0,
        bins={int(value_ns): int(number) for value_ns, number in bins.items()},
    )


def _longest_ms(entries: Sequence[dict[str, Any]]) -> int:
    return max((int(entry["job_runtime"]) for entry in entries), default=0)


def _cpu_ns(entries: Sequence[dict[str, Any]], key: str) -> int:
    """CPU time, which fio gives in percent of each task's runtime (ramp time excluded from both)."""
    return round(sum(float(entry[key]) / 100 * int(entry["job_runtime"]) for entry in entries) * NS_PER_MS)
