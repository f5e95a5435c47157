"""Schedulers of your own, written in Python, for simulations in the same process.

    import blklab

    class Fifo:
        def __init__(self, queue):
            self.held = []

        def insert(self, request):
            self.held.append(request)

        def dispatch(self):
            return self.held.pop(0) if self.held else None

    blklab.schedulers.register("fifo", Fifo)
    blklab.compare("sim:hdd-7200", schedulers=["mq-deadline", "fifo"])

The same classes, written in JavaScript, run in the playground. docs/how-to/write-a-scheduler.md has more.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from blklab import _core
from blklab.errors import UsageError
from blklab.simulator.core import core_error
from blklab.spec.arguments import checked, text_of

_OPTIONAL = ("completed", "timer")


@dataclass(frozen=True, slots=True)
class Request:
    """A request that a scheduler holds."""

    number: int
    """Counts the requests of a disk, from 1."""
    sector: int
    """First sector, of 512 bytes."""
    bytes: int
    operation: Literal["read", "write", "flush", "discard"]
    sync: bool
    """Somebody waits for it: reads, direct writes, fsync."""
    task: int
    """Index of the task on whose behalf it was submitted."""
    ioprio_class: Literal["rt", "be", "idle"]
    ioprio_level: int
    """0 (best) to 7."""
    group: int
    """Index of the control group; 0 is the root."""
    weight: int
    """The group's ``io.bfq.weight``."""


@dataclass(slots=True)
class Queue:
    """The request queue of a disk, as its scheduler sees it."""

    rotational: bool
    nr_requests: int
    device_depth: int
    """Commands that the device takes at once."""
    now_ns: int = 0
    """The simulated time."""
    _timer_ns: int = 0

    def timer_at(self, time_ns: float) -> None:
        """Asks for a call of ``timer()`` at a time; then the queue dispatches. The last call counts."""
        self._timer_ns = max(1, round(time_ns))


class Scheduler(Protocol):
    """A scheduler; it may also have ``completed(request)`` and ``timer()``."""

    def insert(self, request: Request, /) -> None:
        """Takes a request."""

    def dispatch(self) -> Request | None:
        """Gives the next request for the device and forgets it; None if none is to go now."""


@checked
def register(name: str, scheduler: Callable[[Queue], Scheduler], *, summary: str = "") -> None:
    """Adds a scheduler to the simulator under a name, or replaces one that was added before.

    Simulations of this process know it from then on, those of `simulate` and of `compare` on ``sim:``
    targets. Its methods need the interpreter's lock, so several simulations at a time take turns. Results
    repeat to the bit as long as the scheduler draws no random numbers without a seed.

    Args:
        name: Small letters, digits, ``-`` and ``_``.
        scheduler: A class, or a function that returns a scheduler for a disk's queue.
        summary: One line; by default the first of the class's docstring.

    Raises:
        UsageError: for a name that is none, or that the simulator has.
    """
    if not callable(scheduler):
        raise UsageError(
            f"{scheduler!r} is not a scheduler", hint="give a class, or a function that takes a queue"
        )
    text_of("name", name, "'mine'")
    text = summary or (inspect.getdoc(scheduler) or name).splitlines()[0]

    def begin(rotational: bool, nr_requests: int, device_depth: int) -> RunningScheduler:
        queue = Queue(rotational, nr_requests, device_depth)
        return RunningScheduler(name, queue, scheduler(queue))

    try:
        _core.register_scheduler(name, text, begin)
    except _core.SimulationError as error:
        raise UsageError(error.message) from None


@checked
def unregister(name: str) -> None:
    """Removes a scheduler that was registered.

    Raises:
        UsageError: if there is none of that name.
    """
    if not _core.unregister_scheduler(text_of("name", name, "'mine'")):
        known = ", ".join(_core.registered_schedulers()) or "none"
        raise UsageError(f"no scheduler {name!r} was registered", hint=f"registered: {known}")


def registered() -> list[str]:
    """Names of the registered schedulers, in order of registration."""
    return _core.registered_schedulers()


class RunningScheduler:
    """One disk's scheduler, as the compiled core calls it: by numbers, of which 0 stands for None.

    Raises:
        SchedulerCodeError: if the scheduler lacks a method.
    """

    def __init__(self, name: str, queue: Queue, scheduler: Scheduler) -> None:
        for method in ("insert", "dispatch"):
            if not callable(getattr(scheduler, method, None)):
                raise core_error({"kind": "scheduler", "message": f"{name} has no method {method}()"})
        self._name = name
        self._queue = queue
        self._scheduler = scheduler
        self._requests: dict[int, Request] = {}
        self._completed, self._timer = (getattr(scheduler, method, None) for method in _OPTIONAL)

    def insert(
        self,
        now_ns: int,
        number: int,
        sector: int,
        bytes_: int,
        operation: Literal["read", "write", "flush", "discard"],
        sync: bool,
        task: int,
        ioprio_class: Literal["rt", "be", "idle"],
        ioprio_level: int,
        group: int,
        weight: int,
    ) -> int:
        """Hands over a request."""
        self._queue.now_ns = now_ns
        request = Request(
            number, sector, bytes_, operation, sync, task, ioprio_class, ioprio_level, group, weight
        )
        self._requests[number] = request
        self._scheduler.insert(request)
        return 0

    def dispatch(self, now_ns: int) -> int:
        """Returns the number of the request that is to go.

        Raises:
            TypeError: if the scheduler's answer is no request.
        """
        self._queue.now_ns = now_ns
        request = self._scheduler.dispatch()
        if request is None:
            return 0
        if not isinstance(request, Request):
            raise TypeError(f"{self._name}: dispatch() returned {request!r}, not a request or None")
        return request.number

    def completed(self, now_ns: int, number: int) -> int:
        """Tells that a request is done."""
        self._queue.now_ns = now_ns
        request = self._requests.pop(number)
        if self._completed:
            self._completed(request)
        return 0

    def timer(self, now_ns: int) -> int:
        """Tells that the time of the timer has come."""
        self._queue.now_ns = now_ns
        if self._timer:
            self._timer()
        return 0

    def take_timer_ns(self) -> int:
        """Returns the time for which the scheduler asked for a timer since the last call."""
        time_ns, self._queue._timer_ns = self._queue._timer_ns, 0
        return time_ns

    def copy(self) -> RunningScheduler:
        """Copies scheduler, queue and requests with each other, for a snapshot."""
        return copy.deepcopy(self)
