"""Solutions: parameters of io.cost for one purpose each, under the names that resctl-bench and systemd use.

``naive``
    The model as measured; the vrate may fall to 60 % if latencies are missed. From the disk's own
    measurements alone, as resctl-bench's iocost-params derives them.
``isolation``
    Fixed at the knee of the sweep.
``bandwidth``
    Fixed at saturation.
``isolated-bandwidth``
    Between the two: saturation while latencies are met, down to the knee while they are not.

The vrate's upper end is in the model, whose coefficients are scaled so that it is 100 %, as iocost-tune does:
the kernel begins at 100 %.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from pydantic import BaseModel, ConfigDict

from blklab.labs.iocost.sweep import GroupRun, Qos, scaled
from blklab.labs.iocost.vrate_range import VrateRange
from blklab.records.samples import LatencyHistogram

NAIVE = "naive"
SOLUTIONS = ("isolation", "isolated-bandwidth", "bandwidth", NAIVE)
"""In the order of ``IOCOST_SOLUTIONS``, as resctl-bench has it."""
NAIVE_LEAST = 60
"""Percent."""
HEADROOM = 1.5
"""A latency is a target if it is so many times what was measured, as in resctl-demo's script."""
SSD_PERCENTILE, HDD_PERCENTILE = 95, 50
"""Percentile of latency that targets are about, as there."""


class Parameters(BaseModel):
    """``io.cost.model`` and ``io.cost.qos`` without the device and the switches."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rbps: int
    rseqiops: int
    rrandiops: int
    wbps: int
    wseqiops: int
    wrandiops: int
    rpct: int
    rlat: int
    wpct: int
    wlat: int
    min: int
    max: int

    @property
    def model(self) -> dict[str, int]:
        """The coefficients."""
        return self.model_dump(include=set(COEFFICIENTS))

    @property
    def qos(self) -> Qos:
        """The quality of service."""
        return Qos(**self.model_dump(exclude=set(COEFFICIENTS)))


COEFFICIENTS = ("rbps", "rseqiops", "rrandiops", "wbps", "wseqiops", "wrandiops")


class Expected(BaseModel):
    """The two groups' figures in the simulator: medians over seeds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bytes_per_second: float
    p99_us: float | None
    """Of the protected group's reads; None if it completed none."""
    isolation: float
    """Part of the I/Os asked for that the protected group got."""


class Solution(BaseModel):
    """Parameters for one purpose."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    vrate_min: int
    """Percent of the model as measured."""
    vrate_max: int
    parameters: Parameters
    expected: Expected | None
    """None if nothing was simulated."""


def percentile_of(*, rotational: bool) -> int:
    """The percentile that latency targets are about."""
    return HDD_PERCENTILE if rotational else SSD_PERCENTILE


def naive(model: Mapping[str, int], *, percentile: int, latencies_us: tuple[int, int]) -> Solution:
    """The solution from the disk's own measurements.

    Args:
        model: Coefficients.
        percentile: That latencies are about.
        latencies_us: ``rlat`` and ``wlat``, headroom included.
    """
    qos = Qos(
        rpct=percentile,
        rlat=latencies_us[0],
        wpct=percentile,
        wlat=latencies_us[1],
        min=NAIVE_LEAST,
    )
    return _solution(NAIVE, model, qos, vrate_min=NAIVE_LEAST, vrate_max=100)


def swept_solutions(
    model: Mapping[str, int],
    found: VrateRange,
    *,
    percentile: int,
    swept_us: tuple[int, int],
    targets_us: tuple[int, int],
) -> list[Solution]:
    """The solutions that a sweep adds.

    Args:
        model: Coefficients, as measured on the disk itself.
        found: The sweep's range.
        percentile: That latencies are about.
        swept_us: ``rlat`` and ``wlat`` of the sweep. At a fixed vrate they only set io.cost's period, so they
            must be the same for the same behaviour.
        targets_us: ``rlat`` and ``wlat`` that hold at the knee, headroom included.
    """
    knee, saturation = found.knee.value, found.saturation.value
    fixed = Qos(rpct=0, rlat=swept_us[0], wpct=0, wlat=swept_us[1])
    between = Qos(
        rpct=percentile,
        rlat=targets_us[0],
        wpct=percentile,
        wlat=targets_us[1],
        min=max(1, round(100 * knee / saturation)),
    )
    return [
        _solution("isolation", model, fixed, vrate_min=knee, vrate_max=knee),
        _solution(
            "isolated-bandwidth",
            model,
            between if knee < saturation else fixed,
            vrate_min=knee,
            vrate_max=saturation,
        ),
        _solution("bandwidth", model, fixed, vrate_min=saturation, vrate_max=saturation),
    ]


def _solution(name: str, model: Mapping[str, int], qos: Qos, *, vrate_min: int, vrate_max: int) -> Solution:
    words = {key: getattr(qos, key) for key in ("rpct", "rlat", "wpct", "wlat", "min", "max")}
    return Solution(
        name=name,
        vrate_min=vrate_min,
        vrate_max=vrate_max,
        parameters=Parameters(**scaled(model, vrate_max / 100), **words),
        expected=None,
    )


def latency_target_us(latencies: Sequence[LatencyHistogram], percentile: int) -> int:
    """A target from several runs' latencies: the percentile with headroom, at least 1 us."""
    percentile_ns = LatencyHistogram.merged(latencies).percentile_ns(percentile / 100) or 0.0
    return max(1, round(HEADROOM * percentile_ns / 1000))


def expected_of(runs: Sequence[GroupRun]) -> Expected:
    """Medians of several runs."""
    p99_ns = median(run.p99_ns for run in runs)
    return Expected(
        bytes_per_second=median(run.bandwidth for run in runs),
        p99_us=p99_ns / 1000 if p99_ns < float("inf") else None,
        isolation=median(run.isolation for run in runs),
    )
