"""Switchbacks on loop devices: one fio, and schedulers that take turns beneath it."""

from __future__ import annotations

import itertools
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from blklab.errors import SettingsChangedError, TunableError
from blklab.linux.queue.attributes import write_attribute
from blklab.linux.queue.settings import QueueSettings
from blklab.records.samples import RunSample
from blklab.spec.schedulers import SchedulerChoice, parse_scheduler_choices
from blklab.spec.slots import SlotDecision
from blklab.spec.stretches import Stretch, stretch_of
from blklab.spec.workloads import Workload
from host.conftest import Filesystem, LoopDevice, opened, work
from waiting import wait_until

pytestmark = pytest.mark.root

JOBS = """
[global]
direct=1
time_based
runtime=1s
[reader]
rw=randread
bs=4k
ioengine=libaio
iodepth=4
size=8m
numjobs=2
[writer]
rw=randwrite
bs=8k
size=8m
"""
SLOT_NS = 400_000_000
SETTLING_NS = 100_000_000
CHOICES = "none,bfq:slice_idle=0,kyber,mq-deadline:fifo_batch=1"


def _stretch(workload: Workload, schedulers: str = CHOICES, rounds: int = 2) -> Stretch:
    decision = SlotDecision(slot_ns=SLOT_NS, settling_ns=SETTLING_NS, reason="a test")
    choices = parse_scheduler_choices([schedulers])
    return stretch_of(workload, choices, decision, seed=1, number=0, first_round=0, rounds=rounds)


def _assert_described(samples: list[RunSample], stretch: Stretch) -> None:
    """Every slot that a slow machine has not lost is described in full."""
    assert [sample.cell for sample in samples] == [slot.key for slot in stretch.slots]
    for sample, slot in zip(samples, stretch.slots, strict=True):
        place = sample.slot
        assert place is not None
        assert place.start_ns <= place.kept_from_ns <= place.kept_to_ns <= place.end_ns
        scheduler = next(value for name, value in sample.settings.items() if name.endswith("/scheduler"))
        assert scheduler == slot.scheduler.name
        for name, value in slot.scheduler.tunables.items():
            assert value in [found for key, found in sample.settings.items() if key.endswith(f"/{name}")]
        if sample.status == "failed":
            assert sample.error == "the switch took nearly the whole slot"
            continue
        assert place.start_ns + SETTLING_NS <= place.kept_from_ns
        reader, writer = sample.jobs
        assert (reader.clones, writer.clones, len(reader.clone_bytes or [])) == (2, 1, 2)
        assert reader.runtime_ns == place.kept_to_ns - place.kept_from_ns
        for job, direction, io_bytes in ((reader, "read", 4096), (writer, "write", 8192)):
            (done,) = job.directions
            assert done.direction == direction
            assert done.bytes == pytest.approx(done.ios * io_bytes, abs=io_bytes)


def test_every_slot_has_its_scheduler_and_the_queue_is_restored(ext4: Filesystem) -> None:
    workload = work(JOBS)
    stretch = _stretch(workload)
    with opened(str(ext4.folder)) as session:
        assert session.unswitchable(workload) is None
        session.check([slot.scheduler for slot in stretch.slots], [workload])
        session.prepare([workload], lambda _: None)
        samples = session.run_stretch(stretch)
        _assert_described(samples, stretch)
        again = session.run_stretch(_stretch(workload, rounds=1))
        assert len(again) == len(CHOICES.split(","))
    ext4.assert_untouched()


def test_a_device_without_a_file_system(raw: LoopDevice) -> None:
    workload = work("[r]\nrw=randread\nbs=4k\ndirect=1\nsize=8m\ntime_based\nruntime=1s\n")
    stretch = _stretch(workload, "none,bfq", rounds=1)
    with opened(raw.device) as session:
        session.prepare([workload], lambda _: None)
        assert len(session.run_stretch(stretch)) == len(stretch.slots)
    raw.assert_unchanged()


def test_slots_whose_settings_another_program_changes_have_failed(ext4: Filesystem) -> None:
    workload = work(JOBS)
    stretch = _stretch(workload)
    disk = ext4.devices[0].disk
    over = threading.Event()

    def meddle() -> None:
        wait_until(_fio_runs, "fio runs")
        while not over.wait(SLOT_NS / 4e9):
            with suppress(TunableError):
                write_attribute(disk, "nr_requests", "40")  # until the next switch

    with opened(str(ext4.folder)) as session:
        session.prepare([workload], lambda _: None)
        meddler = threading.Thread(target=meddle)
        meddler.start()
        try:
            samples = session.run_stretch(stretch)
        finally:
            over.set()
            meddler.join()
    failed = [sample for sample in samples if sample.status == "failed"]
    assert any("nr_requests" in (sample.error or "") for sample in failed)
    assert all(not sample.jobs for sample in failed)
    ext4.assert_untouched()


def test_a_slot_whose_settings_change_while_it_begins_has_failed(
    ext4: Filesystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program may write between the switch and the look at what is in force."""
    apply, calls = QueueSettings.apply, itertools.count()

    def disturbed(self: QueueSettings, choice: SchedulerChoice) -> dict[str, str]:
        # The first call is before the stretch.
        if next(calls) == 2:
            raise SettingsChangedError("settings differ: nr_requests was 64, is 40")
        return apply(self, choice)

    monkeypatch.setattr(QueueSettings, "apply", disturbed)
    workload = work(JOBS)
    with opened(str(ext4.folder)) as session:
        session.prepare([workload], lambda _: None)
        first, second, *others = session.run_stretch(_stretch(workload, rounds=1))
    assert second.error == "settings differ: nr_requests was 64, is 40"
    assert all("settings" not in (sample.error or "") for sample in (first, *others))
    ext4.assert_untouched()


def test_a_load_that_fails_leaves_failed_slots(ext4: Filesystem) -> None:
    workload = work(JOBS)
    stretch = _stretch(workload)
    with opened(str(ext4.folder)) as session:
        session.prepare([workload], lambda _: None)
        for path in ext4.folder.glob(".blklab*/*"):
            path.unlink()
        samples = session.run_stretch(stretch)
    assert [sample.status for sample in samples] == ["failed"] * len(stretch.slots)
    ext4.assert_untouched()


def _fio_runs() -> bool:
    return any(Path("/run").glob("blklab-test-*/started.*"))
