"""Carries out a calibration: measures, chooses what to measure next, fits, tests."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from blklab.labs.calibration.disk.arm import has_arm
from blklab.labs.calibration.disk.document import (
    NOT_COVERED,
    SCHEMA,
    DiskCalibration,
    Nearest,
    calibrated_loads,
    circumstances,
    figures_of,
    limit_figures,
)
from blklab.labs.calibration.disk.drift import drift_of
from blklab.labs.calibration.disk.fit import DiskFit, fitted
from blklab.labs.calibration.disk.flash.calibrate import flash_calibrated
from blklab.labs.calibration.disk.forward import NEAREST_IOS, Forward, Logs, rates_of
from blklab.labs.calibration.disk.ground import LOOP_KIND, DiskMeasurement, Ground
from blklab.labs.calibration.disk.hdd.calibrate import arm_calibrated
from blklab.labs.calibration.disk.lengths import PROBE_RUNTIME_US, Lengths, measured_lengths
from blklab.labs.calibration.disk.limits import (
    WRITE_LENGTHS_S,
    Limits,
    buffer_load,
    limit_loads,
    limits_of,
    with_write_buffer,
)
from blklab.labs.calibration.disk.loads import (
    ARM_PROBES,
    BUFFERED_HOLDOUTS,
    DiskLoad,
    fitted_loads,
    holdout_loads,
    limited_holdouts,
)
from blklab.labs.calibration.disk.loop_device import NOT_COVERED as LOOP_NOT_COVERED
from blklab.labs.calibration.disk.loop_device import (
    fitted_loop,
    is_closer,
    loop_remark,
    model_error,
)
from blklab.labs.calibration.disk.model import Model
from blklab.labs.calibration.disk.observations import (
    DiskObservation,
    Row,
    logs_of,
    observations,
)
from blklab.labs.calibration.disk.order import PROBE_ROUNDS, ROUNDS, Order
from blklab.labs.calibration.disk.parameters import KIND
from blklab.labs.calibration.disk.runs import DiskObserver, Runs
from blklab.labs.calibration.disk.saved import SavedMeasurements
from blklab.labs.calibration.disk.short_runs import as_if_long
from blklab.labs.calibration.disk.steady import (
    SteadyState,
    conditioned,
    conditioning_load,
    require_conditionable,
)
from blklab.spec.machines import Machine
from blklab.spec.profiles import shipped_profiles

_LEAST_RUNTIME_US, _MOST_RUNTIME_US = 200_000, 3_000_000
_WANTED_PROBED = 300
"""Single reads in a run that looks for an arm."""
_WANTED_SINGLES = 1000
"""Single reads in a run, for its 95th percentile."""
_PART_FOR_ROUNDS = 0.7
"""Of the budget, for the rounds that every calibration makes."""
_PART_FOR_LIMITS = 0.05
"""Of the budget, for the longest of the loads that look for limits."""
_TEST_SEEDS = range(21, 25)
_SEQUENTIAL_GAIN = 1.2
_BAD_MODEL = 0.1
"""Scatter beyond the measurements' from which on a profile should not be relied on."""


def calibrated(
    ground: Ground,
    saved: SavedMeasurements,
    *,
    budget_ns: int,
    seed: int,
    machine: Machine,
    observer: DiskObserver,
    until_steady: bool = False,
) -> DiskCalibration:
    """Calibrates a disk.

    Args:
        ground: The disk.
        saved: What was measured before an interruption; new measurements are added.
        budget_ns: Time for measuring. Two rounds of all loads are made in any case.
        seed: Of the order of measurements.
        machine: The cost table under which the profile will be used.
        observer: Follows it.
        until_steady: Write to the disk first until it is steady.

    Raises:
        RequirementError: if the disk has an arm, and only a part of it may be used.
        BlklabError: if a load cannot run.
    """
    facts = ground.facts
    fitted_to = fitted_loads(queue_depth=facts.queues.depth, writes=facts.writable)
    holdouts = holdout_loads(writes=facts.writable)
    order = Order(fitted_to, holdouts, seed)
    planned = order.most_runs + 3 * len(WRITE_LENGTHS_S)
    runs = Runs(ground, saved, planned=planned, budget_ns=budget_ns, observer=observer)
    if until_steady:
        require_conditionable(facts, ground.target.target)
    runs.prepare(order.all_loads)
    steady = _steady(runs) if until_steady else None
    probes = _probe(runs, order)
    if has_arm(observations(probes.later, ARM_PROBES)):
        with_arm = arm_calibrated(runs, seed=seed, machine=machine)
        return with_arm.model_copy(update={"steady": steady})
    limits = _limits(runs, budget_ns)
    if not limits.of_reads:
        flash = flash_calibrated(runs, limits, seed=seed, machine=machine)
        if flash is not None:
            return flash.model_copy(update={"steady": steady})
    lengths = measured_lengths(runs, limits, _runtime_us(order, probes, budget_ns), probes.single_us)
    holdouts += (limited := _long_holdouts(limits, writes=facts.writable))

    def make(loads: Sequence[DiskLoad], *, within_budget: bool = False) -> None:
        for load in loads:
            runs.make([load], lengths.of_us(load), within_budget=within_budget)

    first_load = len(runs.made)
    runs.need(ROUNDS * len([*order.round(0), *limited]))
    for number in range(ROUNDS):
        make([*order.round(number), *limited])
    flushes = facts.writable and facts.queues.volatile_cache
    loads = [*fitted_to, *holdouts]

    def fit_now(near: DiskFit | None = None) -> tuple[dict[Row, DiskObservation], Forward, DiskFit]:
        # Long probes may have reached a limit.
        found = observations(runs.made[first_load:] if limits.any else runs.made, loads)
        rates = rates_of(found, loads)
        forward = Forward(facts, machine, rates)
        usable = [load for load in fitted_to if lengths.is_free(load, rates[load])]
        return found, forward, fitted(found, usable, forward, flushes=flushes, near=near)

    near = None
    if not runs.at_end:
        observer.announce("fitting to the first rounds, to choose further loads")
        found, forward, fit = fit_now()
        batch = 0
        while not runs.at_end:
            counts = Counter(one.load for one in runs.made)
            make(order.batch(batch, fit, found, counts), within_budget=True)
            batch += 1
        near = fit
    observer.announce("fitting the profile")
    found, forward, fit = fit_now(near)
    usable = [load for load in fitted_to if lengths.is_free(load, forward.rates[load])]
    if short := {
        load: lengths.of_us(load) for load in usable if lengths.are_short(load, forward.rates[load])
    }:
        longer = as_if_long(found, forward, fit.disk, short)
        fit = fitted(longer, usable, forward, flushes=flushes, near=fit)
    observer.announce("testing the profile on loads that were not fitted")
    document = _document(runs, found, forward, fit, lengths, usable, holdouts, seed=seed, machine=machine)
    return document.model_copy(update={"steady": steady})


def _steady(runs: Runs) -> SteadyState:
    """Brings the disk to a steady state, outside the budget."""
    facts = runs.ground.facts
    runs.announce("writing until the disk is steady, some minutes")
    steady = conditioned(runs.one, conditioning_load(facts.space_bytes, facts.queues.depth))
    runs.begin_budget()
    return steady


@dataclass(frozen=True)
class _Probes:
    """The single reads that show whether there is an arm."""

    later: Sequence[DiskMeasurement]
    """Those of all rounds but the first, which only finds how long the others run."""
    single_us: float
    """Median latency of a read."""
    runtime_us: int
    """Of the later ones."""


def _probe(runs: Runs, order: Order) -> _Probes:
    first = len(runs.made)
    runs.make(order.probes(0), PROBE_RUNTIME_US)
    later = len(runs.made)
    single_us = median(one.p50_ns for one in runs.made[first:]) / 1000
    runtime_us = _bounded_us(_WANTED_PROBED * single_us, PROBE_RUNTIME_US)
    for number in range(1, PROBE_ROUNDS):
        runs.make(order.probes(number), runtime_us)
    return _Probes(runs.made[later:], single_us, runtime_us)


def _bounded_us(wanted_us: float, least_us: int) -> int:
    return round(min(max(wanted_us, least_us), _MOST_RUNTIME_US))


def _runtime_us(order: Order, probes: _Probes, budget_ns: int) -> int:
    """Long enough for percentiles of single reads, short enough for the budget."""
    overhead_us = median(1e6 * one.took_s for one in probes.later) - probes.runtime_us
    nr_runs = ROUNDS * len(order.round(0))
    affordable_us = _PART_FOR_ROUNDS * budget_ns / 1000 / nr_runs - max(0.0, overhead_us)
    return _bounded_us(min(_WANTED_SINGLES * probes.single_us, affordable_us), _LEAST_RUNTIME_US)


def _limits(runs: Runs, budget_ns: int) -> Limits:
    """Long loads that empty token buckets, each on a disk that has rested."""
    facts = runs.ground.facts
    runs.announce("looking for limits with bursts")

    most_s = _PART_FOR_LIMITS * budget_ns / 1e9
    depth, max_sectors_kb = facts.queues.depth, facts.queues.max_sectors_kb
    loads = limit_loads(queue_depth=depth, max_sectors_kb=max_sectors_kb, space_bytes=facts.space_bytes)
    limits = limits_of(runs.rested, loads, most_s=most_s)
    if limits.any or not facts.writable:
        # Writes would show the same limits again.
        return limits
    runs.announce("looking for a write buffer that fills")
    load = buffer_load(queue_depth=depth, max_sectors_kb=max_sectors_kb, space_bytes=facts.space_bytes)
    return with_write_buffer(limits, runs.rested, load, most_s=most_s)


def _long_holdouts(limits: Limits, *, writes: bool) -> list[DiskLoad]:
    """Loads to test with that reach what limits the disk."""
    if limits.of_reads:
        return limited_holdouts(writes=writes)
    return [] if limits.writes is None else [*BUFFERED_HOLDOUTS]


def _document(
    runs: Runs,
    found: Mapping[Row, DiskObservation],
    forward: Forward,
    fit: DiskFit,
    lengths: Lengths,
    fitted_to: Sequence[DiskLoad],
    holdouts: Sequence[DiskLoad],
    *,
    seed: int,
    machine: Machine,
) -> DiskCalibration:
    ground = runs.ground
    loads = [*fitted_to, *holdouts]
    limits = lengths.limits
    reaching = [
        load
        for load in loads
        if not limits.below(forward.rates[load], load.block_kib, writes=not load.reads_only)
    ]
    predicted = _averaged(
        forward, {load: forward.device(fit.disk, load) for load in loads if load not in reaching}
    ) | _predicted_with_limits(runs, forward.device(fit.disk), reaching, lengths, machine)
    drift = drift_of(runs.made)
    facts = ground.facts
    figures = [*figures_of(fit, facts), *limit_figures(limits, rested=facts.rested)]
    kind, error, not_covered = KIND, fit.model_error, NOT_COVERED
    of_kind = _sequential_remarks(found, holdouts, predicted)
    if facts.in_memory:
        loop = fitted_loop(forward, found, fitted_to)
        copied = _averaged(forward, dict.fromkeys(loads, loop.device(facts)))
        if is_closer(copied, predicted, found, fitted_to):
            predicted, figures = copied, loop.figures(facts)
            kind, error, not_covered = LOOP_KIND, model_error(copied, found, fitted_to), LOOP_NOT_COVERED
            of_kind = [loop_remark(machine)]
    return DiskCalibration(
        schema=SCHEMA,
        kind=kind,
        **circumstances(runs, seed=seed, machine=machine, drift=drift),
        figures=figures,
        model_error=error,
        loads=calibrated_loads([(load, load in fitted_to) for load in loads], found, predicted),
        nearest=_nearest(forward, found, holdouts),
        remarks=[*facts.remarks, *_model_remarks(error), *drift.remarks(), *of_kind],
        not_covered=not_covered,
    )


def _model_remarks(error: float) -> list[str]:
    if error < _BAD_MODEL:
        return []
    scatter = f"the measurements scatter around the profile by {100 * error:.0f} %"
    return [f"{scatter} more than by their noise: it is another kind of disk, or other programs were busy"]


def _predicted_with_limits(
    runs: Runs, device: str, loads: Sequence[DiskLoad], lengths: Lengths, machine: Machine
) -> dict[DiskLoad, Logs]:
    """Predictions for runs just as long as those that were measured, since buckets empty in time."""
    model = Model(runs.ground.facts.space_bytes, machine)
    model.runtimes_us = {load.name: lengths.of_us(load) for load in loads}
    if not loads:
        return {}
    limited = ",".join([device, *(f"{key}={value}" for key, value in lengths.limits.parameters().items())])
    by_load = model.measured(limited, loads, _TEST_SEEDS)
    return {
        load: _mean_logs([logs_of(one) for one in found]) for load, found in zip(loads, by_load, strict=True)
    }


def _mean_logs(each: Sequence[Logs]) -> Logs:
    return {quantity: float(np.mean([logs[quantity] for logs in each])) for quantity in each[0]}


def _averaged(forward: Forward, devices: Mapping[DiskLoad, str]) -> dict[DiskLoad, Logs]:
    """Predictions averaged over seeds."""
    by_seed = [forward.on_devices(devices, seed=seed) for seed in _TEST_SEEDS]
    return {load: _mean_logs([logs[load] for logs in by_seed]) for load in devices}


def _nearest(forward: Forward, found: Mapping[Row, DiskObservation], holdouts: Sequence[DiskLoad]) -> Nearest:
    """The shipped profile with the smallest median error on the loads that were not fitted."""
    candidates = []
    for name in shipped_profiles():
        predicted = forward.on_devices(dict.fromkeys(holdouts, name), ios=NEAREST_IOS)
        errors = [abs(predicted[load]["iops"] - found[load, "iops"].log) for load in holdouts]
        candidates.append(Nearest(profile=name, rate_error_median=median(errors)))
    return min(candidates, key=lambda one: one.rate_error_median)


def _sequential_remarks(
    found: Mapping[Row, DiskObservation], holdouts: Sequence[DiskLoad], predicted: Mapping[DiskLoad, Logs]
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
