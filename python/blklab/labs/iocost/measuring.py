"""Rounds of loads in random order, on a disk or on a model."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from blklab.errors import RunFailedError
from blklab.labs.calibration.disk.ground import SessionGround, measurement_of
from blklab.labs.iocost.loads import CostLoad
from blklab.records.samples import JobSample, LatencyHistogram
from blklab.spec.plan import derive_seed

_TRIES = 3


@dataclass(frozen=True)
class LoadRun:
    """One run of one load."""

    iops: float
    bytes_per_second: float
    latency: LatencyHistogram
    processor_share: float | None
    """Part of the time in which its processes computed, on average over them; None if unknown."""


@dataclass(frozen=True)
class IocostPlan:
    """The measurements that are about to begin on a disk or a model."""

    loads: int
    rounds: int
    least_ns: int | None
    """Time that the loads run, ramps included; None on a model, whose time is virtual.

    What a disk takes to finish the writes of a load comes on top, and only the runs show how long that is.
    """


class IocostObserver(Protocol):
    """Follows the measurements."""

    def planned(self, plan: IocostPlan) -> None:
        """Measurements are about to begin, and test files to be laid out."""

    def announce(self, line: str) -> None:
        """A step that is not a measurement."""

    def measuring(self, name: str, *, done: int, planned: int, left_ns: int | None = None) -> None:
        """A measurement begins.

        Args:
            name: Of the load.
            done: Runs made before.
            planned: Runs in all.
            left_ns: Time that is left if the others take as long as those before; None if unknown.
        """


class Pace:
    """The time that measurements take, from those made so far."""

    def __init__(self, planned_us: int) -> None:
        """Begins with the runtimes of all runs that are planned, added up."""
        self._left_us = planned_us
        self._made_us = 0
        self._spent_ns = 0

    def made(self, runtime_us: int, spent_ns: int) -> None:
        """Counts a run, with the planned runtime of its load and the real time that it took."""
        self._left_us -= runtime_us
        self._made_us += runtime_us
        self._spent_ns += spent_ns

    @property
    def left_ns(self) -> int | None:
        """Real time that is left; None before the first run."""
        return round(self._spent_ns * self._left_us / self._made_us) if self._made_us else None


def load_order(names: Sequence[str], *, seed: int, stage: str, number: int) -> list[str]:
    """The loads of a round in the order in which they run, which the seed decides."""
    order = list(names)
    random.Random(derive_seed(seed, "iocost", stage, number)).shuffle(order)  # noqa: S311 - not for secrets
    return order


def measured_rounds(
    ground: SessionGround,
    loads: Mapping[str, CostLoad],
    *,
    stage: str,
    rounds: int,
    runtimes_us: Mapping[str, int],
    seed: int,
    first_number: int,
    planned: int,
    pace: Pace,
    observer: IocostObserver,
) -> dict[str, list[LoadRun]]:
    """Runs every load once in each round.

    Args:
        ground: The disk, prepared for these loads.
        loads: By the name of the figure that each is for.
        stage: Names the loads, for the seed of their order.
        rounds: Times that each load runs.
        runtimes_us: Of each load, after its ramp.
        seed: Of the order.
        first_number: Runs made before.
        planned: Runs of all stages.
        pace: Of all stages.
        observer: Follows it.

    Returns:
        The runs of each figure, in the order of the rounds.

    Raises:
        BlklabError: if a load fails.
    """
    found: dict[str, list[LoadRun]] = {name: [] for name in loads}
    number = first_number
    for step in range(rounds):
        for name in load_order(list(loads), seed=seed, stage=stage, number=step):
            observer.measuring(loads[name].name, done=number, planned=planned, left_ns=pace.left_ns)
            begun_ns = time.monotonic_ns()
            found[name].append(_run(ground, loads[name], number=number, runtime_us=runtimes_us[name]))
            pace.made(runtimes_us[name], time.monotonic_ns() - begun_ns)
            number += 1
    return found


def _run(ground: SessionGround, load: CostLoad, *, number: int, runtime_us: int) -> LoadRun:
    """Runs a load; again for longer if the disk stalled throughout."""
    for _ in range(_TRIES):
        jobs = ground.sample(load, number=number, runtime_us=runtime_us).jobs
        entries = [entry for job in jobs for entry in job.data_directions()]
        if any(entry.ios for entry in entries):
            break
        runtime_us *= 2
    else:
        raise RunFailedError(
            f"{load.name} completed no I/O in {runtime_us / 2e6:g} s",
            hint="give the disk more time: --runtime 10s",
        )
    iops = measurement_of(load, jobs).iops
    if load.rate_iops is None:
        iops = max(iops, rate_before_drain(jobs, load, runtime_us))
    return LoadRun(
        iops=iops,
        bytes_per_second=iops * load.block_kib * 1024,
        latency=LatencyHistogram.merged(entry.latency for entry in entries),
        processor_share=_processor_share(jobs),
    )


def rate_before_drain(jobs: Sequence[JobSample], load: CostLoad, runtime_us: int) -> float:
    """I/Os a second until the load stops issuing.

    The I/Os that are then in flight count too, but some disks take longer over them: an arm has less to
    choose from, and of several servers most have nothing left to do. A load that had fewer in flight than it
    wanted gets too little here, so the larger of this rate and the whole run's is the disk's.
    """
    ios = sum(entry.ios for job in jobs for entry in job.data_directions())
    return (ios - load.processes * load.depth) * 1e6 / runtime_us


def _processor_share(jobs: Sequence[JobSample]) -> float | None:
    shares = [
        (job.cpu_user_ns + job.cpu_system_ns) / (job.clones * job.runtime_ns)
        for job in jobs
        if job.cpu_user_ns is not None and job.cpu_system_ns is not None and job.runtime_ns
    ]
    return max(shares, default=None)
