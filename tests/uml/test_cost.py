"""The cost of an I/O on a modelled disk, in context switches, to which other work only adds."""

from __future__ import annotations

import resource

import pytest

from blklab.spec.machines import Machine, load_machine

from .guest_runs import measure

pytestmark = pytest.mark.usefixtures("real_guest")

FEW, MANY = 200, 1200
MARGIN = 0.4
"""Allowance per I/O for other, occasional switches."""


def _switches(depth: int, engine: str, ios: int, machine: Machine | None = None) -> int:
    """Voluntary context switches of the guest's kernel and of the processes in which its programs compute.

    The least of five runs: where other programs want the processors, some waits are done in two parts.
    """
    return min(_switches_of_one_run(depth, engine, ios, machine) for _ in range(5))


def _switches_of_one_run(depth: int, engine: str, ios: int, machine: Machine | None) -> int:
    job = f"[reader]\nrw=randread\nbs=4k\ndirect=1\nioengine={engine}\niodepth={depth}\nnumber_ios={ios}\n"
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_nvcsw
    device = "uml:fixed,latency=100us,depth=32,jitter=10us"
    sample = measure(device, f"{job}size=1g\n", "none", machine=machine)
    assert sample.status == "ok"
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_nvcsw - before


@pytest.mark.parametrize(
    ("depth", "engine", "calls"),
    [
        # The load reads; the disk's server gives its answers and waits.
        (1, "psync", 2),
        # The load submits and waits; the server as above.
        (16, "libaio", 3),
    ],
)
def test_an_io_takes_few_system_calls_of_the_guest(depth: int, engine: str, calls: int) -> None:
    # In each the guest's kernel and the process in which the program computes wait for each other once.
    taken = (_switches(depth, engine, MANY) - _switches(depth, engine, FEW)) / (MANY - FEW)
    assert taken <= 2 * calls + MARGIN


@pytest.mark.parametrize(
    ("depth", "engine", "calls"),
    [
        # The load reads; the disk's server is told of the command and of its end, gives its answer and asks
        # for the time once, when the answer has taken some.
        (1, "psync", 5),
        # The load submits and waits.
        (16, "libaio", 6),
    ],
)
def test_looks_at_the_clock_are_no_calls_where_computing_takes_time(
    depth: int, engine: str, calls: int
) -> None:
    machine = load_machine("ordinary").on_one_processor()
    few, many = (_switches(depth, engine, ios, machine) for ios in (FEW, MANY))
    assert (many - few) / (MANY - FEW) <= 2 * calls + MARGIN
