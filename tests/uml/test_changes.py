"""Planned changes in guests: the real kernel is written to beneath the load, and the simulator agrees."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import pytest

from blklab.backends.protocol import SessionOptions
from blklab.backends.uml import BACKEND
from blklab.errors import BlklabError, TunableError, UsageError
from blklab.records.samples import JobSample, RunSample
from blklab.spec.changes import parse_changes
from blklab.spec.experiment import Conditions
from blklab.spec.guest import GuestOptions
from blklab.spec.machines import load_machine
from blklab.spec.plan import Cell, CellKey
from blklab.spec.schedulers import parse_scheduler_choice, parse_scheduler_choices
from blklab.spec.targets import parse_target
from blklab.spec.workloads import parse_workload

pytestmark = pytest.mark.usefixtures("real_guest")

PAIR = (
    "[global]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=8\ntime_based\nruntime=6s\nsize=1g\n"
    "[a]\n[b]\n"
)
SEQUENTIAL = PAIR.replace("rw=randread\nbs=4k", "rw=read\nbs=64k").replace("iodepth=8", "iodepth=2")
IN_GROUPS = PAIR.replace("[a]\n", "[a]\ncgroup=a\n") + "cgroup=b\n"
HALF = 3_000_000_000
AGREEMENT = 0.04
"""Relative difference of a phase's I/Os between kernel and simulator. A freeze takes the kernel its own time,
and from then on the platter is elsewhere."""


def _run(backend: str, scheduler: str, jobs: str, changes: Sequence[str], seed: int = 1) -> RunSample:
    module = import_module(f"blklab.backends.{backend}")
    choice = parse_scheduler_choice(scheduler)
    workload = parse_workload(jobs, name="jobs", source="jobs.fio")
    key = CellKey(block=0, sequence=0, position=0, workload="jobs", scheduler=choice.label, seed=seed)
    table = BACKEND.default_machine(Conditions(), [None])
    options = SessionOptions(
        run_id="test",
        changes=parse_changes(changes),
        arrangement="fixed",
        cgroups={"a": {"io.bfq.weight": "300"}} if "cgroup=a" in jobs else {},
        machine=load_machine(table),
    )
    with module.BACKEND.open(parse_target(f"{backend}:hdd-7200"), options) as session:
        session.check([choice], [workload])
        sample: RunSample = session.run(Cell(key, choice, workload))
    assert sample.status == "ok", sample.error
    return sample


def _ios(jobs: Sequence[JobSample]) -> dict[str, int]:
    return {job.name: sum(entry.ios for entry in job.directions) for job in jobs}


RAISED = "3s scheduler=bfq"
"""bfq raises one of the two jobs as it begins: the one that arrives first in that moment, which may be the
other in the simulator. Both agree that one has most of the I/Os."""
MOST = 0.85

CELLS = [
    # In the second half the change shows: in a's part of the I/Os, or in their number.
    ("bfq:low_latency=0", SEQUENTIAL, "3s a: ionice=be/0"),
    ("bfq:low_latency=0", IN_GROUPS, "3s a: io.bfq.weight=50"),
    ("bfq:low_latency=0", SEQUENTIAL, "3s slice_idle=0"),
    ("mq-deadline", PAIR, "3s b: ionice=idle"),
    ("mq-deadline", PAIR, "3s nr_requests=4"),
    ("none", IN_GROUPS, "3s a: io.max=riops=30"),
    ("none", IN_GROUPS, RAISED),
]


@pytest.mark.parametrize(("scheduler", "jobs", "change"), CELLS, ids=[cell[2] for cell in CELLS])
def test_kernel_and_simulator_agree_before_and_after(scheduler: str, jobs: str, change: str) -> None:
    real, modelled = (_run(backend, scheduler, jobs, [change]) for backend in ("uml", "sim"))
    for sample in (real, modelled):
        (made,) = sample.changes
        assert (made.change, made.begun_ns) == (change, HALF)
        assert HALF <= made.made_ns < HALF + 200_000_000
        assert [(phase.from_ns, phase.to_ns) for phase in sample.phases] == [(1, HALF), (HALF, 2 * HALF)]
    for number in range(2):
        kernel, model = (_ios(sample.phases[number].jobs) for sample in (real, modelled))
        assert sum(kernel.values()) == pytest.approx(sum(model.values()), rel=AGREEMENT)
        if change == RAISED and number == 1:
            assert all(max(ios.values()) > MOST * sum(ios.values()) for ios in (kernel, model))
            continue
        assert kernel["a"] / sum(kernel.values()) == pytest.approx(
            model["a"] / sum(model.values()), abs=AGREEMENT
        )
    before, after = (_ios(phase.jobs) for phase in real.phases)
    moved = abs(after["a"] / sum(after.values()) - before["a"] / sum(before.values()))
    slower_or_faster = abs(sum(after.values()) / sum(before.values()) - 1)
    assert moved > 0.1 or slower_or_faster > 0.1, "the change shows"


def test_a_run_with_changes_is_the_same_each_time() -> None:
    changes = ["1s nr_requests=16", "2s scheduler=kyber", "2s a: ionice=idle", "4s read_lat_nsec=500000"]
    first, second = (_run("uml", "mq-deadline", PAIR, changes) for _ in range(2))
    varying = {"started_at", "elapsed_ns"}
    assert first.model_dump(exclude=varying) == second.model_dump(exclude=varying)
    assert [made.change for made in first.changes] == changes
    # Of the beginning, not of the end.
    assert first.settings["hdd-7200/scheduler"] == "mq-deadline"
    total, parts = _ios(first.jobs), [_ios(phase.jobs) for phase in first.phases]
    for job, ios in total.items():
        assert 0.98 * ios <= sum(part[job] for part in parts) <= ios


def test_a_value_that_the_kernel_refuses_is_named() -> None:
    with pytest.raises(BlklabError, match="nr_requests"):
        _run("uml", "mq-deadline", PAIR, ["1s nr_requests=none"])


def test_changes_are_tried_for_every_scheduler_before_the_first_run() -> None:
    module = import_module("blklab.backends.uml")
    workload = parse_workload(PAIR, name="jobs", source="jobs.fio")
    options = SessionOptions(run_id="test", changes=parse_changes(["1s slice_idle=0", "2s a: ionice=rt"]))
    with module.BACKEND.open(parse_target("uml:hdd-7200"), options) as session:
        with pytest.raises(TunableError, match="slice_idle of kyber"):
            session.check(parse_scheduler_choices("bfq,kyber"), [workload])
        session.check(parse_scheduler_choices("bfq,bfq:low_latency=0"), [workload])


def test_fio_in_a_guest_is_left_alone() -> None:
    module = import_module("blklab.backends.uml")
    workload = parse_workload(PAIR, name="jobs", source="jobs.fio")
    options = SessionOptions(
        run_id="test", changes=parse_changes(["1s nr_requests=9"]), guest=GuestOptions(generator="fio")
    )
    with (
        module.BACKEND.open(parse_target("uml:hdd-7200"), options) as session,
        pytest.raises(UsageError, match="fio"),
    ):
        session.check([parse_scheduler_choice("bfq")], [workload])
