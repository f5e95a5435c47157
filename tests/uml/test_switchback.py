"""Switchbacks in guests: the real kernel switches its schedulers beneath one load, in virtual time."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

import pytest

from blklab.analysis.verdict import analyse
from blklab.backends.protocol import SessionOptions
from blklab.errors import UnknownNameError
from blklab.experiment.pipeline import compare
from blklab.guests.kernels.store import find
from blklab.progress.experiment import ProgressDisplay
from blklab.records.samples import JobSample, RunSample
from blklab.records.store import Store
from blklab.spec.guest import GuestOptions
from blklab.spec.request import SpecValues, build_specs
from blklab.spec.schedulers import parse_scheduler_choice
from blklab.spec.slots import SlotDecision
from blklab.spec.stretches import Stretch, stretch_of
from blklab.spec.targets import parse_target
from blklab.spec.workloads import parse_workload

pytestmark = pytest.mark.usefixtures("real_guest")

READS = (
    "[reader]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=8\ntime_based\nruntime=1s\nsize=1g\n"
    "[writer]\nrw=randwrite\nbs=16k\ndirect=1\nnumjobs=2\nthinktime=5ms\ntime_based\nruntime=1s\nsize=1g\n"
)
WORKLOAD = parse_workload(READS, name="reads", source="reads.fio")
SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq", "bfq:slice_idle=0")


def _stretch(rounds: int) -> Stretch:
    return stretch_of(
        WORKLOAD,
        [parse_scheduler_choice(name) for name in SCHEDULERS],
        SlotDecision(slot_ns=1_000_000_000, settling_ns=100_000_000, reason="a test"),
        seed=3,
        number=0,
        first_round=0,
        rounds=rounds,
    )


def _slots_on(backend: str, rounds: int = 2) -> list[RunSample]:
    module = import_module(f"blklab.backends.{backend}")
    options = SessionOptions(run_id="test", arrangement="fixed")
    with module.BACKEND.open(parse_target(f"{backend}:hdd-7200"), options) as session:
        samples: list[RunSample] = session.run_stretch(_stretch(rounds))
    assert [sample.error for sample in samples] == [None] * len(samples)
    return samples


def _ios(jobs: Sequence[JobSample]) -> int:
    return sum(direction.ios for job in jobs for direction in job.directions)


def test_each_scheduler_has_its_slots_and_settings() -> None:
    first, second = _slots_on("uml"), _slots_on("uml")
    varying = {"started_at", "elapsed_ns"}
    assert [one.model_dump(exclude=varying) for one in first] == [
        one.model_dump(exclude=varying) for one in second
    ]
    for slot, sample in zip(_stretch(2).slots, first, strict=True):
        settings = {name.partition("/")[2]: value for name, value in sample.settings.items()}
        assert settings["scheduler"] == slot.scheduler.name
        if slot.scheduler.name == "bfq":
            assert (settings["iosched/slice_idle"] == "0") == bool(slot.scheduler.tunables)
        assert sample.slot is not None
        assert sum(sample.slot.ios) >= _ios(sample.jobs) > 0
        assert {job.runtime_ns for job in sample.jobs} == {900_000_000}
        assert [job.clones for job in sample.jobs] == [1, 2]


def test_the_simulator_finds_the_same() -> None:
    """Not to the last I/O: the kernel's switches take their own time, so the platter stands elsewhere."""
    real, modelled = (_by_scheduler(_slots_on(backend, 12)) for backend in ("uml", "sim"))
    assert real == pytest.approx(modelled, rel=0.02)


def _by_scheduler(samples: Sequence[RunSample]) -> dict[str, int]:
    totals = dict.fromkeys(SCHEDULERS, 0)
    for sample in samples:
        totals[sample.cell.scheduler] += _ios(sample.jobs)
    return totals


def test_an_experiment_with_switchbacks(tmp_path: Path) -> None:
    job = tmp_path / "reads.fio"
    job.write_text(READS)
    values: Mapping[str, object] = {
        "design": "switchback",
        "schedulers": ["none,bfq:low_latency=0"],
        "budget": "12blocks",
    }
    spec = build_specs(SpecValues(targets=["uml:hdd-7200"], workloads=[str(job)], seed=3, **values))[0]
    with Store.opened(str(tmp_path / "runs.sqlite")) as store:
        record = compare(spec, store, ProgressDisplay(quiet=True))
    decision = record.spec.switched["reads"]
    slots = [sample for sample in record.samples if sample.slot is not None]
    assert slots == record.samples
    assert {sample.slot.end_ns - sample.slot.start_ns for sample in slots if sample.slot} == {
        decision.slot_ns
    }
    assert analyse(record).comparisons


def test_guests_of_different_kernels_cannot_take_turns() -> None:
    module = import_module("blklab.backends.uml")
    patched = "kyber-busy-wait"
    try:
        find(patched)
    except UnknownNameError:
        pytest.skip(f"the kernel {patched} is not built: blklab kernel build {patched} --patch {patched}")
    options = SessionOptions(run_id="test", kernels=(None, patched))
    with module.BACKEND.open(parse_target("uml:hdd-7200"), options) as session:
        assert "different kernels" in str(session.unswitchable(WORKLOAD))


def test_what_guests_cannot_switch() -> None:
    module = import_module("blklab.backends.uml")
    options = SessionOptions(run_id="test", guest=GuestOptions(generator="fio"))
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    with module.BACKEND.open(parse_target("uml:hdd-7200"), options) as session:
        assert "fio" in str(session.unswitchable(WORKLOAD))
