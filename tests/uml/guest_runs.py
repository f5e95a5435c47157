"""One run in a guest kernel, as tests ask for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from blklab.backends.protocol import Session, SessionOptions
from blklab.backends.sim import BACKEND as SIMULATOR
from blklab.backends.uml import BACKEND
from blklab.backends.uml_session import UmlSession
from blklab.guests.recorded_ios import RecordedIo
from blklab.records.samples import DirectionSample, RunSample
from blklab.spec.guest import GuestOptions
from blklab.spec.machines import Machine
from blklab.spec.plan import Cell, CellKey
from blklab.spec.schedulers import SchedulerChoice, parse_scheduler_choice
from blklab.spec.targets import parse_target
from blklab.spec.workloads import parse_workload


def measure(
    target: str,
    jobs: str,
    scheduler: str,
    *,
    queue: Mapping[str, str] | None = None,
    cgroups: Mapping[str, Mapping[str, str]] | None = None,
    guest: GuestOptions | None = None,
    machine: Machine | None = None,
    seed: int = 1,
    precondition: bool = False,
) -> RunSample:
    """Boots a guest for one run; it must not fail."""
    options = SessionOptions(
        run_id="test",
        queue=dict(queue or {}),
        cgroups={name: dict(settings) for name, settings in (cgroups or {}).items()},
        kernels=(parse_scheduler_choice(scheduler).kernel,),
        guest=guest or GuestOptions(),
        machine=machine,
        precondition=precondition,
        arrangement="fixed",
    )
    with _session(target, jobs, scheduler, options, seed) as (session, cell):
        sample = session.run(cell)
    assert sample.status == "ok", sample.error
    return sample


def simulate(target: str, jobs: str, scheduler: str, machine: Machine | None = None) -> RunSample:
    """The same run as of `measure` in the simulator; the target has no scheme."""
    options = SessionOptions(run_id="test", arrangement="fixed", machine=machine)
    cell = _cell(jobs, parse_scheduler_choice(scheduler), 1)
    with SIMULATOR.open(parse_target(f"sim:{target}"), options) as session:
        sample = session.run(cell)
    assert sample.status == "ok", sample.error
    return sample


def ios(sample: RunSample) -> int:
    """All I/Os of a run, syncs included."""
    return sum(direction.ios for job in sample.jobs for direction in job.directions)


def record(target: str, jobs: str, scheduler: str) -> tuple[RunSample, list[RecordedIo]]:
    """Boots a guest for one run, and records each I/O."""
    options = SessionOptions(run_id="test", kernels=(None,), arrangement="fixed")
    with _session(target, jobs, scheduler, options, 1) as (session, cell):
        assert isinstance(session, UmlSession)
        return session.run_recorded(cell)


@contextmanager
def _session(
    target: str, jobs: str, scheduler: str, options: SessionOptions, seed: int
) -> Iterator[tuple[Session, Cell]]:
    cell = _cell(jobs, parse_scheduler_choice(scheduler), seed)
    with BACKEND.open(parse_target(target), options) as session:
        session.check([cell.scheduler], [cell.workload])
        yield session, cell


def _cell(jobs: str, choice: SchedulerChoice, seed: int) -> Cell:
    workload = parse_workload(jobs, name="jobs", source="jobs.fio")
    key = CellKey(block=0, sequence=0, position=0, workload="jobs", scheduler=choice.label, seed=seed)
    return Cell(key, choice, workload)


def only(sample: RunSample) -> DirectionSample:
    """The result of the only job in its only direction."""
    (job,) = sample.jobs
    (direction,) = job.directions
    return direction


def rate(sample: RunSample, job: str) -> float:
    """I/Os of a job per second of the guest's time."""
    entry = next(entry for entry in sample.jobs if entry.name == job)
    return sum(direction.ios for direction in entry.directions) * 1e9 / entry.runtime_ns
