"""Planned changes that would come about, and alike for all schedulers, on any backend."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from blklab.errors import SpecError, UnknownNameError, UsageError
from blklab.quantities.units import exact_duration
from blklab.spec.changes import Change, GroupChange, PriorityChange, SchedulerChange
from blklab.spec.experiment import Conditions
from blklab.spec.group_settings import ROOT_GROUP
from blklab.spec.schedulers import SchedulerChoice
from blklab.spec.workloads import Workload


def check_changes(
    conditions: Conditions,
    choices: Sequence[SchedulerChoice],
    workloads: Sequence[Workload],
    length_ns: Callable[[Workload], int | None],
) -> None:
    """Refuses changes that would not come about, or not alike for all schedulers.

    Args:
        conditions: Of all runs, with their changes.
        choices: The schedulers under comparison.
        workloads: The loads.
        length_ns: How long a load runs; None if that is not known before.

    Raises:
        UsageError, UnknownNameError, SpecError: for the first one that is refused, with the reason.
    """
    if not conditions.changes:
        return
    for workload in workloads:
        end_ns = length_ns(workload)
        if end_ns is None:
            raise UsageError(
                f"{workload.name}: changes need a load whose length is known, and a job of it has no runtime",
                hint="give each job time_based and runtime",
            )
        for change in conditions.changes:
            _check_change(change, conditions, workload, end_ns)
    switched = any(isinstance(change, SchedulerChange) for change in conditions.changes)
    own = next((choice for choice in choices if choice.queue), None)
    if switched and own is not None:
        raise SpecError(
            f"{own.label} brings {next(iter(own.queue))}, an attribute of the queue, and a change of the "
            "scheduler would leave it to the next one",
            hint="set it for all runs (--queue), or as a change of its own",
        )


def _check_change(change: Change, conditions: Conditions, workload: Workload, end_ns: int) -> None:
    if change.at_ns >= end_ns:
        raise UsageError(
            f"the change {change.canonical!r} comes after the end of {workload.name}, which runs for "
            f"{exact_duration(end_ns)}",
            hint="let it come earlier, or give a longer --runtime",
        )
    if isinstance(change, PriorityChange):
        _check_name(change, "job", change.job, workload, (job.name for job in workload.jobs))
    elif isinstance(change, GroupChange) and change.group != ROOT_GROUP:
        joined = [job.cgroup for job in workload.jobs if job.cgroup is not None]
        _check_name(change, "control group", change.group, workload, [*conditions.cgroups, *joined])


def _check_name(change: Change, what: str, name: str, workload: Workload, known: Iterable[str]) -> None:
    names = list(dict.fromkeys(known))
    if name not in names:
        raise UnknownNameError(
            f"the change {change.canonical!r}: {workload.name} has no {what} {name!r}",
            hint=f"it has {', '.join(names) or 'none'}; every workload of an experiment gets all changes",
        )
