"""Checks that a profile puts schedulers in the order in which the disk itself has them."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from blklab.analysis.metrics import metric_named
from blklab.simulator.request import SimulationRequest
from blklab.simulator.simulation import simulate_many
from blklab.spec.machines import DEFAULT_MACHINE, load_machine
from blklab.spec.workloads import load_workload

SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq")
WORKLOADS = ("random-read-4k-qd32", "mixed-70-30", "many-readers", "reader-beside-writers")
_SEEDS = range(1, 5)
_CERTAIN = 4.0
_LEAST = 0.03


@dataclass
class Order:
    """Pairs that the disk decides, and how many of them the profile has the same way round."""

    decided: int = 0
    right: int = 0


def order_of(truth: str, profile: str) -> Order:
    """Compares all pairs of schedulers under some workloads.

    A pair counts as decided on the disk if its difference is four standard errors and 3 % at least.
    """
    order = Order()
    for workload in WORKLOADS:
        true, found = _logs(truth, workload), _logs(profile, workload)
        for first, second in itertools.combinations(range(len(SCHEDULERS)), 2):
            difference = true[first] - true[second]
            error = float(np.std(difference, ddof=1)) / math.sqrt(len(difference))
            mean = float(np.mean(difference))
            if abs(mean) < max(_LEAST, _CERTAIN * error):
                continue
            order.decided += 1
            order.right += mean * float(np.mean(found[first] - found[second])) > 0
    return order


def _logs(device: str, workload: str) -> np.ndarray:
    """Logarithms of the workload's own metric: a row for each scheduler, a column for each seed."""
    jobs = load_workload(workload)
    metric = metric_named(jobs.decide_by)
    machine = load_machine(DEFAULT_MACHINE)
    requests = [
        SimulationRequest(device, jobs, scheduler=name, costs=machine, seed=seed, arrangement="drawn")
        for name in SCHEDULERS
        for seed in _SEEDS
    ]
    values = []
    for result in simulate_many(requests):
        focus = [job for job in result.jobs if not jobs.focus or job.name in jobs.focus]
        values.append(math.log(metric.compute(focus) or 1e-9))
    return np.array(values).reshape(len(SCHEDULERS), len(_SEEDS))
