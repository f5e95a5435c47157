"""Predictions of a cost table: the rates of loads on a loop device over memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blklab.analysis.metrics import metric_named
from blklab.labs.calibration.loads import ProcessorLoad
from blklab.simulator.request import SimulationRequest
from blklab.simulator.simulation import simulate_many
from blklab.spec.machines import Machine

MODEL = "loop,capacity=1g"
"""The device: its thread's work is in the machine's table."""
_RAMP_MS = 5
_RUNTIME_MS = 30

Cell = tuple[ProcessorLoad, str]
"""A load under a scheduler."""


def predicted_iops(cells: Sequence[Cell], machine: Machine) -> Mapping[Cell, float]:
    """I/Os a second of each load under each scheduler, in the simulator."""
    requests = [
        SimulationRequest(
            MODEL,
            load.workload(ramp_ms=_RAMP_MS, runtime_ms=_RUNTIME_MS),
            scheduler=scheduler,
            costs=machine,
            arrangement="fixed",
        )
        for load, scheduler in cells
    ]
    compute = metric_named("iops").compute
    values = [compute(result.jobs) for result in simulate_many(requests)]
    return {cell: value or 0.0 for cell, value in zip(cells, values, strict=True)}
