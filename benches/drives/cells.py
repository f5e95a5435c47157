"""The cells of figures 11 and 12: jobs beside each other on eight drives, measured and simulated."""

from __future__ import annotations

import csv
import math
import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
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
    ramp_ms: tuple[int, int]
    runtime_ms: tuple[int, int]
    """In all, and for each batch job besides: more jobs, longer waits. Far shorter than the study's: some
    rounds of the longest waits. A tail of few reads is uncertain."""


LOADS = {
    "11-a": Load("fig-11-a", "l", 1, "randread", "4k", (20, 0), (40, 0)),
    "11-b": Load("fig-11-b", "l", 1, "randread", "64k", (80, 8), (320, 150)),
    "11-c": Load("fig-11-c", "l", 1, "randwrite", "4k", (150, 0), (450, 0)),
    "11-d": Load("fig-11-d", "l", 1, "randwrite", "64k", (200, 10), (800, 60)),
    "12-a": Load("fig-12-a", "t_4k", 128, "randread", "64k", (80, 8), (240, 30)),
    "12-b": Load("fig-12-b", "t_4k", 128, "randwrite", "64k", (200, 10), (800, 40)),
}
_HELD_BACK_JOBS = 8
_RAISED_MS = 3_000
"""bfq raises the weight of a job that has just begun, on disks as fast as these for three seconds. The
study's measurements begin after 30 s."""
_SEEDS = (1, 2, 3)
"""Where jobs and the reader meet on a processor decides its place in the queue of the slow drive."""
_FORMATTED, _WRITING_S, _DRIVES, _CAPACITY = "11-c", 1200, 8, 1_000_204_886_016
TABLE = {"cpus": 10, "punt_ns": 2_000, "map_page_ns": 90, "slice_ns": 100_000}
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

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds of the cell's runs: several where few reads make its mean."""
        return _SEEDS if self.figure == "11-b" and self.jobs > _HELD_BACK_JOBS else _SEEDS[:1]

    def request(self, device: str, *, fill: int = 100, part: float = 1.0, seed: int = 1) -> SimulationRequest:
        """The cell in the simulator on drives of that fill, for a part of the usual time."""
        load = LOADS[self.figure]
        raised_ms = _RAISED_MS if self.scheduler == "bfq" else 0
        ramp_ms, runtime_ms = (
            int((base + self.jobs * more) * part) for base, more in (load.ramp_ms, load.runtime_ms)
        )
        text = (
            "[global]\ndirect=1\nioengine=io_uring\nnorandommap=1\ntime_based\n"
            f"ramp_time={ramp_ms + raised_ms}ms\nruntime={runtime_ms}ms\n"
            f"[measured]\nrw=randread\nbs=4k\niodepth={load.depth}\n"
        )
        if self.jobs:
            text += f"[batch]\nrw={load.batch}\nbs={load.batch_bs}\niodepth=128\nnumjobs={self.jobs}\n"
        table = load_machine("ordinary").model_copy(update=TABLE)
        return SimulationRequest(
            f"{device},fill={fill},raid=0,members=8,member7.link_read_rate={SLOW_LINK},member7.link_write_rate={SLOW_LINK}",
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


def fills(real: Results) -> dict[Cell, int]:
    """How full the drives were in the middle of a cell's measurement, in percent.

    The drives were formatted between the first cells of figure 11-c: beside one job of writes the median
    read takes 73 us under none, but 22 us under the next scheduler, which is less than the medium needs.
    From then on the study wrote at random for 1200 s in each cell, in the order of jobs and schedulers.
    """
    cells = sorted((cell for cell in real if cell.figure == _FORMATTED), key=_turn)
    found, written = {}, 0.0
    for cell in cells[1:]:
        own = cell.jobs * (real[cell].batch_iops or 0.0) * 4096 * _WRITING_S / _DRIVES
        found[cell] = round(100 * (1 - math.exp(-(written + 0.75 * own) / _CAPACITY)))
        written += own
    return found


def _turn(cell: Cell) -> tuple[int, int]:
    return cell.jobs, SCHEDULERS.index(cell.scheduler)


def simulated(
    cells: Sequence[Cell],
    device: str = PROFILE,
    *,
    fill: Mapping[Cell, int] | None = None,
    part: float = 1.0,
    workers: int | None = None,
) -> Results:
    """The cells as the simulator predicts them, on drives of these fills, else full ones."""
    known = fill or {}
    runs = [(cell, seed) for cell in cells for seed in cell.seeds]
    requests = [cell.request(device, fill=known.get(cell, 100), part=part, seed=seed) for cell, seed in runs]
    found: dict[Cell, list[Figures]] = defaultdict(list)
    for (cell, _), answer in zip(runs, simulate_many(requests, workers), strict=True):
        found[cell].append(_simulated(answer.jobs, cell.jobs))
    return {cell: _mean(figures) for cell, figures in found.items()}


def _mean(figures: Sequence[Figures]) -> Figures:
    """The means of runs with different seeds."""

    def mean(values: Iterable[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return statistics.mean(known) if known else None

    columns = ((one.mean_us, one.p99_us, one.batch_iops) for one in figures)
    return Figures(*(mean(column) for column in zip(*columns, strict=True)))


def _simulated(jobs: Sequence[JobSample], nr_batch: int) -> Figures:
    one = [job for job in jobs if job.name == "measured"]
    batch = [job for job in jobs if job.name == "batch"]
    mean_us, p99_us, iops = (metric_named(name).compute for name in ("latency_mean", "latency_p99", "iops"))
    rate = iops(batch) if batch else None
    return Figures(mean_us(one), p99_us(one), rate and rate / nr_batch)
