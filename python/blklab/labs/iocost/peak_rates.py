"""The rates at which io.cost's coefficients are measured, on a model and without any cost of computing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from blklab.labs.iocost.loads import CostLoad, coefficient_loads
from blklab.simulator.request import SimulationRequest
from blklab.simulator.simulation import SimulationResult, simulate_many

_PROCESSES = 4
"""Of random loads: 256 I/Os in flight, as resctl-bench has for all 4 KiB loads."""
_SEQUENTIAL_DEPTH = 256
_RAMP_US, _RUNTIME_US = 100_000, 100_000
_SPACE_BYTES = 16_000_000_000
"""Size of the benchmark's test file."""


def peak_rates(device: str, *, queue_depth: int) -> dict[str, float]:
    """Bytes and I/Os a second of a modelled device under the six loads, by coefficient.

    Args:
        device: As after ``sim:``.
        queue_depth: Commands that it takes at once.
    """
    loads = coefficient_loads(_PROCESSES, queue_depth)
    for name in ("rseqiops", "wseqiops"):
        loads[name] = replace(loads[name], depth=min(_SEQUENTIAL_DEPTH, queue_depth + 1))
    results = simulate_many([_request(device, load) for load in loads.values()])
    return {name: _rate(name, result) for name, result in zip(loads, results, strict=True)}


def _request(device: str, load: CostLoad) -> SimulationRequest:
    jobs = load.workload(space_bytes=_SPACE_BYTES, ramp_us=_RAMP_US, runtime_us=_RUNTIME_US)
    return SimulationRequest(
        device,
        jobs,
        scheduler="none",
        queue={"nomerges": 2},
        costs="zero-cpu-time",
        arrangement="fixed",
        seed=1,
    )


def _rate(name: str, result: SimulationResult) -> float:
    entries = [entry for job in result.jobs for entry in job.data_directions()]
    amount = sum(entry.bytes if name.endswith("bps") else entry.ios for entry in entries)
    return amount * 1e9 / max(entry.runtime_ns for entry in entries)


def factors(rates: Mapping[str, float], coefficients: Mapping[str, int]) -> dict[str, float]:
    """Rates over coefficients."""
    return {name: rate / coefficients[name] for name, rate in rates.items()}
