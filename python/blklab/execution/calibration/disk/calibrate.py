"""Carries out a calibration: measures, chooses what to measure next, fits, tests."""

from __future__ import annotations

import datetime
import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Protocol

import numpy as np

from blklab.errors import FormatError, RequirementError
from blklab.execution.calibration.disk.arm import has_arm
from blklab.execution.calibration.disk.document import (
    SCHEMA,
    DiskCalibration,
    Nearest,
    calibrated_loads,
    figures_of,
)
from blklab.execution.calibration.disk.drift import drift_of
from blklab.execution.calibration.disk.fit import Fit, fitted
from blklab.execution.calibration.disk.forward import NEAREST_IOS, Forward, Logs, rates_of
from blklab.execution.calibration.disk.ground import Ground, Measurement
from blklab.execution.calibration.disk.loads import ARM_PROBES, DiskLoad, fitted_loads, holdout_loads
from blklab.execution.calibration.disk.observations import Observation, Row, observations
from blklab.execution.calibration.disk.order import PROBE_ROUNDS, ROUNDS, Order
from blklab.execution.calibration.disk.saved import SavedMeasurements
from blklab.linux.machine.description import describe_machine
from blklab.spec.machines import Machine
from blklab.spec.profiles import shipped_profiles

PROBE_RUNTIME_US = 250_000
_LEAST_RUNTIME_US, _MOST_RUNTIME_US = 200_000, 3_000_000
_WANTED_PROBED = 300
"""Single reads in a run that looks for an arm."""
_WANTED_SINGLES = 1000
"""Single reads in a run, for its 95th percentile."""
_PART_FOR_ROUNDS = 0.7
"""Of the budget, for the rounds that every calibration makes."""
_TEST_SEEDS = range(21, 25)
_SEQUENTIAL_GAIN = 1.2
_BAD_MODEL = 0.1
"""Scatter beyond the measurements' from which on a profile should not be relied on."""


class Observer(Protocol):
    """Follows a calibration."""

    def announce(self, line: str) -> None:
        """A step that is not a measurement."""

    def measuring(self, load: DiskLoad, *, done: int, planned: int, left_ns: int) -> None:
        """A measurement begins."""


class _Runs:
    """The measurements of a calibration; those that were saved are not repeated."""

    def __init__(
        self, ground: Ground, saved: SavedMeasurements, order: Order, budget_ns: int, observer: Observer
    ) -> None:
        self._ground = ground
        self._saved = saved
        self._planned = order.most_runs
        self._budget_s = budget_ns / 1e9
        self._observer = observer
        self._prepared = False
        self._order = order
        self.made: list[Measurement] = []

    @property
    def spent_s(self) -> float:
        """Time of measuring up to now."""
        return sum(one.took_s for one in self.made)

    @property
    def at_end(self) -> bool:
        """Whether the budget is used, or enough was measured."""
        return self.spent_s >= self._budget_s or len(self.made) >= self._planned

    def make(self, loads: Iterable[DiskLoad], runtime_us: int, *, within_budget: bool = False) -> None:
        """Measures loads one after the other."""
        for load in loads:
            if within_budget and self.at_end:
                return
            number = len(self.made)
            if number < len(self._saved.measurements):
                saved = self._saved.measurements[number]
                if saved.load != load.name:
                    raise FormatError(
                        "the saved measurements are of another calibration", hint="--fresh measures anew"
                    )
                self.made.append(saved)
                continue
            self._prepare()
            left_s = self._left_s()
            self._observer.measuring(load, done=number, planned=self._planned, left_ns=round(left_s * 1e9))
            begun = time.monotonic()
            at_s = self.spent_s
            found = self._ground.measure(load, number=number, runtime_us=runtime_us)
            found = found.model_copy(update={"at_s": at_s, "took_s": time.monotonic() - begun})
            self._saved.add(found)
            self.made.append(found)

    def _left_s(self) -> float:
        """At most the rest of the budget; less if so many runs will not be needed."""
        rest_s = max(0.0, self._budget_s - self.spent_s)
        if not self.made:
            return rest_s
        needed_s = self.spent_s / len(self.made) * (self._planned - len(self.made))
        return min(rest_s, needed_s)

    def _prepare(self) -> None:
        if not self._prepared:
            self._ground.prepare(self._order.all_loads, self._observer.announce)
            self._prepared = True


def calibrated(
    ground: Ground,
    saved: SavedMeasurements,
    *,
    budget_ns: int,
    seed: int,
    machine: Machine,
    observer: Observer,
) -> DiskCalibration:
    """Calibrates a disk.

    Args:
        ground: The disk.
        saved: What was measured before an interruption; new measurements are added.
        budget_ns: Time for measuring. Two rounds of all loads are made in any case.
        seed: Of the order of measurements.
        machine: The cost table under which the profile will be used.
        observer: Follows it.

    Raises:
        RequirementError: if the disk has an arm, which no profile can be fitted to yet.
        BlklabError: if a load cannot run.
    """
    facts = ground.facts
    fitted_to = fitted_loads(queue_depth=facts.queues.depth, writes=facts.writable)
    holdouts = holdout_loads(writes=facts.writable)
    order = Order(fitted_to, holdouts, seed)
    runs = _Runs(ground, saved, order, budget_ns, observer)
    runs.make(order.probes(0), PROBE_RUNTIME_US)
    single_us = median(one.p50_ns for one in runs.made) / 1000
    probe_us = _bounded_us(_WANTED_PROBED * single_us, PROBE_RUNTIME_US)
    for number in range(1, PROBE_ROUNDS):
        runs.make(order.probes(number), probe_us)
    probes = observations(runs.made[len(ARM_PROBES) :], ARM_PROBES)
    if has_arm(probes):
        saved.remove()
        raise RequirementError(
            f"{ground.target.target} has an arm: single reads take"
            f" {math.exp(probes[ARM_PROBES[-1], 'p50'].log) / 1e6:.1f} ms within a small part and"
            f" {math.exp(probes[ARM_PROBES[0], 'p50'].log) / 1e6:.1f} ms over the whole",
            hint="calibration fits no disks with an arm yet; sim:hdd-7200 and sim:sas-15k model some",
        )
    runtime_us = _runtime_us(order, runs.made, single_us, probe_us, budget_ns)
    for number in range(ROUNDS):
        runs.make(order.round(number), runtime_us)
    flushes = facts.writable and facts.queues.volatile_cache
    loads = [*fitted_to, *holdouts]

    def fit_now(near: Fit | None = None) -> tuple[dict[Row, Observation], Forward, Fit]:
        found = observations(runs.made, loads)
        forward = Forward(facts, machine, rates_of(found, loads))
        return found, forward, fitted(found, fitted_to, forward, flushes=flushes, near=near)

    near = None
    if not runs.at_end:
        observer.announce("fitting to the first rounds, to choose further loads")
        found, forward, fit = fit_now()
        batch = 0
        while not runs.at_end:
            counts = Counter(one.load for one in runs.made)
            runs.make(order.batch(batch, fit, found, counts), runtime_us, within_budget=True)
            batch += 1
        near = fit
    observer.announce("fitting the profile")
    found, forward, fit = fit_now(near)
    observer.announce("testing the profile on loads that were not fitted")
    return _document(ground, runs, found, forward, fit, fitted_to, holdouts, seed=seed, machine=machine)


def _bounded_us(wanted_us: float, least_us: int) -> int:
    return round(min(max(wanted_us, least_us), _MOST_RUNTIME_US))


def _runtime_us(
    order: Order, probes: Sequence[Measurement], single_us: float, probe_us: int, budget_ns: int
) -> int:
    """Long enough for percentiles of single reads, short enough for the budget."""
    overhead_us = median(1e6 * one.took_s for one in probes[len(ARM_PROBES) :]) - probe_us
    nr_runs = ROUNDS * len(order.round(0))
    affordable_us = _PART_FOR_ROUNDS * budget_ns / 1000 / nr_runs - max(0.0, overhead_us)
    return _bounded_us(min(_WANTED_SINGLES * single_us, affordable_us), _LEAST_RUNTIME_US)


def _document(
    ground: Ground,
    runs: _Runs,
    found: Mapping[Row, Observation],
    forward: Forward,
    fit: Fit,
    fitted_to: Sequence[DiskLoad],
    holdouts: Sequence[DiskLoad],
    *,
    seed: int,
    machine: Machine,
) -> DiskCalibration:
    loads = [*fitted_to, *holdouts]
    predicted = _averaged(forward, {load: forward.device(fit.disk, load) for load in loads})
    drift = drift_of(runs.made)
    return DiskCalibration(
        schema=SCHEMA,
        target=ground.target.target,
        disk=ground.facts.name,
        model=ground.facts.model,
        measured_on=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        kernel=describe_machine().kernel,
        machine=machine.source,
        seed=seed,
        runs=len(runs.made),
        measured_s=round(runs.spent_s, 1),
        figures=figures_of(fit, ground.facts),
        model_error=fit.model_error,
        loads=calibrated_loads([(load, load in fitted_to) for load in loads], found, predicted),
        drift=drift,
        nearest=_nearest(forward, found, holdouts),
        remarks=[
            *ground.facts.remarks,
            *_model_remarks(fit),
            *drift.remarks(),
            *_sequential_remarks(found, holdouts, predicted),
        ],
    )


def _model_remarks(fit: Fit) -> list[str]:
    if fit.model_error < _BAD_MODEL:
        return []
    scatter = f"the measurements scatter around the profile by {100 * fit.model_error:.0f} %"
    return [f"{scatter} more than by their noise: it is another kind of disk, or other programs were busy"]


def _averaged(forward: Forward, devices: Mapping[DiskLoad, str]) -> dict[DiskLoad, Logs]:
    """Predictions averaged over seeds."""
    by_seed = [forward.on_devices(devices, seed=seed) for seed in _TEST_SEEDS]
    return {
        load: {
            quantity: float(np.mean([logs[load][quantity] for logs in by_seed]))
            for quantity in by_seed[0][load]
        }
        for load in devices
    }


def _nearest(forward: Forward, found: Mapping[Row, Observation], holdouts: Sequence[DiskLoad]) -> Nearest:
    """The shipped profile with the smallest median error on the loads that were not fitted."""
    candidates = []
    for name in shipped_profiles():
        predicted = forward.on_devices(dict.fromkeys(holdouts, name), ios=NEAREST_IOS)
        errors = [abs(predicted[load]["iops"] - found[load, "iops"].log) for load in holdouts]
        candidates.append(Nearest(profile=name, rate_error_median=median(errors)))
    return min(candidates, key=lambda one: one.rate_error_median)


def _sequential_remarks(
    found: Mapping[Row, Observation], holdouts: Sequence[DiskLoad], predicted: Mapping[DiskLoad, Logs]
) -> list[str]:
    """A profile of the kind has no addresses, so a disk that reads ahead does better in order."""
    remarks = []
    for load in holdouts:
        gain = math.exp(found[load, "iops"].log - predicted[load]["iops"])
        if load.sequential and gain > _SEQUENTIAL_GAIN:
            remarks.append(
                f"{load.name} is {gain:.1f} times as fast as the profile says: the disk reads ahead"
            )
    return remarks
