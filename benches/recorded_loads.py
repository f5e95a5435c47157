"""What the programs about replays share: loads, recordings of them, and the figures of a run.

Simulations are recorded from their timelines, disks by ``blklab record`` (root).
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import blklab
from blklab.backends import backend_for
from blklab.backends.protocol import SessionOptions
from blklab.quantities.units import parse_duration_ns
from blklab.recordings.trace import NEVER, read_trace
from blklab.records.samples import JobSample, LatencyHistogram
from blklab.simulator.timeline import READ, WRITE
from blklab.spec.plan import Cell, CellKey
from blklab.spec.schedulers import parse_scheduler_choice
from blklab.spec.targets import ModelTarget, parse_target
from blklab.spec.workloads import Workload, load_workload, parse_workload, shipped_workloads

SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq")
_BEGINS_S = 0.5
"""Time for the recorder to attach its programs."""
_RAMP = re.compile(r"^ramp_time=.*\n", re.MULTILINE)
"""A recording has it, the figures of a load do not."""


FIGURES = ("throughput", "mean", "p99")


@dataclass(frozen=True)
class Figures:
    """The outcome of one run."""

    throughput: float
    """Bytes for each nanosecond, all jobs together."""
    mean: float
    p99: float

    @staticmethod
    def of(jobs: Sequence[JobSample]) -> Figures:
        """The figures of a run's jobs."""
        data = [direction for job in jobs for direction in job.data_directions()]
        latency = LatencyHistogram.merged(direction.latency for direction in data)
        moved = sum(direction.bytes for direction in data)
        return Figures(
            moved / max(job.runtime_ns for job in jobs),
            latency.mean_ns or 0,
            latency.percentile_ns(0.99) or 0,
        )

    @staticmethod
    def of_recording(file: Path) -> Figures:
        """The figures of all data that a recording saw move, from queueing to completion."""
        ios = read_trace(file).ios
        whole = (ios["bytes"] > 0) & (ios["queued_ns"] != NEVER) & (ios["completed_ns"] != NEVER)
        queued_ns, completed_ns = ios["queued_ns"][whole], ios["completed_ns"][whole]
        if not len(queued_ns):
            raise SystemExit(f"{file} has no I/O")
        latency_ns = (completed_ns - queued_ns).astype(float)
        return Figures(
            float(ios["bytes"][whole].sum()) / float(completed_ns.max() - queued_ns.min()),
            float(latency_ns.mean()),
            float(np.percentile(latency_ns, 99)),
        )

    def changes_to(self, replay: Figures) -> dict[str, float]:
        """How far a replay is from this run, relative to it."""
        return {name: getattr(replay, name) / getattr(self, name) - 1 for name in FIGURES}


def is_model(target: str) -> bool:
    """Whether a target is simulated or a guest, and not a disk."""
    return isinstance(parse_target(target), ModelTarget)


def load_without_ramp(name: str) -> Workload:
    """A shipped workload, all of which counts; a command is as it is."""
    if name not in shipped_workloads():
        return load_workload(name)
    return parse_workload(_RAMP.sub("", shipped_workloads()[name].read_text()), name=name, source=name)


def record_simulation(
    path: Path, device: str, text: str, scheduler: str, runtime: str
) -> Sequence[JobSample]:
    """Simulates a load and writes what it queued as blkparse would print it."""
    result = blklab.simulate(device, text, scheduler=scheduler, runtime=runtime, timeline=True)
    if result.timeline is None:
        raise SystemExit("the simulation has no timeline")
    names = [job.name for job in result.timeline.run.jobs]
    events = []
    for row in result.timeline.requests:
        if row["operation"] in (READ, WRITE):
            place = f"{'R' if row['operation'] == READ else 'WS'} {row['sector']} + {row['sectors']}"
            events.append((int(row["arrive_ns"]), 1, int(row["task"]), "Q", f"{place} [{names[row['job']]}]"))
            events.append((int(row["complete_ns"]), 0, int(row["task"]), "C", f"{place} [0]"))
    lines = [
        f"  8,0    0  {number}  {at_ns // 10**9}.{at_ns % 10**9:09d}  {1000 + task}  {action}  {rest}\n"
        for number, (at_ns, _, task, action, rest) in enumerate(sorted(events))
    ]
    path.write_text("".join(lines))
    return result.jobs


def measured(
    target: str, workload: Workload, scheduler: str, runtime: str | None, recording: Path | None = None
) -> Figures:
    """Makes one run in a guest or on a disk, and records the disk meanwhile if a file is given.

    A recorded run has the figures of its recording, so that programs and loads have the same.
    """
    choice = parse_scheduler_choice(scheduler)
    key = CellKey(block=0, sequence=0, position=0, workload=workload.name, scheduler=choice.label, seed=1)
    runtime_ns = None if runtime is None else parse_duration_ns(runtime)
    parsed = parse_target(target)
    options = SessionOptions(
        run_id=f"fidelity-{os.getpid()}", kernels=(None,), arrangement="fixed", runtime_ns=runtime_ns
    )
    with backend_for(parsed).open(parsed, options) as session:
        session.check([choice], [workload])
        session.prepare([workload], lambda _: None)
        with nullcontext() if recording is None else recorded(target, recording):
            sample = session.run(Cell(key, choice, workload))
    if sample.status != "ok":
        raise SystemExit(sample.error)
    return Figures.of(sample.jobs) if recording is None else Figures.of_recording(recording)


@contextmanager
def recorded(target: str, file: Path) -> Iterator[None]:
    """Records the disk beneath a directory meanwhile; needs root."""
    file.unlink(missing_ok=True)
    # Files that were laid out are written back before, and are no part of the recording.
    os.sync()
    command = [sys.executable, "-m", "blklab", "record", target, "--output", str(file)]
    recorder = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while not file.exists():
        if recorder.poll() is not None:
            raise SystemExit(recorder.communicate()[1])
        time.sleep(0.02)
    time.sleep(_BEGINS_S)
    try:
        yield
    finally:
        recorder.send_signal(signal.SIGINT)
        recorder.communicate()
