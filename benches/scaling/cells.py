"""Published rates by number of jobs, and the same cells in the simulator."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from blklab.analysis.metrics import metric_named
from blklab.simulator.request import SimulationRequest
from blklab.simulator.simulation import simulate_many
from blklab.spec.machines import Machine, load_machine

PUBLISHED = Path(__file__).with_name("icpe-2024.csv")
SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq")

DEVICE = "nvme-tlc,interface=23us,command=700ns,link_read_rate=7000000000"
"""A Samsung 980 PRO: 66 us for one read, and a link that carries 778,000 a second, as the study measured."""
MACHINE = "ordinary"
_RAMP_MS = 20
_RUNTIME_MS = 60


@dataclass(frozen=True)
class Cell:
    """Jobs under a scheduler, on some processors."""

    figure: str
    cpus: int
    jobs: int
    depth: int
    scheduler: str

    @property
    def is_fitted(self) -> bool:
        """The cost table or the device was derived from its rate."""
        if self.figure == "2":
            return self.depth == 256 or (self.scheduler == "none" and self.depth == 1)
        return self.figure == "7" and self.jobs == 10 and self.scheduler in ("none", "mq-deadline", "bfq")

    def request(self, table: Machine) -> SimulationRequest:
        """The cell in the simulator. The study's kernel plugs each read, so that its task dispatches it."""
        text = (
            "[load]\nrw=randread\nbs=4k\ndirect=1\nioengine=io_uring\nnorandommap=1\nsize=64g\n"
            f"filename=all\niodepth={self.depth}\nnumjobs={self.jobs}\n"
            f"time_based\nramp_time={_RAMP_MS}ms\nruntime={_RUNTIME_MS}ms\n"
        )
        return SimulationRequest(
            DEVICE,
            text,
            scheduler=self.scheduler,
            parameters={"plug_reads": True, "hz": 250},
            costs=table.model_copy(update={"cpus": self.cpus}),
            arrangement="fixed",
        )


Rates = dict[Cell, float]
"""I/Os a second."""


def published_rates() -> Rates:
    """The rates that the study measured."""
    lines = [line for line in PUBLISHED.read_text("utf-8").splitlines() if not line.startswith("#")]
    rates: Rates = {}
    for row in csv.DictReader(lines):
        numbers = (int(row[name]) for name in ("cpus", "jobs", "depth"))
        rates[Cell(row["figure"], *numbers, row["scheduler"])] = float(row["iops"])
    return rates


def simulated_rates(cells: Sequence[Cell]) -> Rates:
    """The rates that the simulator gives, with the costs of an ordinary machine."""
    table = load_machine(MACHINE)
    compute = metric_named("iops").compute
    results = simulate_many([cell.request(table) for cell in cells])
    return {cell: compute(result.jobs) or 0.0 for cell, result in zip(cells, results, strict=True)}
