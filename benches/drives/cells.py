"""The cells of figures 11 and 12: jobs beside each other on eight drives, measured and simulated."""

from __future__ import annotations

import csv
import re
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from blklab.analysis.metrics import metric_named
from blklab.records.samples import JobSample
from blklab.simulator.request import SimulationRequest
from blklab.simulator.simulation import simulate_many
from blklab.spec.machines import load_machine

SCHEDULERS = ("none", "bfq", "kyber", "mq-deadline")
PROFILE = "samsung-980-pro"
SLOW_LINK = 1_920_000_000
"""Bytes a second. Eight drives carry eight times that of 64 KiB reads, in every cell: one has such a link."""


@dataclass(frozen=True)
class Load:
    """A measured job beside batch jobs of depth 128."""

    experiment: str
    """The name begins with it in the data."""
    measured: str
    """The measured job's name in the data."""
    depth: int
    batch: str
    batch_bs: str
    ramp_ms: int
    runtime_ms: int
    """Far shorter than the study's: some rounds of the longest waits. A tail of few reads is uncertain."""


LOADS = {
    "11-a": Load("fig-11-a", "l", 1, "randread", "4k", 20, 40),
    "11-b": Load("fig-11-b", "l", 1, "randread", "64k", 80, 320),
    "11-c": Load("fig-11-c", "l", 1, "randwrite", "4k", 40, 120),
    "11-d": Load("fig-11-d", "l", 1, "randwrite", "64k", 160, 640),
    "12-a": Load("fig-12-a", "t_4k", 128, "randread", "64k", 80, 240),
    "12-b": Load("fig-12-b", "t_4k", 128, "randwrite", "64k", 160, 640),
}
_HELD_BACK_JOBS = 8
_TABLE = {"cpus": 10, "punt_ns": 2_000, "slice_ns": 100_000}
"""Where the study's machine differs from `ordinary`. Linux 6.3 is before EEVDF: a task that wakes takes the
processor from one that computes (wake-up preemption of kernel/sched/fair.c). A short slice is like that."""


@dataclass(frozen=True)
class Cell:
    """A load with a number of batch jobs under a scheduler."""

    figure: str
    jobs: int
    scheduler: str

    @property
    def is_fitted(self) -> bool:
        """The drive's parameters were chosen by its figures. Those of eight jobs did not count."""
        return self.scheduler == "none" and self.jobs != _HELD_BACK_JOBS

    def request(self, device: str, *, part: float = 1.0, seed: int = 1) -> SimulationRequest:
        """The cell in the simulator, for a part of the usual time."""
        load = LOADS[self.figure]
        text = (
            "[global]\ndirect=1\nioengine=io_uring\nnorandommap=1\ntime_based\n"
            f"ramp_time={int(load.ramp_ms * part)}ms\nruntime={int(load.runtime_ms * part)}ms\n"
            f"[measured]\nrw=randread\nbs=4k\niodepth={load.depth}\n"
        )
        if self.jobs:
            text += f"[batch]\nrw={load.batch}\nbs={load.batch_bs}\niodepth=128\nnumjobs={self.jobs}\n"
        table = load_machine("ordinary").model_copy(update=_TABLE)
        return SimulationRequest(
            f"{device},raid=0,members=8,member7.link_read_rate={SLOW_LINK},member7.link_write_rate={SLOW_LINK}",
            text,
            scheduler=self.scheduler,
            parameters={"plug_reads": True, "hz": 250},
            costs=table,
            arrangement="fixed",
            seed=seed,
        )


@dataclass(frozen=True)
class Figures:
    """Latencies and rates of a cell. None: not in the data, or no I/O completed."""

    mean_us: float | None
    p99_us: float | None
    batch_iops: float | None
    """Of one batch job, in the mean."""


Results = dict[Cell, Figures]


def measured(path: Path) -> Results:
    """The cells of the published data.

    Raises:
        OSError: if the file cannot be read.
    """
    rows: dict[Cell, dict[bool, list[dict[str, str]]]] = defaultdict(lambda: {True: [], False: []})
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            for figure, load in LOADS.items():
                if row["experiment"].startswith(load.experiment) and (
                    match := re.match(r"(\w+)_dev_\d+_sche_([\w-]+)_num_t_(\d+)", row["cell"])
                ):
                    cell = Cell(figure, int(match[3]), match[2])
                    rows[cell][match[1] == load.measured].append(row)
    return {cell: _published(found[True], found[False]) for cell, found in sorted(rows.items(), key=str)}


def _published(one: Sequence[dict[str, str]], batch: Sequence[dict[str, str]]) -> Figures:
    def mean(rows: Sequence[dict[str, str]], column: str) -> float | None:
        return statistics.mean(float(row[column]) for row in rows) if rows else None

    mean_ns, p99_ns = mean(one, "clat_mean_ns"), mean(one, "p99")
    return Figures(mean_ns and mean_ns / 1e3, p99_ns and p99_ns / 1e3, mean(batch, "iops"))


def simulated(
    cells: Sequence[Cell], device: str = PROFILE, *, part: float = 1.0, workers: int | None = None
) -> Results:
    """The cells as the simulator predicts them."""
    answers = simulate_many([cell.request(device, part=part) for cell in cells], workers)
    return {cell: _simulated(answer.jobs, cell.jobs) for cell, answer in zip(cells, answers, strict=True)}


def _simulated(jobs: Sequence[JobSample], nr_batch: int) -> Figures:
    one = [job for job in jobs if job.name == "measured"]
    batch = [job for job in jobs if job.name == "batch"]
    mean_us, p99_us, iops = (metric_named(name).compute for name in ("latency_mean", "latency_p99", "iops"))
    rate = iops(batch) if batch else None
    return Figures(mean_us(one), p99_us(one), rate and rate / nr_batch)
