"""The forward model of the fit: the simulator, which predicts each load's numbers from the figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from blklab.labs.calibration.disk.ground import DiskFacts, measurement_of
from blklab.labs.calibration.disk.loads import DiskLoad
from blklab.labs.calibration.disk.observations import DiskObservation, Quantity, Row, logs_of
from blklab.labs.calibration.disk.parameters import KIND, Floats, VirtualDisk
from blklab.records.samples import JobSample
from blklab.simulator.request import SimulationRequest
from blklab.simulator.simulation import simulate_many
from blklab.spec.machines import Machine
from blklab.spec.plan import derive_seed

Logs = Mapping[Quantity, float]

FINE_IOS = 10_000
"""I/Os of a simulated load: few enough to be quick, enough for the 95th percentile."""
COARSE_IOS = 3_000
NEAREST_IOS = 2_000
_INTERPOLATED_PARALLEL = 64
"""Below it the number of servers, or of commands in a batch, is searched between whole numbers."""
_RAMP_DIVISOR = 8
_LEAST_RUNTIME_US = 1000
_LONGER, _MOST_LONGER = 32, 32**3
"""Times the length of a simulation in which no I/O completed, and at most so much longer."""
_MOST_EXCESS = 3
"""A disk that is so many times faster than the measured one is simulated for less time."""
_MOST_SPACE_BYTES = 1 << 30


@dataclass
class Forward:
    """Predictions for a disk with certain facts; those already made are kept."""

    facts: DiskFacts
    machine: Machine
    rates: Mapping[DiskLoad, float]
    """I/Os a second as measured, which set how long a load is simulated."""
    _known: dict[tuple[str, str, int, float], Logs] = field(default_factory=dict)

    def predicted(
        self, disk: VirtualDisk, rows: Sequence[Row], *, seed: int = 1, ios: int = FINE_IOS
    ) -> Floats:
        """The logarithms of the rows' numbers."""
        whole = round(disk.parallel)
        if disk.parallel >= _INTERPOLATED_PARALLEL or abs(disk.parallel - whole) < 1e-6:
            return self._rows(disk, rows, seed=seed, ios=ios)
        low = int(disk.parallel)
        weight = np.log(disk.parallel / low) / np.log((low + 1) / low)
        fewer, more = (
            self._rows(_with_parallel(disk, parallel), rows, seed=seed, ios=ios)
            for parallel in (low, low + 1)
        )
        interpolated: Floats = (1 - weight) * fewer + weight * more
        return interpolated

    def _rows(self, disk: VirtualDisk, rows: Sequence[Row], *, seed: int, ios: int) -> Floats:
        devices = {load: (self.device(disk, load), self._length_s(disk, load, ios)) for load, _ in rows}
        logs = self._simulated(devices, seed)
        return np.array([logs[load][quantity] for load, quantity in rows])

    def device(self, disk: VirtualDisk, load: DiskLoad | None = None) -> str:
        """The device as in a target, with what affects the load; with everything if there is none."""
        queues = self.facts.queues
        settings = {
            "capacity": self.facts.capacity_bytes,
            "queue_depth": queues.depth,
            "hw_queues": queues.number,
            "max_sectors_kb": queues.max_sectors_kb,
        } | disk.parameters(load)
        return ",".join([KIND, *(f"{key}={value}" for key, value in settings.items())])

    def on_devices(
        self, devices: Mapping[DiskLoad, str], *, seed: int = 1, ios: int = FINE_IOS
    ) -> dict[DiskLoad, Logs]:
        """The loads' numbers, each on a device of its own, at about its measured rate."""
        return self._simulated(
            {load: (device, ios / self.rates[load]) for load, device in devices.items()}, seed
        )

    def _simulated(self, devices: Mapping[DiskLoad, tuple[str, float]], seed: int) -> dict[DiskLoad, Logs]:
        """The loads' numbers on devices, each simulated for so many seconds."""
        keys = {load: (device, load.name, seed, length_s) for load, (device, length_s) in devices.items()}
        missing = [load for load, key in keys.items() if key not in self._known]
        longer = 1
        while missing:
            requests = [
                self._request(load, devices[load][0], longer * devices[load][1], seed) for load in missing
            ]
            without = []
            for load, result in zip(missing, simulate_many(requests), strict=True):
                if longer < _MOST_LONGER and not _completes(result.jobs):
                    without.append(load)
                else:
                    self._known[keys[load]] = logs_of(measurement_of(load, result.jobs))
            # The search may try disks that are far slower than the measured one.
            missing, longer = without, longer * _LONGER
        return {load: self._known[key] for load, key in keys.items()}

    def _request(self, load: DiskLoad, device: str, length_s: float, seed: int) -> SimulationRequest:
        runtime_us = max(_LEAST_RUNTIME_US, round(1e6 * length_s))
        workload = load.workload(
            space_bytes=min(self.facts.space_bytes, _MOST_SPACE_BYTES),
            ramp_us=runtime_us // _RAMP_DIVISOR,
            runtime_us=runtime_us,
        )
        # Under a common seed all loads would draw the same times, and chance would look like other figures.
        own_seed = derive_seed(seed, load.name)
        return SimulationRequest(
            device, workload, scheduler="none", costs=self.machine, seed=own_seed, arrangement="fixed"
        )

    def _length_s(self, disk: VirtualDisk, load: DiskLoad, ios: int) -> float:
        return ios / max(self.rates[load], most_rate(disk, load) / _MOST_EXCESS)


def _completes(jobs: Sequence[JobSample]) -> bool:
    """Whether a run has I/Os to count."""
    return any(entry.ios for job in jobs for entry in job.directions if entry.direction != "sync")


def most_rate(disk: VirtualDisk, load: DiskLoad) -> float:
    """I/Os a second that a load cannot exceed."""
    services = [disk.read, disk.write] if load.direction == "mixed" else [disk.service(load.direction)]
    link_ns = min(service.command_ns + load.block_kib * service.kib_ns for service in services)
    # Two directions may use a link each.
    link_ns /= 1 if disk.in_batches else len(services)
    server_ns = min(service.latency_ns for service in services) / min(load.depth, disk.parallel)
    return 1e9 / max(link_ns, server_ns)


def rates_of(found: Mapping[Row, DiskObservation], loads: Iterable[DiskLoad]) -> dict[DiskLoad, float]:
    """I/Os a second of the loads as measured."""
    return {load: float(np.exp(found[load, "iops"].log)) for load in loads if (load, "iops") in found}


def _with_parallel(disk: VirtualDisk, parallel: int) -> VirtualDisk:
    return replace(disk, parallel=parallel)
