"""Planned changes on models: their part of a request, and what an answer says about them.

The simulator's core and the program in guests take the same request and give the same answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from blklab.linux.load.fio import expected_runtime_ns, ramp_time_ns
from blklab.quantities.units import format_duration
from blklab.records.samples import JobSample, PhaseSample, RunSample
from blklab.simulator.core import changes_made
from blklab.simulator.request import FREEZE_NS
from blklab.spec.changes import Change, GroupChange, PriorityChange, phases_of
from blklab.spec.experiment import Conditions
from blklab.spec.workloads import Workload

_LATEST_START_NS = 21_000_000
"""The load of a drawn arrangement begins up to 20 ms after time 0, each of its processes up to 1 ms later
(crates/blksim/src/workload/arrangement.rs)."""
_WINDOWS = 200
_SHORTEST_WINDOW_NS = 1_000_000


def changes_request(
    conditions: Conditions, workload: Workload, runtime_ns: int | None
) -> dict[str, Any] | None:
    """The request's ``changes``; None if there are none.

    Args:
        conditions: Of the run.
        workload: The load.
        runtime_ns: Replaces the runtime of time-based jobs. Without a known length there are no phases.
    """
    if not conditions.changes:
        return None
    length_ns = expected_runtime_ns(workload, runtime_ns)
    request: dict[str, Any] = {
        "planned": [change.request() for change in conditions.changes],
        "freeze_ns": FREEZE_NS,
    }
    if length_ns is None:
        return request
    return request | {
        "phases": [
            {"from_ns": from_ns, "to_ns": to_ns}
            for from_ns, to_ns in phases_of(
                conditions.changes,
                begins_ns=_begins_ns(conditions, workload, runtime_ns),
                ends_ns=length_ns,
            )
        ],
        "window_ns": _window_ns(length_ns),
        "focus": list(workload.focus),
    }


def trial_request(conditions: Conditions) -> dict[str, Any] | None:
    """Changes of queue and groups for a trial of settings, whose load has none of the experiment's jobs."""
    groups = ("/", *conditions.cgroups)
    tried = [
        change
        for change in conditions.changes
        if not isinstance(change, PriorityChange)
        and (not isinstance(change, GroupChange) or change.group in groups)
    ]
    return {"planned": [change.request() | {"at_ns": 1} for change in tried]} if tried else None


def _begins_ns(conditions: Conditions, workload: Workload, runtime_ns: int | None) -> int:
    """From when on all jobs that begin with the load are measured."""
    start_ns = _LATEST_START_NS if conditions.arrangement == "drawn" else 1
    return start_ns + max(ramp_time_ns(job, runtime_ns) for job in workload.jobs)


def _window_ns(length_ns: int) -> int:
    return max(_SHORTEST_WINDOW_NS, length_ns // _WINDOWS)


def with_changes(
    sample: RunSample, changes: Sequence[Change], request: Mapping[str, Any], answer: Mapping[str, Any]
) -> RunSample:
    """The sample of a run on a model with its changes and phases.

    Args:
        sample: Without them.
        changes: As they were planned.
        request: The request's ``changes``.
        answer: Of the core or a guest.

    Returns:
        The sample; it has failed if the load ended before a change was in force.
    """
    end_ns = answer["engine"]["simulated_ns"]
    came_about = changes_made(changes, answer)
    phases = [
        PhaseSample(
            from_ns=phase["from_ns"],
            to_ns=phase["to_ns"],
            jobs=[JobSample.model_validate(job) for job in phase["jobs"]],
            window_ns=request["window_ns"],
            ios=phase["ios"],
        )
        for phase in answer["phases"]
        if phase["from_ns"] < end_ns
    ]
    update: dict[str, Any] = {"changes": came_about, "phases": phases}
    if len(came_about) < len(changes):
        update |= {"status": "failed", "error": never_made(changes[len(came_about)], end_ns), "jobs": []}
    return sample.model_copy(update=update)


def never_made(change: Change, end_ns: int) -> str:
    """The error of a run that ended too early."""
    return (
        f"the load ended after {format_duration(end_ns)}, before the change {change.canonical!r} was in force"
    )
