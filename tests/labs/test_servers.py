"""Numbers of servers that measurements leave open, and ways of placing commands on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from blklab.labs.calibration.disk.fit import TWO_SIDED
from blklab.labs.calibration.disk.loads import DiskLoad
from blklab.labs.calibration.disk.parameters import Floats, Layout, LinkUnits, Service, VirtualDisk
from blklab.labs.calibration.disk.search import DiskProblem
from blklab.labs.calibration.disk.servers import Servers, likely_servers

DEPTHS = (1, 2, 4, 8, 16, 32, 64)
LATENCY_NS = 100_000.0


def a_disk(**changes: Any) -> VirtualDisk:
    service = Service(latency_ns=LATENCY_NS, spread=0.2, command_ns=0.0, kib_ns=1.0)
    disk = VirtualDisk(service, service, 8.0, placement="any", full_duplex=True, flush_ns=0)
    return replace(disk, **changes)


class ClosedForm(DiskProblem):
    """Random reads, whose rates queueing theory gives, on a disk that takes so many commands at once."""

    def __init__(self, truth: VirtualDisk, like: VirtualDisk, queue_depth: int) -> None:
        facts = SimpleNamespace(queues=SimpleNamespace(depth=queue_depth))
        self.forward = cast("Any", SimpleNamespace(facts=facts))
        self.layout = Layout(
            writes=False, flushes=False, latency_ns=LATENCY_NS, links={"read": LinkUnits(1000.0, 100.0)}
        )
        self.rows = [(DiskLoad("read", 4, depth), "iops") for depth in DEPTHS]
        self.like = like
        self.start = self.layout.vector(like)
        self.measured = self._numbers(truth)

    def by_seed(self, vector: Floats, seeds: Sequence[int], *, like: VirtualDisk | None = None) -> Floats:
        disk = self.layout.disk(vector, like or self.like)
        return np.array([self._numbers(disk)] * len(seeds))

    def _numbers(self, disk: VirtualDisk) -> Floats:
        found = []
        for load, _ in self.rows:
            depth = min(load.depth, self.forward.facts.queues.depth)
            busy = min(depth, disk.parallel)
            if disk.placement == "random":
                busy = disk.parallel * depth / (depth + disk.parallel - 1)
            found.append(math.log(busy * 1e9 / disk.read.latency_ns))
        return np.array(found)


def servers(truth: VirtualDisk, like: VirtualDisk, *, queue_depth: int = 64, error: float = 0.01) -> Servers:
    """Servers that measurements with an error leave open."""
    problem = ClosedForm(truth, like, queue_depth)
    names = problem.layout.names
    weighted = np.zeros((len(DEPTHS), len(names)))
    weighted[:, names.index("read.latency")] = -1 / error
    information = weighted.T @ weighted + np.eye(len(names))
    return likely_servers(problem, np.full(len(DEPTHS), error), information, weighted, TWO_SIDED**2)


def test_a_placement_that_queues_tell_is_decided() -> None:
    truth = a_disk(parallel=8.0)
    found = servers(truth, truth)
    assert (found.low, found.high, found.undecided, found.better) == (8, 8, False, None)


def test_more_servers_than_commands_are_like_far_more_at_random() -> None:
    truth = a_disk(parallel=37.0)
    found = servers(truth, a_disk(parallel=2000.0, placement="random"), queue_depth=32)
    assert found.undecided
    assert found.low <= 37
    assert found.high is None
    # With fewer servers, which make some commands wait, each takes less time.
    latency = ClosedForm(truth, truth, 32).layout.names.index("read.latency")
    assert found.least[latency] < found.largest[latency]


def test_the_other_placement_is_taken_if_it_is_clearly_nearer() -> None:
    truth = a_disk(parallel=16.0, placement="random")
    found = servers(truth, a_disk(parallel=16.0))
    assert found.better is not None
    assert found.better.placement == "random"
    assert found.better.parallel == pytest.approx(16, rel=0.15)
    assert found.better.read.latency_ns == pytest.approx(LATENCY_NS, rel=0.1)


def test_one_server_is_any_server() -> None:
    truth = a_disk(parallel=1.0)
    found = servers(truth, truth)
    assert (found.low, found.high, found.undecided, found.better) == (1, 1, False, None)
