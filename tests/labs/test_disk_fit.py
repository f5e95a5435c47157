"""The search for a disk's figures, where it has gone wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from blklab.backends.modelled_device import device_facts
from blklab.labs.calibration.disk.forward import FINE_IOS, Forward, most_rate
from blklab.labs.calibration.disk.ground import DiskFacts
from blklab.labs.calibration.disk.loads import DiskLoad, fitted_loads
from blklab.labs.calibration.disk.observations import DiskObservation, Row, fitted_rows
from blklab.labs.calibration.disk.parameters import MOST_PARALLEL, Layout, Service, VirtualDisk
from blklab.labs.calibration.disk.search import DiskProblem, best_traded, tolerated
from blklab.labs.calibration.disk.start import likely_batch_size, link_units
from blklab.linux.queue.hardware import HardwareQueues
from blklab.simulator.request import model_target
from blklab.spec.machines import load_machine
from blklab.spec.profiles import load_profile

TRUTH = VirtualDisk(
    read=Service(latency_ns=321_121, spread=0.268, command_ns=7018, kib_ns=3692),
    write=Service(latency_ns=151_453, spread=0.312, command_ns=3310, kib_ns=2618),
    parallel=9,
    placement="random",
    full_duplex=False,
    flush_ns=0,
)
FALSE = replace(
    TRUTH,
    read=Service(latency_ns=322_104, spread=0.2641, command_ns=6462, kib_ns=3690),
    write=Service(latency_ns=146_699, spread=0.3198, command_ns=8834, kib_ns=2583),
)
"""Where a search ended whose steps nearly filled the link."""
FACTS = DiskFacts(
    name="disk",
    model="",
    capacity_bytes=64 << 30,
    space_bytes=64 << 30,
    writable=True,
    queues=HardwareQueues(number=1, depth=64, max_sectors_kb=1280, volatile_cache=False),
    rotational=False,
)
LOADS = [load for load in fitted_loads(queue_depth=64, writes=True) if not load.syncs]
_ERROR = 0.003
_UNKNOWN_SEEDS = range(31, 35)
"""Of the disk; the search has others."""


def observed(forward: Forward) -> dict[Row, DiskObservation]:
    rows = fitted_rows(LOADS)
    runs = [forward.predicted(TRUTH, rows, seed=seed, ios=FINE_IOS) for seed in _UNKNOWN_SEEDS]
    logs = np.mean(runs, axis=0).tolist()
    return {row: DiskObservation(log=log, error=_ERROR, count=4) for row, log in zip(rows, logs, strict=True)}


@pytest.fixture(scope="module")
def forward() -> Forward:
    rates: dict[DiskLoad, float] = {load: most_rate(TRUTH, load) for load in LOADS}
    return Forward(FACTS, load_machine("ordinary"), rates)


@pytest.fixture(scope="module")
def found(forward: Forward) -> dict[Row, DiskObservation]:
    return observed(forward)


def layout_of(found: dict[Row, DiskObservation]) -> Layout:
    links = link_units(found, LOADS, writes=True)
    return Layout(writes=True, flushes=False, latency_ns=TRUTH.read.latency_ns, links=links)


def test_a_search_finds_the_way_over_a_full_link(forward: Forward, found: dict[Row, DiskObservation]) -> None:
    layout, rows = layout_of(found), fitted_rows(LOADS)

    def problem(like: VirtualDisk) -> DiskProblem:
        return DiskProblem(forward, layout, like, rows, found, model_error=0.0, ios=FINE_IOS)

    better = best_traded(problem(FALSE), FALSE)
    vector, cost = problem(better).solved(calls=12)
    assert cost < 1.2 * problem(TRUTH).cost(layout.vector(TRUTH))
    disk = layout.disk(vector, FALSE)
    assert disk.write.command_ns == pytest.approx(TRUTH.write.command_ns, rel=0.35)
    assert disk.write.latency_ns == pytest.approx(TRUTH.write.latency_ns, rel=0.01)


def test_a_single_command_takes_as_long_when_the_link_trades_places(
    forward: Forward, found: dict[Row, DiskObservation]
) -> None:
    layout = layout_of(found)
    rows = [row for row in fitted_rows(LOADS) if row[0].direction == "write"]
    problem = DiskProblem(forward, layout, FALSE, rows, found, model_error=0.0, ios=FINE_IOS)
    traded = best_traded(problem, FALSE)
    assert traded.write.command_ns < 0.8 * FALSE.write.command_ns
    assert traded.write.command_ns + traded.write.latency_ns == pytest.approx(
        FALSE.write.command_ns + FALSE.write.latency_ns
    )
    assert traded.read == FALSE.read, "reads tell nothing here"


def test_no_step_fills_the_link(found: dict[Row, DiskObservation]) -> None:
    layout = layout_of(found)
    steps = dict(zip(layout.names, layout.steps().tolist(), strict=True))
    for direction in ("read", "write"):
        units = layout.links[direction]
        service = TRUTH.service(direction)
        # The most that the link can take for a command or a KiB, and not much more than it takes.
        assert service.command_ns < units.command_ns < 10 * service.command_ns
        assert service.kib_ns < 1.03 * units.kib_ns
        assert steps[f"{direction}.command"] * units.command_ns < service.command_ns / 2
        assert steps[f"{direction}.transfer"] * units.kib_ns < service.kib_ns / 10


def test_a_vector_is_its_disk(found: dict[Row, DiskObservation]) -> None:
    layout = layout_of(found)
    again = layout.disk(layout.vector(TRUTH), FALSE)
    assert again.parameters() == TRUTH.parameters()


def test_no_time_is_beyond_what_a_profile_can_have(found: dict[Row, DiskObservation]) -> None:
    """On a disk of another kind a search may run away with a figure."""
    layout = layout_of(found)
    vector = layout.vector(TRUTH)
    vector[layout.names.index("read.latency")] = 80
    low, high = layout.bounds()
    bounded = layout.disk(np.clip(vector, low, high), TRUTH)
    target = model_target(f"virtual,read_latency={bounded.parameters()['read_latency']}")
    assert device_facts(target, load_profile(target.device))["device"]["capacity_bytes"]


@pytest.mark.parametrize("size", [8, 32, MOST_PARALLEL])
def test_a_batch_is_as_large_as_the_depth_from_which_rates_stay(size: int) -> None:
    def curve(latency_ns: float, each_ns: float) -> dict[int, float]:
        commands = {depth: min(depth, size) for depth in (1, 2, 4, 8, 16, 32, 64, 128)}
        return {depth: 1e9 * held / (latency_ns + each_ns * held) for depth, held in commands.items()}

    assert likely_batch_size([curve(55_000, 6_000), curve(60_000, 28_000)]) == size


def test_large_residuals_count_less() -> None:
    small, large, negative = tolerated(np.array([0.1, 30.0, -30.0])).tolist()
    assert small == pytest.approx(0.1, rel=0.01)
    assert 3 < large < 15
    assert negative == -large
