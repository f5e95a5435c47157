"""Records loads, replays each under the scheduler that it was recorded under, and compares the two runs.

``python benches/replay_fidelity.py sim:nvme-tlc`` and ``uml:hdd-7200`` need no root. Simulations are recorded
from their timelines. A guest has no recorder, so a guest's runs are compared with replays, in a guest, of the
recording of the same load in the simulator. On a directory (as root) fio makes the load and blklab records.

Right is a replay whose throughput and mean latency are within 5 %, and whose p99 is within 15 %.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import blklab
from blklab.backends import backend_for
from blklab.backends.protocol import SessionOptions
from blklab.quantities.units import parse_duration_ns
from blklab.records.samples import JobSample, LatencyHistogram
from blklab.simulator.timeline import READ, WRITE
from blklab.spec.plan import Cell, CellKey
from blklab.spec.schedulers import parse_scheduler_choice
from blklab.spec.targets import parse_target
from blklab.spec.workloads import Workload, load_workload, parse_workload, shipped_workloads

LOADS = (
    "random-read-4k-qd1",
    "random-read-4k-qd32",
    "random-write-4k-qd1",
    "random-write-4k-qd32",
    "mixed-70-30",
    "many-readers",
    "ten-readers",
    "direct-sequential-write",
    "reader-beside-writers",
)
SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq")
_LIMITS = {"throughput": 0.05, "mean": 0.05, "p99": 0.15}
_BEGINS_S = 0.5
"""Time for the recorder to attach its programs."""
_RAMP = re.compile(r"^ramp_time=.*\n", re.MULTILINE)
"""A recording has it, the figures of a load do not."""


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

    def changes_to(self, replay: Figures) -> dict[str, float]:
        """How far a replay is from this run, relative to it."""
        return {name: getattr(replay, name) / getattr(self, name) - 1 for name in _LIMITS}


def main() -> None:
    """Prints a row for each load and scheduler, and how many are right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target")
    parser.add_argument("--loads", nargs="*", default=LOADS)
    parser.add_argument("--schedulers", nargs="*", default=SCHEDULERS)
    parser.add_argument("--runtime", default="50ms", help="of each load")
    options = parser.parse_args()
    right = rows = 0
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        for load, scheduler, run, replay in _pairs(options, Path(folder)):
            changes = run.changes_to(replay)
            good = all(abs(change) <= _LIMITS[name] for name, change in changes.items())
            right, rows = right + good, rows + 1
            told = "  ".join(f"{name} {change:+7.1%}" for name, change in changes.items())
            sys.stdout.write(f"{load:24} {scheduler:12} {told}  {'right' if good else 'off'}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{right} of {rows} right\n")


def _pairs(options: argparse.Namespace, folder: Path) -> Iterator[tuple[str, str, Figures, Figures]]:
    scheme, _, device = options.target.partition(":")
    for load in options.loads:
        text = _RAMP.sub("", shipped_workloads()[load].read_text())
        plain = parse_workload(text, name=load, source=load)
        for scheduler in options.schedulers:
            recording = folder / f"{load}-{scheduler}"
            if scheme in ("sim", "uml"):
                simulated = _record_simulation(recording, device, text, scheduler, options.runtime)
                again = load_workload(f"trace:{recording},scale-to=recorded")
            if scheme == "sim":
                run = Figures.of(simulated)
                replay = Figures.of(blklab.simulate(device, again.text, scheduler=scheduler).jobs)
            elif scheme == "uml":
                run = _measured(options.target, plain, scheduler, options.runtime)
                replay = _measured(options.target, again, scheduler, None)
            else:
                run = _measured(options.target, plain, scheduler, options.runtime, recording)
                replay = _measured(options.target, load_workload(f"trace:{recording}"), scheduler, None)
            yield load, scheduler, run, replay


def _record_simulation(
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


def _measured(
    target: str, workload: Workload, scheduler: str, runtime: str | None, recording: Path | None = None
) -> Figures:
    """Makes one run in a guest or on a disk, and records the disk meanwhile if a file is given."""
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
        with nullcontext() if recording is None else _recorded(target, recording):
            sample = session.run(Cell(key, choice, workload))
    if sample.status != "ok":
        raise SystemExit(sample.error)
    return Figures.of(sample.jobs)


@contextmanager
def _recorded(target: str, file: Path) -> Iterator[None]:
    command = [sys.executable, "-m", "blklab", "record", target, "--output", str(file)]
    recorder = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not file.exists():
        time.sleep(0.02)
    time.sleep(_BEGINS_S)
    yield
    recorder.send_signal(signal.SIGINT)
    recorder.wait()


if __name__ == "__main__":
    main()
