"""Steady state: the change of speed from the beginning of a run to its end.

The speed of a run over time is cut into five rounds of equal length, after SNIA's *Solid State Storage
Performance Test Specification* (version 2.0.2, definition of steady state), which allows the line fitted to
five rounds to change by 10 % of their mean. A single short run is too noisy for that rule, so the runs of a
scheduler under a workload are taken together: each gives one value, the change along its fitted line, and
Student's t gives an interval for the mean of these values.

* **steady** if the interval lies within ±10 %;
* **changing** if it lies beyond;
* **unclear** otherwise.

The length of a warm-up is the cut that leaves the mean of the rest most certain: MSER-5 (White,
*An Effective Truncation Heuristic for Bias Reduction in Simulation Output*, Simulation 69(6), 1997). If it
lies within the first half of the median run, it is proposed as a ramp time; no data are cut off silently.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from blklab.analysis.statistics.intervals import standard_error, t_quantile
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import JobSample
from blklab.spec.workloads import Workload

ROUNDS = 5
TOLERANCE = 0.10
"""SNIA's: change along the fitted line over the rounds, as a fraction of their mean."""
FEWEST_WINDOWS = 10
BATCH = 5
"""Of MSER-5: windows are averaged in fives."""

SteadyState = Literal["steady", "changing", "unclear"]


@dataclass(frozen=True)
class Steadiness:
    """Runs of one scheduler under one workload, over time."""

    workload: str
    scheduler: str
    n: int
    change: float
    """Mean change of the speed along the fitted line from the first round to the last, as a fraction."""
    ci_low: float | None
    ci_high: float | None
    state: SteadyState
    warm_up_ns: int
    """Median over the runs of the point where MSER-5 would begin to measure; 0 for no cut."""


def steadiness(record: ExperimentRecord) -> list[Steadiness]:
    """One entry for each workload and scheduler whose runs recorded their speed over time."""
    found = []
    for workload in record.spec.workloads:
        for choice in record.spec.schedulers:
            series = [
                rates
                for sample in record.samples
                if sample.status == "ok"
                # A slot begins with a switch and is too short for a steady state of its own.
                and sample.slot is None
                and (sample.cell.workload, sample.cell.scheduler) == (workload.name, choice.label)
                and (rates := speed_over_time(sample.jobs, workload)) is not None
            ]
            if series:
                found.append(_entry(workload.name, choice.label, series, record.spec.confidence))
    return found


def speed_over_time(jobs: Sequence[JobSample], workload: Workload) -> tuple[int, list[float]] | None:
    """Window (ns) and bytes per second of the measured sections together; None if too little is known."""
    focused = [job for job in jobs if job.name in workload.focus]
    recorded = [job.rates for job in focused if job.rates is not None]
    if not recorded or len(recorded) < len(focused) or len({rates.window_ns for rates in recorded}) > 1:
        return None
    length = min(len(rates.bytes_per_second) for rates in recorded)
    summed = [sum(rates.bytes_per_second[index] for rates in recorded) for index in range(length)]
    if length < FEWEST_WINDOWS or not any(summed):
        return None
    return recorded[0].window_ns, summed


def change_over_run(rates: Sequence[float]) -> float:
    """Change along the line fitted to five rounds, over their mean."""
    rounds = np.array([part.mean() for part in np.array_split(np.asarray(rates, dtype=float), ROUNDS)])
    slope = float(np.polyfit(np.arange(ROUNDS), rounds, 1)[0])
    return slope * (ROUNDS - 1) / float(rounds.mean())


def warm_up_windows(rates: Sequence[float]) -> int:
    """Windows that MSER-5 would leave out; 0 if they were more than half."""
    batches = np.array(
        [
            float(np.mean(rates[start : start + BATCH]))
            for start in range(0, len(rates) - BATCH + 1, BATCH)
        ]
    )  # fmt: skip
    if len(batches) < 4:
        return 0
    # The standard error of the rest. The last few batches agree by chance, so they are not candidates.
    errors = [float(batches[cut:].var()) / (len(batches) - cut) for cut in range(len(batches) - 2)]
    best = int(np.argmin(errors))
    return best * BATCH if best * 2 <= len(batches) else 0


def _entry(
    workload: str, scheduler: str, series: Sequence[tuple[int, list[float]]], confidence: float
) -> Steadiness:
    changes = np.array([change_over_run(rates) for _, rates in series])
    mean = float(changes.mean())
    low = high = None
    state: SteadyState = "unclear"
    if len(changes) > 1:
        half = t_quantile(1 - (1 - confidence) / 2, len(changes) - 1) * standard_error(changes)
        low, high = mean - half, mean + half
        if max(abs(low), abs(high)) <= TOLERANCE:
            state = "steady"
        elif low > TOLERANCE or high < -TOLERANCE:
            state = "changing"
    warm_up_ns = math.floor(statistics.median(window * warm_up_windows(rates) for window, rates in series))
    return Steadiness(workload, scheduler, len(series), mean, low, high, state, warm_up_ns)
