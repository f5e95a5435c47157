"""Counters from a recording: parties by what jobs do, merged I/Os, and the head."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from blklab.errors import RunFailedError
from blklab.experiment import recorded_runs
from blklab.experiment.behaviours import BACKGROUND, FLUSHES
from blklab.experiment.recorded_runs import OTHERS, behaviour_of_recording, job_parties
from blklab.recordings.trace import IO_COLUMNS, NEVER, operation_names
from blklab.records.samples import DiskDescription
from blklab.spec.workloads import Workload, parse_workload

DISK = [DiskDescription(name="sda", rotational=True)]
NAMES = ["fio", "kworker/u8:1", "cat"]


def _trace(rows: list[tuple[str, str, int, int, int, int, int]]) -> SimpleNamespace:
    """I/Os: command, operation, queued, issued, completed, place, bytes; issued 0 for merged ones."""
    ios = {name: np.zeros(len(rows), dtype) for name, dtype in IO_COLUMNS.items()}
    ios["merged_ns"][:] = NEVER
    for number, (command, operation, queued, issued, completed, sector, size) in enumerate(rows):
        ios["command"][number] = NAMES.index(command)
        ios["operation"][number] = operation_names().index(operation)
        ios["queued_ns"][number] = queued
        ios["issued_ns"][number] = issued or NEVER
        ios["completed_ns"][number] = completed
        ios["sector"][number] = sector
        ios["bytes"][number] = size
        if not issued:
            ios["merged_ns"][number] = queued
    return SimpleNamespace(ios=ios, names=NAMES)


@pytest.fixture
def workload() -> Workload:
    text = "[reader]\nrw=randread\nsize=1m\n[writer]\nrw=write\nsize=1m\n"
    return parse_workload(text, name="mixed", source="mixed")


def test_parties_are_jobs_by_what_they_do(workload: Workload, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = _trace(
        [
            ("fio", "read", 1000, 1100, 2000, 0, 4096),
            ("fio", "write", 1000, 2000, 3000, 800, 4096),
            ("fio", "write", 1000, 0, 3000, 808, 4096),
            ("kworker/u8:1", "write", 2000, 3000, 4000, 1600, 8192),
            ("cat", "read", 3000, 4000, 5000, 8, 4096),
            ("fio", "flush", 4000, 5000, 6000, 0, 0),
        ]
    )
    monkeypatch.setattr(recorded_runs, "read_trace", lambda _: trace)
    found = behaviour_of_recording(Path("x"), workload, "bfq", DISK)
    counted = {party.name: (party.requests, party.bytes) for party in found.parties}
    assert counted == {
        "reader": (1, 4096),
        "writer": (1, 8192),
        BACKGROUND: (1, 8192),
        FLUSHES: (1, 0),
        OTHERS: (1, 4096),
    }
    assert (found.source, found.span_ns, found.requests) == ("recording", 5000, 5)
    assert found.mean_jump_bytes is not None
    virtual = [DiskDescription(name="vda", rotational=True)]
    of_virtual = behaviour_of_recording(Path("x"), workload, "bfq", virtual)
    assert of_virtual.mean_jump_bytes is None


def test_a_run_from_page_cache_has_no_counters(workload: Workload, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_runs, "read_trace", lambda _: _trace([]))
    with pytest.raises(RunFailedError, match="page cache"):
        behaviour_of_recording(Path("x"), workload, "bfq", DISK)


def test_jobs_that_do_the_same_are_one_party(workload: Workload) -> None:
    assert job_parties(workload) == ("reader", "writer")
