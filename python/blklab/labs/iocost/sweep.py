"""A sweep of vrates in the simulator: a protected group beside a heavy one, under io.cost's model.

resctl-bench's iocost-qos does this on the machine itself, for hours: at each vrate it runs a program that is
sensitive to latency, alone and beside a memory hog. Here a model of the disk is swept. Its vrate is set as
iocost-tune writes it: the model's coefficients are scaled, so that 100 % of the scaled model is the vrate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from blklab.records.samples import JobSample, LatencyHistogram
from blklab.simulator.request import SimulationRequest
from blklab.simulator.simulation import SimulationResult, simulate_many
from blklab.spec.machines import Machine
from blklab.spec.plan import derive_seed

SWEPT_VRATES = tuple(range(10, 151, 5))
"""Percent of the model as measured."""
SEEDS = 8
"""Times that each vrate is simulated."""
PROTECTED_WEIGHT, HEAVY_WEIGHT = 500, 50
"""``io.weight``, as resctl-demo's workload and system slices have it."""
ASKED_SHARE = 0.05
"""Of the random rate: the reads, and the writes, that the protected group asks for."""
_HEAVY_KIB, _HEAVY_DEPTH = 64, 32
"""Of each of its two jobs, random reads and random writes."""
_PROTECTED_DEPTH = 64
_WANTED_READS = 2000
"""Of the protected group in a run, for its 99th percentile."""
_LEAST_RUNTIME_US = 250_000
_RAMP_DIVISOR = 4
_SETTLING_PERIODS = 60
"""Before a run counts: the vrate moves by a few percent in a period."""
_LEAST_PERIOD_US, _MOST_PERIOD_US = 1_000, 1_000_000
_HZ = 250
"""Of the simulated kernel, as distributions have it: io.cost's periods are timed in ticks."""


@dataclass(frozen=True)
class Qos:
    """``io.cost.qos`` without the switches: percentiles, latencies in microseconds, vrates in percent."""

    rpct: int
    rlat: int
    wpct: int
    wlat: int
    min: int = 100
    max: int = 100

    @property
    def longest_period_us(self) -> int:
        """An upper bound of io.cost's period (``ioc_refresh_period_us``, block/blk-iocost.c)."""
        percentile = min((pct for pct in (self.rpct, self.wpct) if pct), default=100)
        multiple = max(2, (100 - percentile) // 5)
        longest = multiple * max(self.rlat, self.wlat)
        return min(max(longest, _LEAST_PERIOD_US), _MOST_PERIOD_US)


@dataclass(frozen=True)
class GroupRun:
    """A run of the two groups."""

    bandwidth: float
    """Bytes a second of both groups together."""
    isolation: float
    """I/Os that the protected group made, over those that it asked for."""
    read: LatencyHistogram
    """Latencies of the protected group's reads, all waiting included."""
    write: LatencyHistogram

    @property
    def p99_ns(self) -> float:
        """99th percentile of its reads' latencies; infinite if it completed none."""
        return self.read.percentile_ns(0.99) or float("inf")


@dataclass(frozen=True)
class SweptDisk:
    """A model of the disk, with its coefficients."""

    device: str
    """As after ``sim:``."""
    model: Mapping[str, int]
    """Coefficients of ``io.cost.model``, as measured on the model of the disk."""
    space_bytes: int
    machine: Machine
    seed: int
    latencies_us: tuple[int, int]
    """``rlat`` and ``wlat``, which set io.cost's period."""
    queue: Mapping[str, str] = field(default_factory=dict)

    @property
    def asked_iops(self) -> tuple[int, int]:
        """Reads and writes a second that the protected group asks for."""
        reads, writes = (max(1, round(ASKED_SHARE * self.model[name])) for name in ("rrandiops", "wrandiops"))
        return reads, writes

    @property
    def runtime_us(self) -> int:
        """Of a run."""
        return max(_LEAST_RUNTIME_US, round(1e6 * _WANTED_READS / self.asked_iops[0]))

    def at_vrate(self, vrate: int, step: int) -> SimulationRequest:
        """A run at a fixed vrate (percent). Runs of the same step share a seed, whatever the vrate."""
        rlat, wlat = self.latencies_us
        return self.under(Qos(rpct=0, rlat=rlat, wpct=0, wlat=wlat), scaled(self.model, vrate / 100), step)

    def under(self, qos: Qos | None, model: Mapping[str, int], step: int) -> SimulationRequest:
        """A run under parameters; without io.cost for None."""
        ramp_us = self.runtime_us // _RAMP_DIVISOR
        groups: dict[str, dict[str, str | int]] = {
            "protected": {"io.weight": PROTECTED_WEIGHT},
            "heavy": {"io.weight": HEAVY_WEIGHT},
        }
        if qos is not None:
            ramp_us = max(ramp_us, _SETTLING_PERIODS * qos.longest_period_us)
            groups["/"] = {
                "io.cost.qos": f"enable=1 ctrl=user {qos_words(qos)}",
                "io.cost.model": f"ctrl=user model=linear {model_words(model)}",
            }
        return SimulationRequest(
            self.device,
            self._jobs(ramp_us),
            scheduler="none",
            queue=dict(self.queue),
            parameters={"hz": _HZ},
            cgroups=groups,
            costs=self.machine,
            arrangement="fixed",
            seed=derive_seed(self.seed, "iocost", "sweep", step),
        )

    def _jobs(self, ramp_us: int) -> dict[str, dict[str, str | int]]:
        every: dict[str, str | int] = {
            "direct": 1,
            "ioengine": "libaio",
            "filename": "disk",
            "size": self.space_bytes,
            "norandommap": 1,
            "time_based": 1,
            "ramp_time": f"{ramp_us}us",
            "runtime": f"{self.runtime_us}us",
        }
        protected = every | {"cgroup": "protected", "bs": "4k", "iodepth": _PROTECTED_DEPTH}
        heavy = every | {"cgroup": "heavy", "bs": f"{_HEAVY_KIB}k", "iodepth": _HEAVY_DEPTH}
        reads, writes = self.asked_iops
        paced: dict[str, str | int] = {"rate_process": "poisson"}
        return {
            "reads": protected | paced | {"rw": "randread", "rate_iops": reads},
            "writes": protected | paced | {"rw": "randwrite", "rate_iops": writes},
            "reader": heavy | {"rw": "randread"},
            "writer": heavy | {"rw": "randwrite"},
        }

    def figures(self, result: SimulationResult) -> GroupRun:
        """The figures of a run."""
        reads, writes = result.job("reads"), result.job("writes")
        runtime_s = self.runtime_us / 1e6
        asked = sum(self.asked_iops) * runtime_s
        return GroupRun(
            bandwidth=sum(entry.bytes for job in result.jobs for entry in job.data_directions()) / runtime_s,
            isolation=sum(entry.ios for job in (reads, writes) for entry in job.data_directions()) / asked,
            read=_latency(reads),
            write=_latency(writes),
        )


def _latency(job: JobSample) -> LatencyHistogram:
    return LatencyHistogram.merged(entry.latency for entry in job.data_directions())


def scaled(model: Mapping[str, int], factor: float) -> dict[str, int]:
    """Coefficients at a vrate."""
    return {name: max(1, round(factor * value)) for name, value in model.items()}


def model_words(model: Mapping[str, int]) -> str:
    """Coefficients as the kernel takes them."""
    return " ".join(f"{name}={value}" for name, value in model.items())


def qos_words(qos: Qos) -> str:
    """Quality of service as the kernel and the simulator take it."""
    return f"rpct={qos.rpct} rlat={qos.rlat} wpct={qos.wpct} wlat={qos.wlat} min={qos.min} max={qos.max}"


def swept(disk: SweptDisk, step: int, vrates: Sequence[int] = SWEPT_VRATES) -> list[GroupRun]:
    """One run at each vrate."""
    results = simulate_many([disk.at_vrate(vrate, step) for vrate in vrates])
    return [disk.figures(result) for result in results]


def runs_under(
    disk: SweptDisk, qos: Qos | None, model: Mapping[str, int], steps: Sequence[int]
) -> list[GroupRun]:
    """One run under parameters for each step."""
    results = simulate_many([disk.under(qos, model, step) for step in steps])
    return [disk.figures(result) for result in results]
