"""Stretches in the simulator: one load, one sample for each scheduler's turn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from blklab.backends.protocol import Session, SessionOptions
from blklab.backends.sim import BACKEND
from blklab.errors import SchedulerUnavailableError
from blklab.records.samples import RunSample
from blklab.spec.plan import Cell, CellKey
from blklab.spec.schedulers import parse_scheduler_choice
from blklab.spec.slots import SlotDecision
from blklab.spec.stretches import Stretch, stretch_of
from blklab.spec.targets import parse_target
from blklab.spec.workloads import load_workload

MS = 1_000_000
DECISION = SlotDecision(slot_ns=100 * MS, settling_ns=40 * MS, reason="a test")


@contextmanager
def opened(device: str = "ssd-sata", **options: object) -> Iterator[Session]:
    values = {"run_id": "test"} | options
    with BACKEND.open(parse_target(f"sim:{device}"), SessionOptions.model_validate(values)) as session:
        yield session


def stretch(*schedulers: str, workload: str = "mixed-70-30", rounds: int = 2, seed: int = 1) -> Stretch:
    return stretch_of(
        load_workload(workload),
        [parse_scheduler_choice(name) for name in schedulers],
        DECISION,
        seed=seed,
        number=3,
        first_round=4,
        rounds=rounds,
    )


def without_times(samples: list[RunSample]) -> list[RunSample]:
    return [sample.model_copy(update={"started_at": "", "elapsed_ns": 0}) for sample in samples]


def test_every_slot_has_a_sample_in_order() -> None:
    asked = stretch("none", "calm=bfq:slice_idle=0", "kyber")
    with opened() as session:
        samples = session.run_stretch(asked)
    assert [sample.cell for sample in samples] == [slot.key for slot in asked.slots]
    for number, sample in enumerate(samples):
        slot = sample.slot
        assert sample.status == "ok"
        assert slot is not None
        assert (slot.stretch, slot.start_ns, slot.end_ns) == (3, number * 100 * MS, (number + 1) * 100 * MS)
        assert (slot.kept_from_ns, slot.kept_to_ns) == (slot.start_ns + 40 * MS, slot.end_ns)
        assert 28 * MS <= slot.switch_ns < 40 * MS
        assert len(slot.ios) * slot.window_ns == 100 * MS
        kept = sum(slot.ios[40 * MS // slot.window_ns :])
        jobs = sum(entry.ios for job in sample.jobs for entry in job.data_directions())
        assert kept == jobs > 0
        assert all(job.runtime_ns == 60 * MS for job in sample.jobs)
        assert sum(slot.ios[1:2]) == 0, "the queue is frozen"
        assert sample.settings["ssd-sata/scheduler"] == (
            "bfq" if sample.cell.scheduler == "calm" else sample.cell.scheduler
        )
        if sample.cell.scheduler == "calm":
            assert sample.settings["ssd-sata/iosched/slice_idle"] == "0"


def test_a_stretch_depends_on_its_seed_alone() -> None:
    with opened() as session, opened() as other:
        first = session.run_stretch(stretch("none", "bfq"))
        assert without_times(other.run_stretch(stretch("none", "bfq"))) == without_times(first)
        assert without_times(other.run_stretch(stretch("none", "bfq", seed=2))) != without_times(first)


def test_a_slot_is_like_a_run_where_nothing_carries_over() -> None:
    choice = parse_scheduler_choice("mq-deadline")
    workload = load_workload("random-read-4k-qd32")
    key = CellKey(block=0, sequence=0, position=0, workload=workload.name, scheduler=choice.label, seed=1)
    with opened(runtime_ns=200 * MS) as session:
        run = session.run(Cell(key=key, workload=workload, scheduler=choice))
        slot = session.run_stretch(stretch("mq-deadline", workload=workload.name, rounds=1))[0]

    def rate(sample: RunSample) -> float:
        return sample.jobs[0].directions[0].ios / sample.jobs[0].runtime_ns

    assert rate(slot) == pytest.approx(rate(run), rel=0.01)


def test_reasons_of_the_simulator_are_added_to_the_usual_ones() -> None:
    mixed = load_workload("mixed-70-30")
    with opened() as session:
        assert session.unswitchable(mixed) is None
        assert "syncs" in str(session.unswitchable(load_workload("write-ahead-log")))
        session.check([parse_scheduler_choice("cfq"), parse_scheduler_choice("bfq")], [mixed])
        assert "legacy" in str(session.unswitchable(mixed))
        session.check([parse_scheduler_choice("cfq"), parse_scheduler_choice("deadline")], [mixed])
        assert session.unswitchable(mixed) is None
    with opened(cgroups={"/a": {"io.latency": "target=1000"}}) as session:
        assert "io.latency" in str(session.unswitchable(mixed))


def test_schedulers_of_two_families_cannot_take_turns() -> None:
    with opened() as session, pytest.raises(SchedulerUnavailableError, match="no kernel has both"):
        session.run_stretch(stretch("none", "cfq"))


def test_slots_that_end_before_the_switch_is_done_fail() -> None:
    tight = SlotDecision(slot_ns=20 * MS, reason="shorter than a freeze")
    choices = [parse_scheduler_choice(name) for name in ("none", "bfq")]
    workload = load_workload("mixed-70-30")
    short = stretch_of(workload, choices, tight, seed=1, number=0, first_round=0, rounds=20)
    with opened() as session:
        samples = session.run_stretch(short)
    assert {sample.status for sample in samples} == {"failed"}
    assert "longer than its slot" in str(samples[0].error)
