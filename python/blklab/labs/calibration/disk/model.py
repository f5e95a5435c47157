"""The forward model: the simulator, under the same loads for the same time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from blklab.labs.calibration.disk.ground import RAMP_DIVISOR, DiskMeasurement, measurement_of
from blklab.labs.calibration.disk.loads import CalibrationLoad
from blklab.simulator.request import SimulationRequest
from blklab.simulator.simulation import simulate_many
from blklab.spec.machines import Machine


@dataclass
class Model:
    """Simulates loads as they were measured; what was simulated is kept."""

    space_bytes: int
    machine: Machine
    runtimes_us: dict[str, int] = field(default_factory=dict)
    _known: dict[tuple[str, str, int], DiskMeasurement] = field(default_factory=dict)

    def measured(
        self, device: str, loads: Sequence[CalibrationLoad], seeds: Sequence[int]
    ) -> list[list[DiskMeasurement]]:
        """For each load a measurement with each seed."""
        wanted = [(load, seed) for load in loads for seed in seeds]
        missing = [pair for pair in wanted if (device, pair[0].name, pair[1]) not in self._known]
        requests = [self._request(device, load, seed) for load, seed in missing]
        for (load, seed), result in zip(missing, simulate_many(requests), strict=True):
            self._known[device, load.name, seed] = measurement_of(load, result.jobs)
        return [[self._known[device, load.name, seed] for seed in seeds] for load in loads]

    def _request(self, device: str, load: CalibrationLoad, seed: int) -> SimulationRequest:
        runtime_us = self.runtimes_us[load.name]
        workload = load.workload(
            space_bytes=self.space_bytes, ramp_us=runtime_us // RAMP_DIVISOR, runtime_us=runtime_us
        )
        return SimulationRequest(
            device, workload, scheduler="none", costs=self.machine, seed=seed, arrangement="fixed"
        )
