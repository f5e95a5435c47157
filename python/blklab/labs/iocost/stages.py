"""Both stages of measuring: the coefficients, then latencies at nine tenths of the random rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from blklab.labs.calibration.disk.ground import RAMP_DIVISOR, DiskFacts, SessionGround, quantile_ns
from blklab.labs.iocost.estimates import (
    LEAST_LATENCY_ERROR,
    LEAST_RATE_ERROR,
    Estimate,
    estimated,
)
from blklab.labs.iocost.loads import CostLoad, coefficient_loads, latency_loads
from blklab.labs.iocost.measuring import IocostObserver, IocostPlan, LoadRun, Pace, measured_rounds
from blklab.labs.iocost.solutions import HEADROOM, percentile_of
from blklab.quantities.formatting import join_names

_LONGER = 4
_DOUBTFUL = 1.25
"""Ratio of an interval's upper end to the figure from which on there is a note."""
_HALF = 0.5
"""A run counts whole I/Os."""
_BUSY_PROCESS = 0.9
"""Part of the time from which on a process, not the disk, may be the limit."""


@dataclass(frozen=True)
class IocostStages:
    """The extent of both stages."""

    rounds: int
    runtime_us: int
    """Of a load in a round; random loads run longer on a disk with an arm."""
    processes: int
    """Of a random load."""
    seed: int

    def runtime_of(self, load: CostLoad, facts: DiskFacts) -> int:
        """Microseconds of a load: longer where an arm moves, which makes few I/Os a second."""
        return self.runtime_us * (_LONGER if facts.rotational and not load.sequential else 1)


@dataclass(frozen=True)
class Measured:
    """Figures of a disk or of a model."""

    percentile: int
    coefficients: list[Estimate]
    latencies: list[Estimate]
    """``rlat`` and ``wlat``: targets in microseconds."""
    space_bytes: int
    """The part of the disk that was used."""
    remarks: list[str]

    @property
    def model(self) -> dict[str, int]:
        """The coefficients as the kernel takes them."""
        return {one.name: one.whole for one in self.coefficients}

    @property
    def latencies_us(self) -> tuple[int, int]:
        """``rlat`` and ``wlat`` as the kernel takes them."""
        rlat, wlat = (one.whole for one in self.latencies)
        return rlat, wlat


def measured(ground: SessionGround, stages: IocostStages, observer: IocostObserver) -> Measured:
    """Measures coefficients and latencies.

    Args:
        ground: The disk.
        stages: How much is measured.
        observer: Follows it.

    Raises:
        BlklabError: if a load cannot run.
    """
    size = stages.processes, ground.facts.queues.depth
    loads = coefficient_loads(*size)
    # The rates of paced loads follow later; their files are the same.
    later = latency_loads(*size, rrandiops=1, wrandiops=1)
    everything = {**loads, **later}
    runtimes_us = {name: stages.runtime_of(load, ground.facts) for name, load in everything.items()}
    whole_us = stages.rounds * sum(us + us // RAMP_DIVISOR for us in runtimes_us.values())
    observer.planned(
        IocostPlan(len(everything), stages.rounds, None if ground.facts.rested else 1000 * whole_us)
    )
    ground.prepare([*everything.values()], observer.announce)
    pace = Pace(stages.rounds * sum(runtimes_us.values()))

    def rounds(stage: str, of: Mapping[str, CostLoad], first_number: int) -> dict[str, list[LoadRun]]:
        return measured_rounds(
            ground,
            of,
            stage=stage,
            rounds=stages.rounds,
            runtimes_us={name: runtimes_us[name] for name in of},
            seed=stages.seed,
            first_number=first_number,
            planned=stages.rounds * len(everything),
            pace=pace,
            observer=observer,
        )

    runs = rounds("model", loads, 0)
    coefficients = [
        estimated(
            name,
            [_rate(name, run) for run in runs[name]],
            load=load.name,
            least_error=max(LEAST_RATE_ERROR, _HALF / min(run.latency.count for run in runs[name])),
        )
        for name, load in loads.items()
    ]
    rates = {one.name: one.value for one in coefficients}
    paced = latency_loads(*size, rrandiops=rates["rrandiops"], wrandiops=rates["wrandiops"])
    waits = rounds("qos", paced, stages.rounds * len(loads))
    percentile = percentile_of(rotational=ground.facts.rotational)
    latencies = [
        estimated(
            name,
            [quantile_ns(run.latency, percentile / 100) / 1000 for run in waits[name]],
            load=load.name,
            factor=HEADROOM,
            least_error=LEAST_LATENCY_ERROR,
        )
        for name, load in paced.items()
    ]
    wandering = [remark for one in coefficients if (remark := one.remark()) is not None]
    return Measured(
        percentile=percentile,
        coefficients=coefficients,
        latencies=latencies,
        space_bytes=ground.facts.space_bytes,
        remarks=[*doubtful_remarks([*coefficients, *latencies]), *wandering, *_busy_remarks(loads, runs)],
    )


def _rate(name: str, run: LoadRun) -> float:
    """Bytes or I/Os a second, as the coefficient has it."""
    return run.bytes_per_second if name.endswith("bps") else run.iops


def doubtful_remarks(estimates: Sequence[Estimate]) -> list[str]:
    """A note on figures that the rounds leave open."""
    names = [one.name for one in estimates if one.high > _DOUBTFUL * one.value]
    if not names:
        return []
    open_ones = f"{join_names(names)} may be off by more than {100 * (_DOUBTFUL - 1):.0f} %"
    return [f"the rounds differ, so {open_ones}: measure again, longer (--rounds) or with the disk at rest"]


def _busy_remarks(loads: Mapping[str, CostLoad], runs: Mapping[str, Sequence[LoadRun]]) -> list[str]:
    """Notes on loads whose process computed nearly all the time."""
    found = []
    for name, load in loads.items():
        shares = [run.processor_share for run in runs[name] if run.processor_share is not None]
        if shares and median(shares) > _BUSY_PROCESS:
            more = "" if load.sequential else "; --processes makes more of them"
            found.append(f"{name} may be the limit of one process, not of the disk{more}")
    return found
