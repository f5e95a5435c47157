"""Measures loads on a loop device over memory, under every scheduler that it offers.

Each load runs in stretches in which the schedulers take turns, as in a switchback: a virtual machine's speed
wanders by tens of percent from run to run, but hardly from slot to slot. Each load has several stretches,
spread over the whole time in an order that is drawn.
"""

from __future__ import annotations

import datetime
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from blklab.analysis.metrics import metric_named
from blklab.analysis.statistics.intervals import standard_error
from blklab.analysis.statistics.paired import FixedDifference, paired_difference
from blklab.analysis.statistics.series import Series, positive, shared_values
from blklab.analysis.values import metric_values
from blklab.backends import Session, SessionOptions, backend_for
from blklab.errors import RequirementError, RunFailedError
from blklab.labs.calibration.fit import BASELINE, CostObservation
from blklab.labs.calibration.loads import JOB_MIB, ProcessorLoad
from blklab.linux.machine.description import describe_machine
from blklab.quantities.units import format_duration
from blklab.records.samples import MachineDescription, RunSample
from blklab.records.store import new_run_id
from blklab.spec.experiment import DEFAULT_CONFIDENCE, DEFAULT_MARGIN
from blklab.spec.plan import derive_seed
from blklab.spec.schedulers import SchedulerChoice
from blklab.spec.slots import SlotDecision
from blklab.spec.stretches import Stretch, stretch_of
from blklab.spec.targets import parse_target
from blklab.spec.workloads import Workload

MEMORY_FOLDER = Path("/dev/shm")  # noqa: S108 - memory is wanted
ROUNDS_PER_STRETCH = 18
SLOTS = SlotDecision(slot_ns=100_000_000, settling_ns=40_000_000, reason="memory does not remember")
_RUNTIME_MS = 1000
"""Replaced by the length of the stretch."""
_FEWEST_ROUNDS = 2

Announce = Callable[[str], None]


@dataclass(frozen=True)
class CostMeasurement:
    """The rates of loads on a machine."""

    machine: MachineDescription
    rounds: int
    """Of each load."""
    values: Mapping[ProcessorLoad, Series]
    """I/Os a second by scheduler and round."""

    @cached_property
    def observations(self) -> dict[ProcessorLoad, CostObservation]:
        """The rates of each load: geometric means over rounds, and ratios within them."""
        return {load: observation_of(load, series) for load, series in self.values.items()}

    def schedulers(self, load: ProcessorLoad) -> list[str]:
        """The schedulers with a ratio to `BASELINE` under a load, that one first."""
        return [BASELINE, *self.observations[load].ratios]


class MemoryDevice:
    """A scratch loop device in memory, with all its schedulers."""

    def __init__(self, session: Session, loads: Sequence[ProcessorLoad], seed: int) -> None:
        self._session = session
        self._loads = {load: load.workload(ramp_ms=0, runtime_ms=_RUNTIME_MS) for load in loads}
        self._choices = [SchedulerChoice(name=name, label=name) for name in session.target.schedulers]
        self._seed = seed

    @property
    def workloads(self) -> list[Workload]:
        """The loads as job files."""
        return list(self._loads.values())

    def stretches(self, repetitions: int) -> list[tuple[ProcessorLoad, Stretch]]:
        """All stretches in their order."""
        order = random.Random(derive_seed(self._seed, "calibration"))  # noqa: S311 - not for secrets
        found = []
        for number in range(repetitions):
            loads = list(self._loads.items())
            order.shuffle(loads)
            found += [
                (
                    load,
                    stretch_of(
                        workload,
                        self._choices,
                        SLOTS,
                        seed=self._seed,
                        number=number,
                        first_round=number * ROUNDS_PER_STRETCH,
                        rounds=ROUNDS_PER_STRETCH,
                    ),
                )
                for load, workload in loads
            ]
        return found

    def measure(self, repetitions: int, announce: Announce) -> CostMeasurement:
        """Runs every load so many times.

        Raises:
            RunFailedError: if a load fails.
            BlklabError: if it cannot run.
        """
        self._session.check(self._choices, self.workloads)
        self._session.prepare(self.workloads, announce)
        samples: dict[ProcessorLoad, list[RunSample]] = {load: [] for load in self._loads}
        stretches = self.stretches(repetitions)
        begun_ns = time.monotonic_ns()
        for done, (load, stretch) in enumerate(stretches):
            announce(
                f"load {done + 1} of {len(stretches)}, {load.name}{_left(begun_ns, done, len(stretches))}"
            )
            of_stretch = self._session.run_stretch(stretch)
            _check_ran(load, of_stretch)
            samples[load] += of_stretch
        metric = metric_named("iops")
        return CostMeasurement(
            machine=describe_machine(),
            rounds=repetitions * ROUNDS_PER_STRETCH,
            values={load: metric_values(samples[load], self._loads[load], metric) for load in self._loads},
        )

    def commands(self) -> list[str]:
        """The first load's stretch as commands."""
        _, stretch = self.stretches(1)[0]
        return self._session.stretch_commands(stretch)


def _check_ran(load: ProcessorLoad, samples: Sequence[RunSample]) -> None:
    """Checks that a load has run in some slot of a stretch.

    Raises:
        RunFailedError: if it has not, with the reason that most slots have.
    """
    if any(sample.status == "ok" for sample in samples):
        return
    reasons = Counter(sample.error or "for no known reason" for sample in samples)
    raise RunFailedError(f"the load {load.name} failed: {reasons.most_common(1)[0][0]}")


@contextmanager
def memory_device(
    loads: Sequence[ProcessorLoad], *, seed: int, dry_run: bool = False
) -> Iterator[MemoryDevice]:
    """Opens the device, with room for the largest load; removed at the end.

    Raises:
        RequirementError: if this machine has no file system in memory at its usual place.
        BlklabError: if there can be no such device.
    """
    if not MEMORY_FOLDER.is_dir():
        raise RequirementError(
            f"there is no file system in memory at {MEMORY_FOLDER}", hint="mount a tmpfs there"
        )
    room_mib = max(load.jobs for load in loads) * JOB_MIB
    target = parse_target(f"loop:{room_mib}m,dir={MEMORY_FOLDER}")
    run_id = new_run_id(datetime.datetime.now(datetime.timezone.utc))
    with backend_for(target).open(target, SessionOptions(run_id=run_id, dry_run=dry_run)) as session:
        yield MemoryDevice(session, loads, seed)


def observation_of(load: ProcessorLoad, series: Series) -> CostObservation:
    """The rates of a load.

    Raises:
        RequirementError: if there are not two values under `BASELINE`.
    """
    base = positive(series.get(BASELINE, {}))
    if len(base) < _FEWEST_ROUNDS:
        raise RequirementError(f"{load.name} did not run under {BASELINE}, the scheduler to compare with")
    found = {label: difference(series, label, BASELINE) for label in series if label != BASELINE}
    return CostObservation(
        load=load,
        iops=math.exp(float(np.log(base).mean())),
        iops_error=standard_error(np.log(base)),
        ratios={label: (one.ratio, one.standard_error) for label, one in found.items() if one is not None},
    )


def difference(series: Series, first: str, second: str) -> FixedDifference | None:
    """First against second over the rounds of both; None for fewer than two."""
    values = shared_values(series[first], series[second])
    if len(values[0]) < _FEWEST_ROUNDS:
        return None
    return paired_difference(*values, margin=DEFAULT_MARGIN, smallest_level=1 - DEFAULT_CONFIDENCE)


def _left(begun_ns: int, done: int, planned: int) -> str:
    if not done:
        return ""
    left_ns = (time.monotonic_ns() - begun_ns) // done * (planned - done)
    return f", {format_duration(left_ns)} left"
