"""Compares what a cost table predicts with what this machine's kernel does, load by load."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median

from pydantic import BaseModel, ConfigDict, Field

from blklab.analysis.comparison import compare_all
from blklab.analysis.designs import FixedDesign
from blklab.analysis.metrics import metric_named
from blklab.analysis.questions import Question
from blklab.analysis.statistics.percentile import percentile
from blklab.labs.calibration.fit import BASELINE
from blklab.labs.calibration.loads import FITTED, ProcessorLoad
from blklab.labs.calibration.measuring import CostMeasurement, difference
from blklab.labs.calibration.prediction import predicted_iops
from blklab.spec.experiment import DEFAULT_CONFIDENCE, DEFAULT_MARGIN
from blklab.spec.machines import Machine

SCHEMA = "blklab/host-fidelity-2"
MEDIAN_LIMIT = 0.05
"""Of the errors of ratios, on loads that were not fitted."""
PERCENTILE_95_LIMIT = 0.15
ORDER_LIMIT = 0.95
"""Of the pairs that the host decides, the share that the model must put in the same order."""


class HostCell(BaseModel):
    """A load under a scheduler."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    load: str
    block_kib: int
    scheduler: str
    fitted: bool
    """Whether calibration may have fitted the table to this load."""
    iops: float
    predicted_iops: float
    ratio: float
    """To the rate without a scheduler; 1 without one."""
    ratio_low: float
    ratio_high: float
    """Its 95 % interval."""
    predicted_ratio: float

    @property
    def error(self) -> float:
        """Of the predicted ratio, relative, without sign."""
        return abs(math.log(self.predicted_ratio / self.ratio))


class HostPair(BaseModel):
    """Two schedulers of which the first is faster under a load on the host.

    That is decided as in any comparison: the difference is real, corrected for all pairs of the load, and
    larger than the margin within which schedulers are practically equal.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    load: str
    block_kib: int
    fitted: bool
    faster: str
    slower: str
    ratio: float
    predicted_ratio: float

    @property
    def same_order(self) -> bool:
        """Whether the model puts them in the same order."""
        return self.predicted_ratio > 1


@dataclass(frozen=True)
class HostSummary:
    """How far the model is off on loads of one block size."""

    block_kib: int
    fitted: bool
    median_error: float
    """Of the ratios to the rate without a scheduler, relative."""
    percentile_95_error: float
    pairs: int
    """Pairs of schedulers that the host decides."""
    pairs_in_order: int

    @property
    def holds(self) -> bool:
        """Whether the limits are kept."""
        in_order = not self.pairs or self.pairs_in_order / self.pairs >= ORDER_LIMIT
        return (
            self.median_error <= MEDIAN_LIMIT and self.percentile_95_error <= PERCENTILE_95_LIMIT and in_order
        )


class HostFidelityDocument(BaseModel):
    """The result of `blklab fidelity --host`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_: str = Field(default=SCHEMA, alias="schema")
    kernel: str
    machine: str
    """The cost table."""
    rounds: int
    cells: list[HostCell]
    pairs: list[HostPair]

    def summaries(self) -> list[HostSummary]:
        """One for the loads of each block size that were fitted, then for those that were not.

        Large blocks cost copying, which no scheduler changes: their ratios are near 1 and easy to predict, so
        they are not counted among the small ones.
        """
        groups = sorted(
            {(not cell.fitted, cell.block_kib) for cell in self.cells if cell.scheduler != BASELINE}
        )
        return [self._summary(block_kib, fitted=not other) for other, block_kib in groups]

    def _summary(self, block_kib: int, *, fitted: bool) -> HostSummary:
        errors = sorted(
            cell.error
            for cell in self.cells
            if cell.scheduler != BASELINE and (cell.block_kib, cell.fitted) == (block_kib, fitted)
        )
        orders = [
            pair.same_order for pair in self.pairs if (pair.block_kib, pair.fitted) == (block_kib, fitted)
        ]
        return HostSummary(
            block_kib, fitted, median(errors), percentile(errors, 0.95), len(orders), sum(orders)
        )

    @property
    def holds(self) -> bool:
        """Whether every limit is kept, for each block size, on loads that were not fitted."""
        return all(summary.holds for summary in self.summaries() if not summary.fitted)


def host_fidelity(measurement: CostMeasurement, machine: Machine) -> HostFidelityDocument:
    """Compares a measurement with the table's predictions for the same loads."""
    cells = [(load, scheduler) for load in measurement.values for scheduler in measurement.schedulers(load)]
    predicted = predicted_iops(cells, machine)
    return HostFidelityDocument(
        schema=SCHEMA,
        kernel=measurement.machine.kernel,
        machine=machine.source,
        rounds=measurement.rounds,
        cells=list(_cells(measurement, predicted)),
        pairs=list(_pairs(measurement, predicted)),
    )


def _cells(
    measurement: CostMeasurement, predicted: Mapping[tuple[ProcessorLoad, str], float]
) -> Iterator[HostCell]:
    for load, series in measurement.values.items():
        base, predicted_base = measurement.observations[load].iops, predicted[(load, BASELINE)]
        for scheduler in measurement.schedulers(load):
            ratio, (low, high) = 1.0, (1.0, 1.0)
            if scheduler != BASELINE and (found := difference(series, scheduler, BASELINE)):
                ratio = found.ratio
                low, high = found.ratio_interval(DEFAULT_CONFIDENCE) or (ratio, ratio)
            iops = predicted[(load, scheduler)]
            yield HostCell(
                load=load.name,
                block_kib=load.block_kib,
                scheduler=scheduler,
                fitted=load in FITTED,
                iops=base * ratio,
                predicted_iops=iops,
                ratio=ratio,
                ratio_low=low,
                ratio_high=high,
                predicted_ratio=iops / predicted_base,
            )


def _pairs(
    measurement: CostMeasurement, predicted: Mapping[tuple[ProcessorLoad, str], float]
) -> Iterator[HostPair]:
    design = FixedDesign(confidence=DEFAULT_CONFIDENCE, margin=DEFAULT_MARGIN)
    for load, series in measurement.values.items():
        question = Question(load.name, metric_named("iops"), series)
        (compared,) = compare_all([question], design, measurement.schedulers(load))
        for one in compared:
            if one.outcome not in ("better", "worse"):
                continue
            won = one.seen_from(one.first if one.outcome == "better" else one.second)
            yield HostPair(
                load=load.name,
                block_kib=load.block_kib,
                fitted=load in FITTED,
                faster=won.first,
                slower=won.second,
                ratio=won.ratio,
                predicted_ratio=predicted[(load, won.first)] / predicted[(load, won.second)],
            )
