"""The result of a calibration, as ``blklab calibrate --json`` prints it and the profile file tells it."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import TypedDict

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from blklab.analysis.statistics.percentile import percentile
from blklab.labs.calibration.disk.drift import Drift
from blklab.labs.calibration.disk.fit import TWO_SIDED, DiskFit
from blklab.labs.calibration.disk.forward import Logs
from blklab.labs.calibration.disk.ground import DiskFacts, DiskMeasurement
from blklab.labs.calibration.disk.limits import Limits
from blklab.labs.calibration.disk.loads import CalibrationLoad, DiskLoad
from blklab.labs.calibration.disk.observations import DiskObservation, Row
from blklab.labs.calibration.disk.parameters import KIND, rate_of
from blklab.labs.calibration.disk.runs import Runs
from blklab.labs.calibration.disk.steady import SteadyState
from blklab.linux.machine.description import describe_machine
from blklab.quantities.units import format_bytes
from blklab.spec.machines import Machine

SCHEMA = "blklab.calibrate/1"
NOT_COVERED = (
    "collection of garbage, fast caches that the longest load of writes does not fill, caches for reads, and"
    " whatever depends on the address"
)
"""The parts of a disk that a profile of the kind does not describe."""
UNDECIDED = "the loads leave it open"
KERNELS_OWN = "the kernel's own"
"""How a figure was found that the kernel tells."""
_UNIDENTIFIED = 0.7
"""Of the prior's standard deviation: above it the loads have told nothing."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Figure(_Part):
    """One figure of the profile."""

    key: str
    value: int | str
    low: int | None
    """Of its 95 % interval; None if there is no lower limit, or no interval."""
    high: int | None
    how: str
    """How it was found."""


class CalibratedLoad(_Part):
    """A load as it was measured and as the profile predicts it."""

    load: str
    fitted: bool
    """Whether figures were fitted to it; the others test the profile."""
    runs: int
    iops: float
    predicted_iops: float
    p99_us: float
    predicted_p99_us: float

    @property
    def rate_error(self) -> float:
        """Of the predicted rate, relative, without sign."""
        return abs(math.log(self.predicted_iops / self.iops))

    @property
    def tail_error(self) -> float:
        """Of the predicted 99th percentile of latency."""
        return abs(math.log(self.predicted_p99_us / self.p99_us))


class MixedLoad(_Part):
    """Reads beside writes of a flash drive, as measured and as the profile predicts them."""

    load: str
    fitted: bool
    """Whether the front end was fitted to it."""
    runs: int
    read_mean_us: float
    predicted_read_mean_us: float
    read_p99_us: float
    predicted_read_p99_us: float
    write_iops: float
    predicted_write_iops: float

    @property
    def errors(self) -> tuple[float, float, float]:
        """Of the reads' mean and 99th percentile, and of the writes' rate: relative, without sign."""
        return (
            abs(math.log(self.predicted_read_mean_us / self.read_mean_us)),
            abs(math.log(self.predicted_read_p99_us / self.read_p99_us)),
            abs(math.log(self.predicted_write_iops / self.write_iops)),
        )


class MixedErrors(_Part):
    """Errors on reads beside writes that no front end was fitted to: median and largest, of logarithms."""

    loads: int
    read_mean: tuple[float, float]
    read_p99: tuple[float, float]
    write_rate: tuple[float, float]


class Nearest(_Part):
    """The shipped profile that predicts the loads best that were not fitted."""

    profile: str
    rate_error_median: float


class DiskCalibration(_Part):
    """The result of `blklab calibrate disk TARGET`."""

    schema_: str = Field(default=SCHEMA, alias="schema")
    target: str
    disk: str
    model: str
    """The disk's name of itself."""
    kind: str = KIND
    measured_on: str
    """Date and time, UTC, ISO 8601."""
    kernel: str
    machine: str
    """The cost table under which the profile was fitted, and holds."""
    seed: int
    runs: int
    measured_s: float
    """Time that measuring took."""
    figures: list[Figure]
    derived: list[Figure] = []
    """Figures that follow from the others, can be compared between disks, and are no keys of the profile.

    Of disks with an arm times of seeks over parts of the disk, in nanoseconds; of flash that was seen to
    collect garbage the usable spare space, in thousandths, and the rate of overwriting, in bytes a second."""
    model_error: float
    """Scatter of the fitted numbers beyond that of the measurements: what the model cannot express."""
    loads: list[CalibratedLoad]
    mixed_loads: list[MixedLoad] = []
    """Reads beside writes, measured on flash drives."""
    mixed_errors: MixedErrors | None = None
    """On those that were not fitted; None if none were measured."""
    steady: SteadyState | None = None
    """The rounds of conditioning before all measurements; None if none was asked for."""
    drift: Drift
    nearest: Nearest
    remarks: list[str]
    not_covered: str = NOT_COVERED

    @property
    def all_remarks(self) -> list[str]:
        """Also what conditioning has shown."""
        return [*(self.steady.remarks() if self.steady else []), *self.remarks]

    def errors(self, *, fitted: bool = False) -> tuple[float, float]:
        """Median and 95th percentile of the rates' errors."""
        errors = sorted(load.rate_error for load in self.loads if load.fitted == fitted)
        return median(errors), percentile(errors, 0.95)

    def tail_errors(self) -> tuple[float, float]:
        """The same of the 99th percentiles of latency, on loads that were not fitted."""
        errors = sorted(load.tail_error for load in self.loads if not load.fitted)
        return median(errors), percentile(errors, 0.95)


def mixed_errors_of(loads: Sequence[MixedLoad]) -> MixedErrors | None:
    """The errors on those loads that were not fitted; None if there are none."""
    tested = [load.errors for load in loads if not load.fitted]
    if not tested:
        return None
    mean, p99, rate = ((median(errors), max(errors)) for errors in zip(*tested, strict=True))
    return MixedErrors(loads=len(tested), read_mean=mean, read_p99=p99, write_rate=rate)


class Circumstances(TypedDict):
    """A calibration's place, time and extent: the same for disks of all kinds."""

    target: str
    disk: str
    model: str
    measured_on: str
    kernel: str
    machine: str
    seed: int
    runs: int
    measured_s: float
    drift: Drift


def circumstances(runs: Runs, *, seed: int, machine: Machine, drift: Drift) -> Circumstances:
    """The circumstances of a calibration that has ended."""
    ground = runs.ground
    return Circumstances(
        target=ground.target.target,
        disk=ground.facts.name,
        model=ground.facts.model,
        measured_on=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        kernel=describe_machine().kernel,
        machine=machine.source,
        seed=seed,
        runs=len(runs.made),
        measured_s=round(runs.measured_s, 1),
        drift=drift,
    )


def figures_of(fit: DiskFit, facts: DiskFacts) -> list[Figure]:
    """All figures of the profile, with their intervals."""
    queues = facts.queues
    found = [
        Figure(key="capacity", value=facts.capacity_bytes, low=None, high=None, how=KERNELS_OWN),
        Figure(key="queue_depth", value=queues.depth, low=None, high=None, how=KERNELS_OWN),
        Figure(key="hw_queues", value=queues.number, low=None, high=None, how=KERNELS_OWN),
        Figure(key="max_sectors_kb", value=queues.max_sectors_kb, low=None, high=None, how=KERNELS_OWN),
        Figure(key="rotational", value=int(facts.rotational), low=None, high=None, how=KERNELS_OWN),
    ]
    intervals = _intervals(fit)
    for key, value in fit.disk.parameters().items():
        low, high, how = intervals.get(key, (None, None, _how_else(fit, key)))
        found.append(Figure(key=key, value=value, low=low, high=high, how=how))
    return found


def limit_figures(limits: Limits, *, rested: bool) -> list[Figure]:
    """The limits, or how far there was none.

    Args:
        limits: What was found.
        rested: Whether the buckets were full when each load began; a disk may not have had the time.
    """
    found = []
    for kind, burst, bucket, seen in (
        ("io_limit", "io_burst", limits.ios, f"none within {limits.seen_ios} I/Os at once"),
        (
            "rate_limit",
            "rate_burst",
            limits.rate,
            f"none within {format_bytes(limits.seen_bytes)} at once",
        ),
        (
            "write_drain_rate",
            "write_buffer",
            limits.writes,
            limits.no_write_buffer,
        ),
    ):
        if bucket is None:
            found.append(Figure(key=kind, value=0, low=None, high=None, how=seen))
            continue
        low, high = (round(bound) for bound in bucket.per_second_interval)
        found.append(Figure(key=kind, value=round(bucket.per_second), low=low, high=high, how="long loads"))
        least, most = (round(bound) for bound in bucket.burst_interval)
        found.append(
            Figure(
                key=burst,
                value=round(bucket.burst),
                low=least,
                high=most if rested else None,
                how="long loads",
            )
        )
    return found


def _how_else(fit: DiskFit, key: str) -> str:
    if key in fit.undecided:
        return UNDECIDED
    if key == "placement":
        return "fits better than the other"
    if key in {"full_duplex", "mixed_latency"}:
        return "fits better than the other" if fit.layout.writes else "not measured"
    if key == "flush":
        return "the kernel sends no flushes" if fit.layout.writes else "not measured"
    return "not measured: as reads"


def _intervals(fit: DiskFit) -> dict[str, tuple[int | None, int | None, str]]:
    layout = fit.layout
    priors = layout.prior_deviations()
    found: dict[str, tuple[int | None, int | None, str]] = {}
    for name, value, deviation, prior, least, largest in zip(
        layout.names,
        fit.vector.tolist(),
        fit.deviations.tolist(),
        priors.tolist(),
        *(ends.tolist() for ends in fit.with_others),
        strict=True,
    ):
        half = TWO_SIDED * deviation
        low_end, high_end = min(value - half, least), max(value + half, largest)
        key = {"transfer": "rate"}.get(name.split(".")[-1], name.split(".")[-1])
        if "." in name:
            key = f"{name.split('.')[0]}_{key}"
        if name == "parallel":
            if fit.disk.in_batches:
                found[key] = (None, None, "one thread serves all in batches")
                key = "batch_size"
            found[key] = (*fit.parallel_interval, "fitted")
        elif deviation > _UNIDENTIFIED * prior:
            found[key] = (None, None, "not identified by the loads")
        elif layout.is_log(name):
            found[key] = (round(math.exp(low_end)), round(math.exp(high_end)), "fitted")
        elif name.endswith("spread"):
            found[key] = (max(0, round(1000 * low_end)), round(1000 * high_end), "fitted")
        elif name.endswith("command"):
            unit = layout.unit_ns(name)
            found[key] = (max(0, round(unit * low_end)), round(unit * high_end), "fitted")
        else:
            unit = layout.unit_ns(name)
            slow, fast = unit * high_end, unit * low_end
            found[key] = (rate_of(slow), rate_of(fast) if fast > 0 else None, "fitted")
    return found


def calibrated_loads(
    loads: Sequence[tuple[DiskLoad, bool]],
    found: Mapping[Row, DiskObservation],
    predicted: Mapping[DiskLoad, Logs],
) -> list[CalibratedLoad]:
    """Each load (and whether it was fitted) with its predictions."""
    return [
        CalibratedLoad(
            load=load.name,
            fitted=fitted,
            runs=found[load, "iops"].count,
            iops=math.exp(found[load, "iops"].log),
            predicted_iops=math.exp(predicted[load]["iops"]),
            p99_us=math.exp(found[load, "p99"].log) / 1000,
            predicted_p99_us=math.exp(predicted[load]["p99"]) / 1000,
        )
        for load, fitted in loads
    ]


def mean_log(values: Iterable[float]) -> float:
    """The geometric mean."""
    return math.exp(float(np.mean(np.log(list(values)))))


def mixed_load(
    load: CalibrationLoad,
    runs: Sequence[DiskMeasurement],
    simulated: Sequence[DiskMeasurement],
    *,
    fitted: bool,
) -> MixedLoad:
    """Reads beside writes with their measurements, and with simulations for the same time."""
    read_mean_us, predicted_mean_us = (
        mean_log(one.mean_ns or one.p50_ns for one in each) / 1000 for each in (runs, simulated)
    )
    read_p99_us, predicted_p99_us = (
        mean_log(one.p99_ns for one in each) / 1000 for each in (runs, simulated)
    )
    write_iops, predicted_write_iops = (
        mean_log(one.write_iops or one.iops for one in each) for each in (runs, simulated)
    )
    return MixedLoad(
        load=load.name,
        fitted=fitted,
        runs=len(runs),
        read_mean_us=read_mean_us,
        predicted_read_mean_us=predicted_mean_us,
        read_p99_us=read_p99_us,
        predicted_read_p99_us=predicted_p99_us,
        write_iops=write_iops,
        predicted_write_iops=predicted_write_iops,
    )


def calibrated_load(
    load: CalibrationLoad,
    runs: Sequence[DiskMeasurement],
    simulated: Sequence[DiskMeasurement],
    *,
    fitted: bool,
) -> CalibratedLoad:
    """A load with its measurements, and with simulations of it for the same time."""
    return CalibratedLoad(
        load=load.name,
        fitted=fitted,
        runs=len(runs),
        iops=mean_log(one.iops for one in runs),
        predicted_iops=mean_log(one.iops for one in simulated),
        p99_us=mean_log(one.p99_ns for one in runs) / 1000,
        predicted_p99_us=mean_log(one.p99_ns for one in simulated) / 1000,
    )
