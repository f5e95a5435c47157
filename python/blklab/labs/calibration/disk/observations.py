"""Repeated measurements of a load as typical values, and how uncertain these are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from blklab.labs.calibration.disk.ground import DiskMeasurement
from blklab.labs.calibration.disk.loads import DiskLoad

Quantity = Literal["iops", "p50", "p95", "p99", "sync"]
Row = tuple[DiskLoad, Quantity]
"""A number that is measured and predicted."""
_FIELDS: dict[Quantity, str] = {
    "iops": "iops",
    "p50": "p50_ns",
    "p95": "p95_ns",
    "p99": "p99_ns",
    "sync": "sync_p50_ns",
}
_PRIOR_FREEDOM = 4
"""Weight of the common scatter against a load's own, in degrees of freedom."""
_LEAST_RATE_ERROR = 0.002
"""Of a logarithm."""
_LEAST_PERCENTILE_ERROR = 0.0045
"""A bin of a histogram is up to 1.6 % wide: the standard deviation of a place in it."""
_USUAL_SCATTER = 0.03
"""Where no load was measured twice."""


@dataclass(frozen=True)
class DiskObservation:
    """One number, measured several times."""

    log: float
    """Median of the logarithms."""
    error: float
    """Its standard error."""
    count: int
    """Times that it was measured."""


def logs_of(measurement: DiskMeasurement) -> dict[Quantity, float]:
    """Logarithms of a measurement's numbers: I/Os a second, nanoseconds."""
    values = {quantity: getattr(measurement, field) for quantity, field in _FIELDS.items()}
    return {quantity: math.log(value) for quantity, value in values.items() if value}


def fitted_rows(loads: Iterable[DiskLoad]) -> list[Row]:
    """The numbers that figures are fitted to.

    At depth 1 these are percentiles too: there latency is the disk's own. Deeper, latency follows from the
    rate by Little's law, and its tail is left to test with.
    """
    rows: list[Row] = []
    for load in loads:
        if load.syncs:
            rows.append((load, "sync"))
            continue
        rows.append((load, "iops"))
        if load.depth == 1 and load.direction != "mixed":
            rows += [(load, "p50"), (load, "p95")]
    return rows


def observations(
    measurements: Sequence[DiskMeasurement], loads: Iterable[DiskLoad]
) -> dict[Row, DiskObservation]:
    """All numbers of the loads that were measured.

    Few repetitions say little about their own scatter, so it is drawn towards the median of all loads.
    """
    by_load: dict[str, list[dict[Quantity, float]]] = {}
    for measurement in measurements:
        by_load.setdefault(measurement.load, []).append(logs_of(measurement))
    found: dict[Row, list[float]] = {}
    for load in loads:
        for logs in by_load.get(load.name, []):
            for quantity, log in logs.items():
                found.setdefault((load, quantity), []).append(log)
    common = _common_variances(found)
    return {
        row: _observation(
            values, common[row[1]], _LEAST_RATE_ERROR if row[1] == "iops" else _LEAST_PERCENTILE_ERROR
        )
        for row, values in found.items()
    }


def _common_variances(found: Mapping[Row, Sequence[float]]) -> dict[Quantity, float]:
    variances: dict[Quantity, list[float]] = {quantity: [] for quantity in _FIELDS}
    for (_, quantity), values in found.items():
        if len(values) > 1:
            variances[quantity].append(float(np.var(values, ddof=1)))
    return {
        quantity: float(np.median(list_of)) if list_of else _USUAL_SCATTER**2
        for quantity, list_of in variances.items()
    }


def _observation(values: Sequence[float], common: float, least_error: float) -> DiskObservation:
    count = len(values)
    own = float(np.var(values, ddof=1)) if count > 1 else 0.0
    variance = (_PRIOR_FREEDOM * common + (count - 1) * own) / (_PRIOR_FREEDOM + count - 1)
    # The median of three or more varies by a quarter more than their mean, if they are normal.
    inefficiency = math.pi / 2 if count > 2 else 1.0
    error = math.sqrt(variance * inefficiency / count)
    return DiskObservation(log=float(np.median(values)), error=max(error, least_error), count=count)
