"""Schedulers written in Python: the same rules and results as for the simulator's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import blklab
from blklab.errors import SchedulerCodeError, UnknownNameError, UsageError
from blklab.simulator import schedulers
from blklab.simulator.schedulers import Queue, Request
from plain_simulation import plain_request, simulate

_DEEP = """\
[many]
rw=randread
norandommap
direct=1
ioengine=libaio
iodepth=128
size=4g
time_based
runtime=2
"""


class Fifo:
    """First in, first out.

    Nothing more.
    """

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.held: list[Request] = []

    def insert(self, request: Request) -> None:
        self.held.append(request)

    def dispatch(self) -> Request | None:
        return self.held.pop(0) if self.held else None


@pytest.fixture(autouse=True)
def _registry_is_left_empty() -> Iterator[None]:
    yield
    for name in schedulers.registered():
        schedulers.unregister(name)


def _run(scheduler: Any, jobs: str = _DEEP, **given: Any) -> blklab.SimulationResult:
    blklab.schedulers.register("mine", scheduler)
    return simulate("hdd-7200", jobs, scheduler="mine", **given)


def test_it_is_simulated_and_repeats_to_the_bit() -> None:
    first, second = _run(Fifo), _run(Fifo)
    assert first.scheduler == "mine"
    assert first.jobs == second.jobs
    assert first.job("many").directions[0].ios > 100


def test_requests_and_queue_say_what_they_are() -> None:
    seen: list[Request] = []
    queues: list[Queue] = []

    class Looks(Fifo):
        def __init__(self, queue: Queue) -> None:
            super().__init__(queue)
            queues.append(queue)

        def completed(self, request: Request) -> None:
            seen.append(request)

    jobs = "[w]\nrw=write\nbs=64k\ndirect=1\nsize=1m\nprioclass=1\nprio=2\ncgroup=fast\n"
    _run(Looks, jobs, cgroups={"fast": {"io.bfq.weight": "300"}})
    assert [request.number for request in seen] == list(range(1, 17))
    assert {request.operation for request in seen} == {"write"}
    assert {(one.bytes, one.sync, one.ioprio_class, one.ioprio_level) for one in seen} == {
        (65536, True, "rt", 2)
    }
    assert {(one.group != 0, one.weight) for one in seen} == {(True, 300)}
    (queue,) = queues
    assert queue.rotational
    assert queue.device_depth == 32
    assert queue.now_ns > 0


def test_a_timer_lets_the_device_idle() -> None:
    class Late(Fifo):
        def insert(self, request: Request) -> None:
            super().insert(request)
            self.queue.timer_at(self.queue.now_ns + 5e6)
            self.until_ns = self.queue.now_ns + 5e6

        def dispatch(self) -> Request | None:
            return super().dispatch() if self.held and self.queue.now_ns >= self.until_ns else None

    jobs = "[one]\nrw=randread\ndirect=1\nsize=4m\nnumber_ios=20\n"
    late, soon = _run(Late, jobs), _run(Fifo, jobs)
    wait_ns = [run.job("one").directions[0].latency.sum_ns / 20 for run in (late, soon)]
    assert wait_ns[0] - wait_ns[1] > 4e6


def test_many_at_once_and_in_a_comparison() -> None:
    blklab.schedulers.register("mine", Fifo)
    requests = [
        plain_request("hdd-7200", _DEEP, scheduler=name, seed=seed)
        for name in ("mine", "mq-deadline")
        for seed in (1, 2)
    ]
    together = blklab.simulate_many(requests)
    alone = simulate("hdd-7200", _DEEP, scheduler="mine", seed=2)
    assert together[1].jobs == alone.jobs
    comparison = blklab.compare(
        "sim:hdd-7200",
        schedulers=["mq-deadline", "mine"],
        workloads=["random-read-4k-qd32"],
        runtime="500ms",
        blocks=3,
    )
    assert "mine" in str(comparison)


class _Twice(Fifo):
    def dispatch(self) -> Request | None:
        return self.held[0] if self.held else None


class _Divides(Fifo):
    def dispatch(self) -> Request | None:
        return self.held[1 // 0]


class _Invents(Fifo):
    def dispatch(self) -> Any:
        return "next"


class _Idles(Fifo):
    def dispatch(self) -> None:
        return None


class _Lacks:
    def __init__(self, queue: Queue) -> None:
        pass


@pytest.mark.parametrize(
    ("scheduler", "part", "cause"),
    [
        (_Twice, "dispatched request 1 twice", None),
        (_Divides, "ZeroDivisionError", ZeroDivisionError),
        (_Invents, "'next', not a request or None", TypeError),
        (_Idles, "no timer is set", None),
        (_Lacks, r"no method insert\(\)", SchedulerCodeError),
        (object, "takes no arguments", TypeError),
    ],
)
def test_what_breaks_a_rule_is_told_with_its_cause(
    scheduler: Any, part: str, cause: type[Exception] | None
) -> None:
    with pytest.raises(SchedulerCodeError, match=part) as raised:
        _run(scheduler)
    of_core = raised.value.__cause__
    assert of_core is not None
    assert type(of_core.__cause__) is (cause or type(None))


def test_an_interrupt_stays_one() -> None:
    class Interrupted(Fifo):
        def dispatch(self) -> Request | None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _run(Interrupted)


def test_names_that_cannot_be() -> None:
    for name in ("bfq", "Fifo", ""):
        with pytest.raises(UsageError, match="name"):
            schedulers.register(name, Fifo)
    with pytest.raises(UsageError, match="not a scheduler"):
        schedulers.register("mine", Fifo(Queue(rotational=True, nr_requests=1, device_depth=1)))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no scheduler 'mine'"):
        schedulers.unregister("mine")
    schedulers.register("mine", Fifo)
    assert schedulers.registered() == ["mine"]
    schedulers.unregister("mine")
    with pytest.raises(UnknownNameError, match="not simulated"):
        simulate("hdd-7200", _DEEP, scheduler="mine")
