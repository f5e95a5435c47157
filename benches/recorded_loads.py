"""Loads, recordings of them, and the figures of a run, for the programs about replays.

Simulations are recorded from their timelines, guests by their own program, disks by ``blklab record`` (root).
A recording has all that reaches the disk, and so has its replay: nothing else may use the disk meanwhile.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

import blklab
from blklab.backends import backend_for
from blklab.backends.protocol import Session, SessionOptions
from blklab.backends.uml_session import UmlSession
from blklab.errors import ExitCode
from blklab.linux.load.command import SHELL
from blklab.recordings.trace import NEVER, Trace, operation_names, read_trace
from blklab.simulator.timeline import READ, SECTOR_BYTES, WRITE, Timeline
from blklab.spec.commands import Command
from blklab.spec.plan import Cell, CellKey
from blklab.spec.schedulers import parse_scheduler_choice
from blklab.spec.targets import ModelTarget, parse_target
from blklab.spec.workloads import Workload, load_workload, parse_workload, shipped_workloads

SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq")
_BEGINS_S = 0.5
"""Time for the recorder to attach its programs."""
_MOST_LOST = 0.01
"""Events that the kernel did not show the recorder, of those that it has; a run with more is repeated."""
_MOST_ATTEMPTS = 5
_REPLAYS = "blkguest"
_FIO = "fio"
_RAMP = re.compile(r"^ramp_time=.*\n", re.MULTILINE)
"""A recording has it, the figures of a load do not."""
_RUNTIME = re.compile(r"^runtime=.*$", re.MULTILINE)

_FORK = 0

Counted = Literal["all", "jobs"]
"""Tasks with I/O that counts: all, or fio's jobs without what starts them."""

Column = NDArray[Any]
FIGURES = ("throughput", "mean", "p99")
_DATA = [number for number, name in enumerate(operation_names()) if name in {"read", "write"}]
"""Operations that count: replays leave discards out."""


@dataclass(frozen=True)
class Figures:
    """The outcome of one run."""

    throughput: float
    """Bytes for each nanosecond, all jobs together."""
    mean: float
    p99: float

    @staticmethod
    def of_recording(trace: Trace, workload: Workload, of: Counted = "all") -> Figures:
        """The figures of data that a recording saw read or written, from queueing to completion.

        Args:
            trace: The recording.
            workload: What ran: a load, a command, or a replay. Of a replay only the tasks that replay count:
                they stand for all that was recorded, and the start of the replay is its own.
            of: The tasks that count.
        """
        ios = trace.ios
        whole = (ios["bytes"] > 0) & (ios["queued_ns"] != NEVER) & (ios["completed_ns"] != NEVER)
        whole &= np.isin(ios["operation"], _DATA)
        if workload.replays:
            replaying = _children_of(trace, _REPLAYS)
            if of == "jobs":
                sections = [job.name for job in workload.jobs for _ in range(job.numjobs)]
                if len(sections) != len(replaying):
                    raise SystemExit(f"{len(replaying)} tasks replay, and not {len(sections)}")
                replaying = replaying[[name.startswith(_FIO) for name in sections]]
            whole &= np.isin(ios["tid"], replaying)
        elif of == "jobs":
            whole &= np.isin(ios["tid"], _children_of(trace, _FIO))
        if not whole.any():
            raise SystemExit(f"no I/O of {workload.name} was recorded")
        return Figures._of_ios(ios["bytes"][whole], ios["queued_ns"][whole], ios["completed_ns"][whole])

    @staticmethod
    def typical(runs: Sequence[Figures]) -> Figures:
        """Geometric means over runs."""
        return Figures(*(geometric_mean(getattr(run, name) for run in runs) for name in FIGURES))

    @staticmethod
    def of_timeline(timeline: Timeline | None) -> Figures:
        """The same figures of a simulation.

        They are not those of its jobs: a program that has room for more I/Os queues them before it collects
        those that are done, and has them later than the disk. A recording does not tell when.
        """
        rows = [(queued_ns, row) for queued_ns, row in _queued(timeline) if row["operation"] in (READ, WRITE)]
        sectors = np.array([row["sectors"] for _, row in rows], dtype=np.uint64)
        queued_ns = np.array([queued_ns for queued_ns, _ in rows], dtype=np.uint64)
        completed_ns = np.array([row["complete_ns"] for _, row in rows], dtype=np.uint64)
        return Figures._of_ios(sectors * SECTOR_BYTES, queued_ns, completed_ns)

    @staticmethod
    def _of_ios(moved: Column, queued_ns: Column, completed_ns: Column) -> Figures:
        latency_ns = (completed_ns - queued_ns).astype(float)
        return Figures(
            float(moved.sum()) / float(completed_ns.max() - queued_ns.min()),
            float(latency_ns.mean()),
            float(np.percentile(latency_ns, 99)),
        )

    def changes_to(self, replay: Figures) -> dict[str, float]:
        """How far a replay is from this run, relative to it."""
        return {name: getattr(replay, name) / getattr(self, name) - 1 for name in FIGURES}


def _children_of(trace: Trace, command: str) -> Column:
    """The threads that a program with that name has forked, in that order."""
    tasks = trace.tasks
    named = np.array([name == command for name in trace.names])
    return tasks["tid"][(tasks["kind"] == _FORK) & named[tasks["command"]]]


def is_model(target: str) -> bool:
    """Whether a target is simulated or a guest, and not a disk."""
    return isinstance(parse_target(target), ModelTarget)


def load_without_ramp(name: str, runtime: str) -> Workload:
    """A shipped workload, all of which counts, for so long; a command as it is."""
    if name not in shipped_workloads():
        return load_workload(name)
    text = _RUNTIME.sub(f"runtime={runtime}", _RAMP.sub("", shipped_workloads()[name].read_text()))
    return parse_workload(text, name=name, source=name)


def record_simulation(path: Path, device: str, text: str, scheduler: str) -> Figures:
    """Simulates a load and writes what it queued as blkparse would print it.

    Returns:
        The run's figures.
    """
    result = blklab.simulate(
        device, text, scheduler=scheduler, costs="zero-cpu-time", arrangement="fixed", timeline=True
    )
    names = [job.name for job in result.jobs]
    _write(
        path,
        (
            Io(
                names[row["job"]],
                int(row["task"]),
                row["operation"] == WRITE,
                int(row["sector"]),
                int(row["sectors"]),
                queued_ns,
                None,
                int(row["complete_ns"]),
            )
            for queued_ns, row in _queued(result.timeline)
            if row["operation"] in (READ, WRITE)
        ),
    )
    return Figures.of_timeline(result.timeline)


class Io(NamedTuple):
    """A recorded read or write."""

    job: str
    task: int
    is_write: bool
    sector: int
    sectors: int
    queued_ns: int
    submitted_ns: int | None
    """When it had a tag, and its task could go on; None if that is not known, as in timelines."""
    completed_ns: int


def _write(path: Path, ios: Iterable[Io]) -> None:
    """Writes I/Os, each task's in its order, as blkparse would print them."""
    events: list[tuple[int, int, int, str, str]] = []
    for io in ios:
        place = f"{'WS' if io.is_write else 'R'} {io.sector} + {io.sectors}"
        events.append((io.queued_ns, 1, io.task, "Q", f"{place} [{io.job}]"))
        if io.submitted_ns is not None:
            events.append((io.submitted_ns, 2, io.task, "I", f"{place} [{io.job}]"))
        events.append((io.completed_ns, 0, io.task, "C", f"{place} [0]"))
    # Of one moment, completions come first, then tasks in the order in which they start.
    events.sort(key=lambda event: event[:3])
    lines = [
        f"  8,0    0  {number}  {at_ns // 10**9}.{at_ns % 10**9:09d}  {1000 + task}  {action}  {rest}\n"
        for number, (at_ns, _, task, action, rest) in enumerate(events)
    ]
    path.write_text("".join(lines))


def _queued(timeline: Timeline | None) -> Iterator[tuple[int, np.void]]:
    """Requests with the time at which the kernel would have traced their queueing, in its order.

    A request arrives in the timeline once it has a tag; the kernel traces it before. A task issues one after
    another.
    """
    if timeline is None:
        raise SystemExit("the simulation has no timeline")
    requests, ios = timeline.requests, timeline.ios
    for task in np.unique(requests["task"]):
        own = requests[requests["task"] == task]
        own = own[np.lexsort((own["in_flight"], own["dispatch_ns"], own["arrive_ns"]))]
        starts = np.sort(ios["start_ns"][ios["task"] == task])
        # An I/O that takes several requests has a start, and they have not.
        queued = starts if len(starts) == len(own) else own["arrive_ns"]
        yield from zip(map(int, queued), own, strict=True)


@contextmanager
def runs_on(
    target: str,
    workloads: Sequence[Workload],
    scheduler: str,
    of: Counted = "all",
    *,
    allow_writes: bool = False,
) -> Iterator[Callable[[Workload, Path], Figures]]:
    """Makes a function that runs one of the workloads on a disk and records the disk meanwhile.

    A run has the figures of its recording, so that programs and loads have the same. Of a command no set-up
    is recorded. Commands run once before: the first run may find other files than it leaves.
    """
    with _session(target, workloads, scheduler, allow_writes=allow_writes) as (session, cell_of):

        def measured_run(workload: Workload, recording: Path) -> Figures:
            for _ in range(_MOST_ATTEMPTS):
                _make_room(recording)
                if workload.command is None:
                    with _recorded(target, recording):
                        sample = session.run(cell_of(workload))
                else:
                    command = _recording_itself(workload.command, target, recording)
                    sample = session.run(cell_of(workload.model_copy(update={"command": command})))
                if sample.status != "ok":
                    raise SystemExit(sample.error)
                trace = read_trace(recording)
                if trace.tally.lost <= _MOST_LOST * trace.tally.ios:
                    return Figures.of_recording(trace, workload, of)
            raise SystemExit(f"each of {_MOST_ATTEMPTS} recordings of {workload.name} lacks many events")

        for workload in workloads:
            if workload.command is not None:
                session.run(cell_of(workload))
        yield measured_run


def record_guest(path: Path, target: str, workload: Workload, scheduler: str) -> Figures:
    """Makes one run in a guest and writes what it queued as blkparse would print it.

    Returns:
        The run's figures, from the queueing of an I/O to its completion by the disk.
    """
    with _session(target, [workload], scheduler) as (session, cell_of):
        if not isinstance(session, UmlSession):
            raise SystemExit(f"{target} is no guest")
        sample, ios = session.run_recorded(cell_of(workload))
    names = [job.name for job in sample.jobs]
    _write(
        path,
        (
            Io(
                names[io.job],
                io.process,
                io.is_write,
                io.offset // SECTOR_BYTES,
                io.bytes // SECTOR_BYTES,
                io.queued_ns,
                io.submitted_ns,
                io.completed_ns,
            )
            for io in ios
        ),
    )
    columns = [(io.bytes, io.queued_ns, io.completed_ns) for io in ios]
    return Figures._of_ios(*np.array(columns, dtype=np.uint64).T)


@contextmanager
def _session(
    target: str, workloads: Sequence[Workload], scheduler: str, *, allow_writes: bool = False
) -> Iterator[tuple[Session, Callable[[Workload], Cell]]]:
    """A session in which the workloads have their files, and the cell of each of them."""
    choice = parse_scheduler_choice(scheduler)
    parsed = parse_target(target)
    options = SessionOptions(
        run_id=f"fidelity-{os.getpid()}", kernels=(None,), arrangement="fixed", allow_writes=allow_writes
    )

    def cell_of(workload: Workload) -> Cell:
        key = CellKey(block=0, sequence=0, position=0, workload=workload.name, scheduler=choice.label, seed=1)
        return Cell(key, choice, workload)

    with backend_for(parsed).open(parsed, options) as session:
        session.check([choice], workloads)
        session.prepare(workloads, lambda _: None)
        yield session, cell_of


def _recording_itself(command: Command, target: str, file: Path) -> Command:
    """The command, recorded from its start to its end; fails if the command does."""
    recording = shlex.join([*_recorder(target, file), "--", SHELL, "-c", command.run])
    # A run that only warms the page cache may come first. Lost events are no failure: the file counts them.
    line = f"rm -f {shlex.quote(str(file))}; {recording} || [ $? -eq {ExitCode.PARTIAL.value} ]"
    return command.model_copy(update={"run": line})


def _recorder(target: str, file: Path) -> list[str]:
    return [sys.executable, "-m", "blklab", "record", target, "--output", str(file)]


def _make_room(file: Path) -> None:
    """Removes an earlier recording, and writes back what was laid out, so that the next does not have it."""
    file.unlink(missing_ok=True)
    os.sync()


@contextmanager
def _recorded(target: str, file: Path) -> Iterator[None]:
    """Records the disk beneath a directory meanwhile; needs root."""
    command = _recorder(target, file)
    recorder = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while not file.exists():
        if recorder.poll() is not None:
            raise SystemExit(recorder.communicate()[1])
        time.sleep(0.02)
    time.sleep(_BEGINS_S)
    try:
        yield
    finally:
        recorder.terminate()  # shells have commands in the background ignore SIGINT
        recorder.communicate()
