"""Counts what a scheduler did in a run on a disk of this machine, from a recording of the run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from blklab.analysis.behaviour import ServedRequests, behaviour_of
from blklab.errors import RunFailedError
from blklab.experiment.behaviours import BACKGROUND, FLUSHES
from blklab.linux.disks.resolution import resolve
from blklab.linux.recording.recorder import recording_of_a_moment
from blklab.linux.recording.request import recording_request
from blklab.recordings.kernel_threads import is_kernel_thread
from blklab.recordings.trace import NEVER, Trace, operation_names, read_trace
from blklab.records.behaviour import Behaviour
from blklab.records.samples import DiskDescription, TargetDescription
from blklab.simulator.timeline import SECTOR_BYTES
from blklab.spec.drive_classes import has_head
from blklab.spec.workloads import Workload

OTHERS = "(other programs)"
_LOAD_GENERATOR = "fio"


@contextmanager
def recorded(target: TargetDescription, file: Path) -> Iterator[None]:
    """Records meanwhile what reaches the target's disks.

    Raises:
        NotRootError: if root is missing.
        RequirementError: if this kernel cannot record.
    """
    disks = [leaf for disk in target.disks for leaf in resolve(f"/dev/{disk.name.replace('!', '/')}").leaves]
    with recording_of_a_moment(recording_request(target.target, disks, file, ())):
        yield


def behaviour_of_recording(
    file: Path, workload: Workload, scheduler: str, disks: list[DiskDescription]
) -> Behaviour:
    """The counters of a recorded run.

    Reading and writing tell jobs apart, since all are processes of one name: a job that reads and one that
    writes are two parties, and two that read are one.

    Raises:
        RunFailedError: if no I/O reached the disk.
    """
    trace = read_trace(file)
    ios = trace.ios
    served = (ios["issued_ns"] != NEVER) & (ios["completed_ns"] != NEVER) & (ios["merged_ns"] == NEVER)
    rows = np.flatnonzero(served)
    if not len(rows):
        raise RunFailedError("no I/O of the run reached the disk: what is read lies in the page cache")
    rows = rows[np.argsort(ios["completed_ns"][rows], kind="stable")]
    names, party = _parties(trace, workload, rows)
    arrived = np.minimum(ios["queued_ns"][rows], ios["issued_ns"][rows]).astype(np.float64)
    completed = ios["completed_ns"][rows].astype(np.float64)
    return behaviour_of(
        ServedRequests(
            names=names,
            party=party,
            arrived_ns=arrived - arrived.min(),
            dispatched_ns=ios["issued_ns"][rows].astype(np.float64) - arrived.min(),
            completed_ns=completed - arrived.min(),
            position_bytes=ios["sector"][rows].astype(np.float64) * SECTOR_BYTES,
            bytes=_with_merged(trace, rows),
            span_ns=int(completed.max() - arrived.min()),
            has_head=len(disks) == 1 and has_head(disks[0].name, rotational=disks[0].rotational),
        ),
        workload.name,
        scheduler,
        "recording",
    )


def job_parties(workload: Workload) -> tuple[str, str]:
    """The party that reads and the one that writes: a job's name, or the names of several."""
    readers = [job.name for job in workload.jobs if job.reads]
    writers = [job.name for job in workload.jobs if job.writes]
    return " and ".join(readers), " and ".join(writers)


def _parties(
    trace: Trace, workload: Workload, rows: NDArray[np.int64]
) -> tuple[list[str], NDArray[np.int64]]:
    readers, writers = job_parties(workload)
    names = list(dict.fromkeys(name for name in (readers, writers, BACKGROUND, FLUSHES, OTHERS) if name))
    codes = operation_names()
    commands = np.array([_owner(name) for name in trace.names])
    owner = commands[trace.ios["command"][rows]]
    operation = trace.ios["operation"][rows]
    reads, flushes = operation == codes.index("read"), operation == codes.index("flush")
    party = np.full(len(rows), names.index(OTHERS))
    party[owner == "kernel"] = names.index(BACKGROUND)
    own = owner == "load"
    party[own & reads] = names.index(readers or OTHERS)
    party[own & ~reads] = names.index(writers or OTHERS)
    party[flushes] = names.index(FLUSHES)
    return names, party.astype(np.int64)


def _owner(command: str) -> str:
    if command == _LOAD_GENERATOR:
        return "load"
    return "kernel" if is_kernel_thread(command) else "other"


def _with_merged(trace: Trace, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """The bytes of each request with those that were merged into it, which complete at the same moment."""
    ios = trace.ios
    total = ios["bytes"][rows].astype(np.float64)
    merged = np.flatnonzero((ios["merged_ns"] != NEVER) & (ios["completed_ns"] != NEVER))
    completed = ios["completed_ns"][rows]
    place = np.minimum(np.searchsorted(completed, ios["completed_ns"][merged]), len(rows) - 1)
    found = completed[place] == ios["completed_ns"][merged]
    np.add.at(total, place[found], ios["bytes"][merged[found]].astype(np.float64))
    return total
