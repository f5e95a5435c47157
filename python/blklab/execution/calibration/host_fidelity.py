"""Compares what a cost table predicts with what this machine's kernel does, load by load."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from pydantic import BaseModel, ConfigDict, Field

from blklab.analysis.statistics.paired import paired_difference
from blklab.analysis.statistics.series import shared_values
from blklab.execution.calibration.fit import BASELINE
from blklab.execution.calibration.loads import FITTED, Load
from blklab.execution.calibration.measuring import Measurement
from blklab.execution.calibration.prediction import predicted_iops
from blklab.execution.calibration.quantiles import median_and_95th
from blklab.spec.experiment import DEFAULT_CONFIDENCE, DEFAULT_MARGIN
from blklab.spec.machines import Machine

MEDIAN_LIMIT = 0.05
"""Of the errors of ratios, on loads that were not fitted."""
PERCENTILE_95_LIMIT = 0.15
ORDER_LIMIT = 0.95
"""Of the pairs that the host decides, the share that the model must put in the same order."""


class HostCell(BaseModel):
    """A load under a scheduler."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    load: str
    scheduler: str
    fitted: bool
    """Whether calibration may have fitted the table to this load."""
    iops: float
    predicted_iops: float
    ratio: float
    """To the rate without a scheduler; 1 without one."""
    ratio_error: float
    """Relative standard error."""
    predicted_ratio: float

    @property
    def error(self) -> float:
        """Of the predicted ratio, relative, without sign."""
        return abs(math.log(self.predicted_ratio / self.ratio))


class HostPair(BaseModel):
    """Two schedulers of which the host decides that the first is faster under a load."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    load: str
    fitted: bool
    faster: str
    slower: str
    ratio: float
    predicted_ratio: float

    @property
    def same_order(self) -> bool:
        """Whether the model puts them in the same order."""
        return self.predicted_ratio > 1


class HostFidelityDocument(BaseModel):
    """The result of `blklab fidelity --host`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_: str = Field(default="blklab/host-fidelity-1", alias="schema")
    kernel: str
    machine: str
    """The cost table."""
    rounds: int
    cells: list[HostCell]
    pairs: list[HostPair]

    def errors(self, *, fitted: bool) -> list[float]:
        """Errors of the ratios of fitted or other loads."""
        return [cell.error for cell in self.cells if cell.scheduler != BASELINE and cell.fitted == fitted]

    def orders(self, *, fitted: bool) -> list[bool]:
        """For each decided pair of fitted or other loads, whether the order is the same."""
        return [pair.same_order for pair in self.pairs if pair.fitted == fitted]

    @property
    def holds(self) -> bool:
        """Whether every limit is kept on loads that were not fitted."""
        errors, orders = self.errors(fitted=False), self.orders(fitted=False)
        if not errors:
            return True
        typical, large = median_and_95th(errors)
        in_order = not orders or sum(orders) / len(orders) >= ORDER_LIMIT
        return typical <= MEDIAN_LIMIT and large <= PERCENTILE_95_LIMIT and in_order


def host_fidelity(measurement: Measurement, machine: Machine) -> HostFidelityDocument:
    """Compares a measurement with the table's predictions for the same loads."""
    observations = measurement.observations
    cells = [(load, scheduler) for load, one in observations.items() for scheduler in (BASELINE, *one.ratios)]
    predicted = predicted_iops(cells, machine)
    return HostFidelityDocument(
        schema="blklab/host-fidelity-1",
        kernel=measurement.machine.kernel,
        machine=machine.source,
        rounds=measurement.rounds,
        cells=list(_cells(measurement, predicted)),
        pairs=list(_pairs(measurement, predicted)),
    )


def _cells(measurement: Measurement, predicted: Mapping[tuple[Load, str], float]) -> Iterator[HostCell]:
    for load, one in measurement.observations.items():
        base = predicted[(load, BASELINE)]
        for scheduler, (ratio, error) in {BASELINE: (1.0, 0.0), **one.ratios}.items():
            iops = predicted[(load, scheduler)]
            yield HostCell(
                load=load.name,
                scheduler=scheduler,
                fitted=load in FITTED,
                iops=one.iops * ratio,
                predicted_iops=iops,
                ratio=ratio,
                ratio_error=error,
                predicted_ratio=iops / base,
            )


def _pairs(measurement: Measurement, predicted: Mapping[tuple[Load, str], float]) -> Iterator[HostPair]:
    for load, series in measurement.values.items():
        for first, second in combinations(series, 2):
            ratio = _decided_ratio(*shared_values(series[first], series[second]))
            if ratio is None:
                continue
            faster, slower = (first, second) if ratio > 1 else (second, first)
            yield HostPair(
                load=load.name,
                fitted=load in FITTED,
                faster=faster,
                slower=slower,
                ratio=max(ratio, 1 / ratio),
                predicted_ratio=predicted[(load, faster)] / predicted[(load, slower)],
            )


def _decided_ratio(first: Sequence[float], second: Sequence[float]) -> float | None:
    """First over second if the rounds tell them apart."""
    level = 1 - DEFAULT_CONFIDENCE
    if len(first) < 2:
        return None
    difference = paired_difference(first, second, margin=DEFAULT_MARGIN, smallest_level=level)
    return difference.ratio if difference.p_difference <= level else None
