"""Runs a torture: many seeds on each scheduler, several guests at once, until one shows a mistake."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Protocol, get_args

from blklab.backends.workers import THIS_MACHINE, GuestRuns, Workers
from blklab.errors import RequirementError, RunFailedError, UsageError
from blklab.guests.boot import Boot
from blklab.guests.guest import GuestImage, GuestResult
from blklab.guests.kernels.kernel_build import KernelBuild
from blklab.guests.kernels.store import find
from blklab.labs.torture.document import FaultKind, MistakePart, SchedulerPart, TortureDocument
from blklab.labs.torture.faults import FAULT_OPTION, NO_FAULTS, Faults, draw_faults
from blklab.labs.torture.seeds import SEEDS, draw_load
from blklab.linux.machine.requirements import require_linux
from blklab.shipped import require_guest_program
from blklab.simulator.core import core_error

MEMORY_BYTES = 192 << 20
"""Of a guest: the disk's contents, and what KASAN keeps about them."""
BOUND_NS = 60_000_000_000
"""Longest time for which an I/O may wait."""
BOUND_WITH_TIMEOUTS_NS = 300_000_000_000
"""The same where requests time out, after 30 s each, and a write with flushes has several."""
IDLE_BOUNDS_NS = {"kyber": 2_000_000}
"""Longest time for which a scheduler may leave a disk idle while it holds requests, under bursts. kyber never
has a reason to."""
USUAL_IDLE_BOUND_NS = 100_000_000
"""Of bfq, which waits for a process's next request (``slice_idle``), of mq-deadline, except after its
expiries were lowered (``torture/excuse.rs`` of the guest program), of schedulers that nobody knows, and of
each under long loads."""
NO_IDLE_BOUND_NS = (1 << 63) - 1
"""Where the disk hands requests back: then an idle disk is nobody's mistake."""
CHECKS = {
    "CONFIG_PROVE_LOCKING": "lockdep",
    "CONFIG_KASAN": "KASAN",
    "CONFIG_DEBUG_OBJECTS": "objects",
    "CONFIG_DEBUG_LIST": "lists",
    "CONFIG_DEBUG_ATOMIC_SLEEP": "atomic sleep",
    FAULT_OPTION: "fault injection",
}
"""Options of a kernel that notices its own mistakes, and their names."""
_KINDS: frozenset[str] = frozenset(get_args(FaultKind))


@dataclass(frozen=True)
class TortureRequest:
    """A kernel to torture, and how much."""

    kernel: str
    schedulers: Sequence[str] = ()
    """None for all that the kernel offers, except none."""
    first_seed: int = 1
    seeds: int = SEEDS
    duration_ns: int = 1_000_000_000
    keep_going: bool = False
    """Go on after a mistake."""


class TortureObserver(Protocol):
    """Is told of the progress."""

    def ended(self, scheduler: str, seed: int, done: int, total: int, mistakes: int) -> None:
        """A seed's run has ended."""


class SilentTortureObserver:
    """Tells nobody."""

    def ended(self, scheduler: str, seed: int, done: int, total: int, mistakes: int) -> None:
        """Does nothing."""


@dataclass(frozen=True)
class _Ended:
    scheduler: str
    seed: int
    counts: dict[str, int] | None
    mistake: MistakePart | None


def torture(
    request: TortureRequest, observer: TortureObserver | None = None, workers: Workers = THIS_MACHINE
) -> TortureDocument:
    """Tortures a kernel's schedulers.

    Raises:
        UsageError: for a number of seeds below 1.
        UnknownNameError: if there is no such kernel.
        RequirementError: if the kernel or this machine lacks something.
        RunFailedError: if a guest cannot be prepared.
    """
    require_linux("running guest kernels")
    if request.seeds < 1:
        raise UsageError(f"a torture needs one seed at least, not {request.seeds}")
    watcher = observer or SilentTortureObserver()
    kernel = find(request.kernel)
    if not kernel.has_time_travel:
        raise RequirementError(
            f"the kernel {kernel.name} ({kernel.version}) has no virtual time, so a seed would not repeat",
            hint="sources from Linux 5.2 on have it, and 4.19 with blklab's instruments",
        )
    schedulers = tuple(request.schedulers) or tuple(name for name in kernel.schedulers if name != "none")
    for scheduler in schedulers:
        kernel.require_scheduler(scheduler)
    ended: list[_Ended] = []
    total = request.seeds * len(schedulers)
    with kernel.in_use(), workers.guests(Boot(MEMORY_BYTES, virtual_time=True)) as guests:
        try:
            for end in _runs(request, kernel, schedulers, guests):
                ended.append(end)
                mistakes = sum(1 for one in ended if one.mistake is not None)
                watcher.ended(end.scheduler, end.seed, len(ended), total, mistakes)
                if mistakes and not request.keep_going:
                    break
        finally:
            guests.stop()
    return _document(request, kernel, schedulers, ended)


def _runs(
    request: TortureRequest, kernel: KernelBuild, schedulers: Sequence[str], guests: GuestRuns
) -> Iterator[_Ended]:
    """The runs in their order, seed by seed on each scheduler, whichever guest ends first.

    So the first mistake is the one of the lowest seed, and what is counted until then is always the same.
    """
    seeds = range(request.first_seed, request.first_seed + request.seeds)
    waiting = iter([(scheduler, seed) for seed in seeds for scheduler in schedulers])
    with ThreadPoolExecutor(guests.parallel) as pool:
        begun: deque[Future[_Ended]] = deque()

        def keep_busy() -> None:
            running = sum(not future.done() for future in begun)
            for following in islice(waiting, guests.parallel - running):
                begun.append(pool.submit(_run, request, kernel, guests, *following))

        keep_busy()
        try:
            while begun:
                wait([future for future in begun if not future.done()], return_when=FIRST_COMPLETED)
                keep_busy()
                while begun and begun[0].done():
                    yield begun.popleft().result()
        finally:
            guests.stop()


def _run(
    request: TortureRequest, kernel: KernelBuild, guests: GuestRuns, scheduler: str, seed: int
) -> _Ended:
    faults = draw_faults(seed) if FAULT_OPTION in kernel.config else NO_FAULTS
    image = _image(kernel, faults)
    asked = {
        "seed": seed,
        "scheduler": scheduler,
        # Requests that time out take as long as a long load.
        "load": draw_load(seed) if faults.timeout_every is None else "mixed",
        "duration_ns": request.duration_ns,
        "bound_ns": BOUND_NS if faults.timeout_every is None else BOUND_WITH_TIMEOUTS_NS,
        "idle_bound_ns": (
            IDLE_BOUNDS_NS.get(scheduler, USUAL_IDLE_BOUND_NS) if faults == NO_FAULTS else NO_IDLE_BOUND_NS
        ),
        "timeouts": faults.timeout_every is not None,
    }
    result = guests.run(image, {"torture": asked}, {})
    mistake = _mistake_of(result)
    if mistake is not None:
        kind, message = mistake
        return _Ended(
            scheduler, seed, None, MistakePart(scheduler=scheduler, seed=seed, kind=kind, message=message)
        )
    answer = result.answer or {}
    return _Ended(scheduler, seed, answer["torture"]["counts"], None)


def _image(kernel: KernelBuild, faults: Faults) -> GuestImage:
    image = GuestImage(kernel.linux, kernel.build_id, require_guest_program(), {}, kernel.boot_parameters)
    # A kernel that goes on after an oops would only hang.
    return replace(image, parameters=(*image.parameters, "oops=panic", *faults.parameters()))


def _mistake_of(result: GuestResult) -> tuple[FaultKind, str] | None:
    """The mistake that a run shows, or None.

    Raises:
        BlklabError: if the guest could not be prepared, which is no mistake of the scheduler.
    """
    if result.answer is None:
        error = result.error or "the guest gave no answer"
        return ("hang" if "hangs" in error.splitlines()[0] else "crash"), error
    refused: dict[str, Any] | None = result.answer.get("error")
    if refused is None:
        return None
    kind = refused.get("kind")
    if kind in _KINDS:
        return kind, str(refused.get("message"))
    if kind == "died":
        return "crash", str(refused.get("message"))
    why = core_error(refused)
    if isinstance(why, RunFailedError):
        raise RunFailedError(f"the torture could not be prepared: {why.message}", hint=why.hint)
    raise why


def _document(
    request: TortureRequest, kernel: KernelBuild, schedulers: Sequence[str], ended: Sequence[_Ended]
) -> TortureDocument:
    parts = []
    for scheduler in schedulers:
        own = sorted((end for end in ended if end.scheduler == scheduler), key=lambda end: end.seed)
        counts = [end.counts for end in own if end.counts is not None]
        digest = hashlib.sha256(repr([count["digest"] for count in counts]).encode()).hexdigest()[:16]
        parts.append(
            SchedulerPart(
                scheduler=scheduler,
                seeds=len(own),
                ios=sum(count[name] for count in counts for name in ("reads", "writes", "syncs")),
                switches=sum(count["switches"] for count in counts),
                failed_ios=sum(count["failed"] for count in counts),
                longest_idle_ns=max((count["longest_idle_ns"] for count in counts), default=0),
                digest=digest,
            )
        )
    return TortureDocument(
        version=kernel.version,
        build=kernel.build_id,
        patches=[f"{patch.name} {patch.sha256}" for patch in kernel.record.patches],
        checks=[name for option, name in CHECKS.items() if option in kernel.config],
        first_seed=request.first_seed,
        seeds=request.seeds,
        schedulers=parts,
        mistakes=sorted(
            (end.mistake for end in ended if end.mistake is not None),
            key=lambda mistake: (mistake.seed, mistake.scheduler),
        ),
    )
