"""The cells of figures 1 to 10: jobs that read 4 KiB from one drive or several, measured and simulated."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cells import PROFILE, SLOW_LINK, TABLE, Figures

from blklab.analysis.metrics import metric_named
from blklab.simulator.request import SimulationRequest
from blklab.simulator.simulation import simulate_many
from blklab.spec.machines import load_machine

BEFORE = "nvme-tlc,interface=23us,command=700ns,link_read_rate=7000000000"
"""The drive by which these figures were predicted before there was a front end, as in benches/scaling."""
_COSTS = {"punt_ns": TABLE["punt_ns"], "map_page_ns": TABLE["map_page_ns"]}
"""Without the short slice of figures 11 and 12, where a task that wakes takes the processor from one that
computes: these jobs are alike, and Linux 6.3 has them take turns of 3 ms, about as long as the table's."""
_RAMP_MS, _RUNTIME_MS = 20, 60
_SLOW_MEMBER = 7
"""Of two to five drives each carried as much as one alone, so the slow link is none of theirs."""
_PROCESSORS = 10
_NINE = 9

FIGURES = {
    "1": "jobs by depth, one drive and nine",
    "1, by size": "a job of 512 bytes to 64 KiB by depth",
    "2": "a job on one processor by depth",
    "3": "jobs of depth 1 on one processor",
    "5": "jobs of depth 1 on ten processors",
    "7": "jobs of depth 128",
    "9": "ten jobs of depth 128, two to eight drives",
    "10": "jobs of depth 128, eight drives",
}
"""Figures 4 and 6 are about the cells of 2, 3 and 5. Of figure 8 there are no data."""
_NAMED = {
    "fig-2-4a-6a-intra-proc-scal": "2",
    "fig-3-4b-6b-inter-proc-scal": "3",
    "fig-5-6c-inter-proc-scal-all-core": "5",
    "fig-7-tapp-scal-1-ssd": "7",
    "fig-9-ssd-scala": "9",
    "fig-10-tapp-scal-8-ssd": "10",
}
_BASELINE = "fig-1-samsung-baseline"
_ON_ONE_PROCESSOR = ("2", "3")


@dataclass(frozen=True)
class Alone:
    """Like jobs under a scheduler."""

    figure: str
    scheduler: str
    jobs: int
    depth: int
    drives: int = 1
    size: str = "4k"

    @property
    def is_fitted(self) -> bool:
        """The table of costs or the drive was derived from it; see machines/ordinary.toml and the profile."""
        if self.figure == "2":
            return self.depth == 256 or (self.scheduler == "none" and self.depth == 1)
        return self.figure == "7" and self.jobs == _PROCESSORS and self.scheduler != "kyber"

    def request(self, device: str) -> SimulationRequest:
        """The cell in the simulator, on the drive of today or that of before."""
        text = (
            f"[load]\nrw=randread\nbs={self.size}\ndirect=1\nioengine=io_uring\nnorandommap=1\n"
            f"iodepth={self.depth}\nnumjobs={self.jobs}\n"
            f"time_based\nramp_time={_RAMP_MS}ms\nruntime={_RUNTIME_MS}ms\n"
        )
        target = device
        if self.drives > 1:
            target += f",raid=0,members={self.drives}"
        if self.drives > _SLOW_MEMBER:
            target += f",member{_SLOW_MEMBER}.link_read_rate={SLOW_LINK}"
        changes = {} if device == BEFORE else dict(_COSTS)
        changes["cpus"] = 1 if self.figure in _ON_ONE_PROCESSOR else _PROCESSORS
        return SimulationRequest(
            target,
            text,
            scheduler=self.scheduler,
            parameters={"plug_reads": True, "hz": 250},
            costs=load_machine("ordinary").model_copy(update=changes),
            arrangement="fixed",
        )


AloneResults = dict[Alone, Figures]
"""`Figures.batch_iops` is the rate of all jobs together."""


def alone_measured(path: Path) -> AloneResults:
    """The cells of the published data, without SPDK's.

    Raises:
        OSError: if the file cannot be read.
    """
    found: AloneResults = {}
    turns: dict[str, int] = defaultdict(int)
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        turns[row["cell"]] += row["experiment"] == _BASELINE
    for row in rows:
        cell = _cell(row, is_last=turns[row["cell"]] <= 1)
        if row["experiment"] == _BASELINE:
            turns[row["cell"]] -= 1
        if cell is not None:
            found[cell] = Figures(
                float(row["clat_mean_ns"]) / 1e3, float(row["p99"]) / 1e3, float(row["iops"])
            )
    return found


def _cell(row: dict[str, str], *, is_last: bool) -> Alone | None:
    """The cell of a row.

    In figure 1 names do not tell one drive from nine; the nine come last.
    """
    name, scheduler, jobs, depth = row["cell"], row["scheduler"], row["numjobs"], row["iodepth"]
    if "spdk" in name:
        return None
    if row["experiment"] == _BASELINE:
        if not name.startswith("bs_4_proc"):
            return Alone("1, by size", scheduler, int(jobs), int(depth), size=row["bs"])
        return Alone("1", scheduler, int(jobs), int(depth), drives=_NINE if is_last else 1)
    figure = _NAMED.get(row["experiment"])
    if figure is None:
        return None
    drives = 8 if figure == "10" else 1
    if figure == "9" and (match := re.search(r"_dev_(\d+)_", name)):
        drives = int(match[1])
    return Alone(figure, scheduler, int(jobs), int(depth), drives)


def alone_simulated(
    cells: Sequence[Alone], device: str = PROFILE, *, workers: int | None = None
) -> AloneResults:
    """The cells as the simulator predicts them."""
    answers = simulate_many([cell.request(device) for cell in cells], workers)
    mean_us, p99_us, iops = (metric_named(name).compute for name in ("latency_mean", "latency_p99", "iops"))
    return {
        cell: Figures(mean_us(answer.jobs), p99_us(answer.jobs), iops(answer.jobs))
        for cell, answer in zip(cells, answers, strict=True)
    }
