"""Experiments with switchbacks, from the pilot to the verdict."""

from __future__ import annotations

import random
import signal
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest

from blklab.analysis.long_slots import LONG_ROUNDS, compare_long_slots
from blklab.analysis.verdict import analyse
from blklab.backends import Session
from blklab.errors import InterruptedRunError
from blklab.experiment.blocks import Clock
from blklab.experiment.outlook import Outlook, Shortage
from blklab.experiment.pipeline import compare
from blklab.experiment.rounds import Rounds
from blklab.experiment.slots import reasons_for_runs, settle_slots
from blklab.experiment.switchback import LONGEST_AFTER_CARRY_OVER_NS
from blklab.linux.machine.description import describe_machine
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import (
    DirectionSample,
    JobSample,
    LatencyHistogram,
    RunSample,
    SlotSample,
    TargetDescription,
)
from blklab.records.store import Store
from blklab.report.documents.designs import design_parts
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.goals import parse_goal
from blklab.spec.plan import Cell
from blklab.spec.request import SpecValues, build_specs
from blklab.spec.schedulers import parse_scheduler_choice
from blklab.spec.slots import SlotDecision
from blklab.spec.stretches import Stretch
from blklab.spec.workloads import Workload, parse_workload

READS = (
    "; purpose: Random reads.\n[reader]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=8\n"
    "time_based\nruntime=1s\n"
)
SYNCED = "; purpose: A log.\n[log]\nrw=write\nbs=4k\nfdatasync=1\nsize=4m\ntime_based\nruntime=200ms\n"
DEVICE = "sim:ssd-sata"


class Listener:
    """Keeps what was announced."""

    def __init__(self) -> None:
        self.announced: list[str] = []

    def announce(self, line: str) -> None:
        self.announced.append(line)

    def begun(self, record: ExperimentRecord) -> None:
        pass

    def progressed(self, progress: object) -> None:
        pass

    def falls_short(self, shortage: Shortage, schedulers: int) -> None:
        """Ignored."""

    def planned(self, outlook: Outlook) -> None:
        """Ignored."""

    def measured(self, sample: RunSample) -> None:
        pass


@pytest.fixture
def jobs(tmp_path: Path) -> Mapping[str, str]:
    """Job files by name."""
    for name, text in (("reads", READS), ("log", SYNCED)):
        (tmp_path / f"{name}.fio").write_text(text)
    return {name: str(tmp_path / f"{name}.fio") for name in ("reads", "log")}


def _spec(workloads: Sequence[str], budget: str = "8blocks", **more: object) -> ExperimentSpec:
    # Computing takes no time, so that the two are as good as equal.
    values: dict[str, object] = {"design": "switchback", "schedulers": ["none,bfq"], **more}
    values |= {"machine": "zero-cpu-time"}
    return build_specs(
        SpecValues(targets=[DEVICE], workloads=list(workloads), budget=budget, seed=3, **values)
    )[0]


def _rounds(record: ExperimentRecord, workload: str) -> Counter[int]:
    return Counter(
        sample.cell.block
        for sample in record.samples
        if sample.cell.workload == workload and sample.slot is not None
    )


def test_every_scheduler_has_one_slot_in_each_round(tmp_path: Path, jobs: Mapping[str, str]) -> None:
    spec = _spec([jobs["reads"]], "60blocks", margin=0.0)
    with Store.opened(str(tmp_path / "runs.sqlite")) as store:
        record = compare(spec, store, Listener())
        again = compare(spec, store, Listener())
    rounds = _rounds(record, "reads")
    assert set(rounds.values()) == {2}
    assert sorted(rounds) == list(range(len(rounds)))
    decision = record.spec.switched["reads"]
    assert all(
        sample.slot is not None and sample.slot.end_ns - sample.slot.start_ns == decision.slot_ns
        for sample in record.samples
    )
    assert [(one.cell, one.jobs) for one in record.samples] == [(one.cell, one.jobs) for one in again.samples]


def test_a_resumed_experiment_continues_with_the_next_round(tmp_path: Path, jobs: Mapping[str, str]) -> None:
    spec = _spec([jobs["reads"]], "10blocks", margin=0.0)
    with Store.opened(str(tmp_path / "runs.sqlite")) as store:
        first = compare(spec, store, Listener())
        more = first.spec.model_copy(update={"budget_blocks": 20})
        second = compare(more, store, Listener(), resumed=first)
    before, after = _rounds(first, "reads"), _rounds(second, "reads")
    assert len(after) > len(before)
    assert set(after.values()) == {2}
    assert sorted(after) == list(range(len(after)))
    assert second.samples[: len(first.samples)] == first.samples
    assert second.spec.slots == first.spec.slots


def test_a_workload_that_cannot_be_switched_has_runs_and_the_reason(
    tmp_path: Path, jobs: Mapping[str, str]
) -> None:
    with Store.opened(str(tmp_path / "runs.sqlite")) as store:
        record = compare(_spec([jobs["reads"], jobs["log"]]), store, Listener())
    assert list(record.spec.switched) == ["reads"]
    assert "fdatasync" in record.spec.slots["log"].reason
    runs = [sample for sample in record.samples if sample.cell.workload == "log"]
    assert runs
    assert all(sample.slot is None for sample in runs)
    assert sorted({sample.cell.block for sample in runs}) == list(range(len(runs) // 2))
    assert len({sample.cell.sequence for sample in record.samples}) == len(record.samples)
    assert {verdict.workload for verdict in analyse(record).metric_verdicts if verdict.decides} == {
        "reads",
        "log",
    }


def test_a_goal_has_one_design_for_all_workloads(tmp_path: Path, jobs: Mapping[str, str]) -> None:
    with Store.opened(str(tmp_path / "runs.sqlite")) as store:
        both = compare(_spec([jobs["reads"], jobs["log"]], goal=parse_goal("throughput")), store, Listener())
        one = compare(_spec([jobs["reads"]], goal=parse_goal("throughput")), store, Listener())
    assert not both.spec.switched
    assert "goal" in both.spec.slots["reads"].reason
    assert list(one.spec.switched) == ["reads"]
    assert analyse(one).goal is not None


@pytest.mark.parametrize(
    "more", [{"design": "runs"}, {"design": "auto"}, {"design": "auto", "sweeps": ["bfq:slice_idle=0,8"]}]
)
def test_experiments_of_runs(tmp_path: Path, jobs: Mapping[str, str], more: dict[str, object]) -> None:
    with Store.opened(str(tmp_path / "runs.sqlite")) as store:
        record = compare(_spec([jobs["reads"]], "3blocks", **more), store, Listener())
    assert record.spec.slots == {}
    assert all(sample.slot is None for sample in record.samples)


def test_it_stops_once_staying_is_good_enough(tmp_path: Path, jobs: Mapping[str, str]) -> None:
    with Store.opened(str(tmp_path / "runs.sqlite")) as store:
        long = compare(_spec([jobs["reads"]], "100blocks", margin=0.0), store, Listener())
        short = compare(_spec([jobs["reads"]], "100blocks", margin=0.0, good_enough=0.2), store, Listener())
    assert len(short.samples) < len(long.samples)
    bounds = [one.bound for one in analyse(short).verdict.regret if one.bound is not None]
    assert min(bounds) <= 0.2


class SessionWithCarryOver:
    """Slots of a made-up disk: after bfq, the first part of each slot is slow for a while.

    It has only what running slots and blocks takes.
    """

    parallel = 1

    def __init__(self, lasts_ns: int, refuses: str | None = None, *, tires_ns: int | None = None) -> None:
        self.lasts_ns = lasts_ns
        self.tires_ns = tires_ns
        """bfq is slower from this time after a switch on; None: never."""
        self.refuses = refuses
        self.slots_ns: list[int] = []
        self.chance = random.Random(1)  # noqa: S311 - not for secrets
        self.target = TargetDescription(target=DEVICE, backend="test", summary="made up", disks=[])

    def unswitchable(self, workload: Workload) -> str | None:
        return self.refuses

    def run(self, cell: Cell) -> RunSample:
        return _sample(Stretch(0, cell.workload, [], 1, 0, 1), cell, [1000.0] * 40, None)

    def _tired(self, label: str, time_ns: int) -> bool:
        return label == "bfq" and self.tires_ns is not None and time_ns >= self.tires_ns

    def run_stretch(self, stretch: Stretch) -> list[RunSample]:
        window_ns = 25_000_000
        self.slots_ns.append(stretch.slot_ns)
        samples = []
        for place, slot in enumerate(stretch.slots):
            slowed = place > 0 and stretch.slots[place - 1].scheduler.label == "bfq"
            ios = [
                100.0
                * self.chance.gauss(1, 0.01)
                * (0.5 if slowed and window * window_ns < self.lasts_ns else 1.0)
                * (0.7 if self._tired(slot.scheduler.label, window * window_ns) else 1.0)
                for window in range(stretch.slot_ns // window_ns)
            ]
            described = SlotSample(
                stretch=stretch.number,
                start_ns=place * stretch.slot_ns,
                end_ns=(place + 1) * stretch.slot_ns,
                switch_ns=10_000_000,
                kept_from_ns=place * stretch.slot_ns + stretch.settling_ns,
                kept_to_ns=(place + 1) * stretch.slot_ns,
                window_ns=window_ns,
                ios=ios,
            )
            cell = Cell(slot.key, slot.scheduler, stretch.workload)
            kept = ios[-(-stretch.settling_ns // window_ns) :]
            samples.append(_sample(stretch, cell, kept, described))
        return samples


def _sample(stretch: Stretch, cell: Cell, ios: Sequence[float], slot: SlotSample | None) -> RunSample:
    count, runtime_ns = round(sum(ios)), 25_000_000 * len(ios)
    latency = LatencyHistogram(
        count=count, sum_ns=1e5 * count, min_ns=100_000, max_ns=100_000, bins={100_000: count}
    )
    job = JobSample(
        name=stretch.workload.jobs[0].name,
        clones=1,
        runtime_ns=runtime_ns,
        directions=[
            DirectionSample(
                direction="read", ios=count, bytes=4096 * count, runtime_ns=runtime_ns, latency=latency
            )
        ],
    )
    return RunSample(
        cell=cell.key,
        status="ok",
        started_at="2026-01-01T00:00:00.000+00:00",
        elapsed_ns=1,
        jobs=[job],
        slot=slot,
    )


def _switched(
    session: SessionWithCarryOver, spec: ExperimentSpec, tmp_path: Path
) -> tuple[ExperimentRecord, Listener]:
    listener = Listener()
    record = _begun(spec, session)
    with Store.opened(str(tmp_path / "runs.sqlite")) as store:
        store.begin(record)
        _run(record, session, store, listener)
        return store.load(record.run_id), listener


def _run(record: ExperimentRecord, session: SessionWithCarryOver, store: Store, listener: Listener) -> None:
    Rounds(record, cast("Session", session), store, listener, Clock(record.spec, 0)).run()


def test_slots_that_show_in_the_next_are_doubled_and_then_given_up(
    tmp_path: Path, jobs: Mapping[str, str]
) -> None:
    first = SlotDecision(slot_ns=500_000_000, settling_ns=100_000_000, reason="a test")
    spec = _spec([jobs["reads"]], "400blocks", margin=0.0001).model_copy(update={"slots": {"reads": first}})
    for lasts_ns, given_up in ((300_000_000, False), (10 * LONGEST_AFTER_CARRY_OVER_NS, True)):
        session = SessionWithCarryOver(lasts_ns)
        folder = tmp_path / str(lasts_ns)
        folder.mkdir()
        record, listener = _switched(session, spec, folder)
        decision = record.spec.slots["reads"]
        assert any("beginning anew" in line for line in listener.announced)
        assert max(session.slots_ns) > 500_000_000
        assert (decision.slot_ns is None) == given_up
        if not given_up:
            assert decision.first_round > 0
            assert decision.slot_ns == max(session.slots_ns)


def test_runs_that_replaced_slots_go_on_when_resumed(tmp_path: Path, jobs: Mapping[str, str]) -> None:
    first = SlotDecision(slot_ns=500_000_000, settling_ns=100_000_000, reason="a test")
    spec = _spec([jobs["reads"]], "400blocks", margin=0.0001).model_copy(update={"slots": {"reads": first}})
    session = SessionWithCarryOver(10 * LONGEST_AFTER_CARRY_OVER_NS)
    record, listener = _switched(session, spec, tmp_path)
    assert not record.spec.switched
    slots = [sample for sample in record.samples if sample.slot is not None]
    early = record.model_copy(update={"samples": slots})
    with Store.opened(str(tmp_path / "again.sqlite")) as store:
        store.begin(early)
        store.add_samples(early.run_id, slots)
        _run(early, session, store, listener)
        resumed = store.load(early.run_id)
    runs = [sample for sample in resumed.samples if sample.slot is None]
    assert sorted({sample.cell.block for sample in runs}) == list(range(len(runs) // 2))
    assert runs


def test_under_a_goal_all_workloads_begin_anew_with_runs_if_one_does(
    tmp_path: Path, jobs: Mapping[str, str]
) -> None:
    other = tmp_path / "others.fio"
    other.write_text(READS)
    first = SlotDecision(slot_ns=LONGEST_AFTER_CARRY_OVER_NS, settling_ns=100_000_000, reason="a test")
    spec = _spec([jobs["reads"], str(other)], "4000blocks", margin=0.0001, goal=parse_goal("throughput"))
    spec = spec.model_copy(update={"slots": {"reads": first, "others": first}})
    session = SessionWithCarryOver(LONGEST_AFTER_CARRY_OVER_NS // 2)
    record, _ = _switched(session, spec, tmp_path)
    assert not record.spec.switched
    reasons = [record.spec.slots[name].reason for name in ("reads", "others")]
    assert sum("goal" in reason for reason in reasons) == 1
    assert {sample.cell.workload for sample in record.samples if sample.slot is None} == {"reads", "others"}


def test_settled_slots_are_kept_as_they_are(tmp_path: Path, jobs: Mapping[str, str]) -> None:
    first = SlotDecision(slot_ns=500_000_000, settling_ns=100_000_000, reason="a test")
    spec = _spec([jobs["reads"]], "100blocks").model_copy(update={"slots": {"reads": first}})
    record, listener = _switched(SessionWithCarryOver(50_000_000), spec, tmp_path)
    assert record.spec.slots["reads"] == first
    assert not any("beginning anew" in line for line in listener.announced)
    assert analyse(record).verdict.status == "equal"


def test_long_slots_show_what_short_ones_cannot(tmp_path: Path, jobs: Mapping[str, str]) -> None:
    """A scheduler that is slower from its third second on is so in none of the short slots."""
    first = SlotDecision(slot_ns=500_000_000, settling_ns=100_000_000, reason="a test")
    spec = _spec([jobs["reads"]], "400blocks").model_copy(update={"slots": {"reads": first}})
    session = SessionWithCarryOver(0, tires_ns=2_000_000_000)
    record, listener = _switched(session, spec, tmp_path)
    assert any("in slots of 4.00 s the I/Os of" in line for line in listener.announced)
    assert record.spec.slots["reads"] != first
    verdict = analyse(record).verdict
    assert record.spec.slots["reads"].slot_ns is None or verdict.status != "equal"


def test_long_slots_count_in_no_value(tmp_path: Path, jobs: Mapping[str, str]) -> None:
    first = SlotDecision(slot_ns=500_000_000, settling_ns=100_000_000, reason="a test")
    spec = _spec([jobs["reads"]], "100blocks").model_copy(update={"slots": {"reads": first}})
    record, _ = _switched(SessionWithCarryOver(0), spec, tmp_path)
    long = [sample for sample in record.samples if sample.slot is not None and sample.slot.long]
    assert Counter(sample.cell.scheduler for sample in long) == {"none": LONG_ROUNDS, "bfq": LONG_ROUNDS}
    counted = record.without_uncounted_slots().samples
    assert len(counted) == len(record.samples) - len(long)
    without = record.model_copy(update={"samples": counted})
    assert analyse(record).comparisons == analyse(without).comparisons
    found = compare_long_slots("reads", record.samples, 500_000_000)
    assert found is not None
    assert found.in_long == pytest.approx(1.0, abs=0.05)
    assert found.p > 0.05
    (part,) = design_parts(record)
    assert (part.long_slots, part.abandoned, part.samples) == (len(long), 0, len(counted))


def test_a_resumed_answer_needs_no_more_long_slots(tmp_path: Path, jobs: Mapping[str, str]) -> None:
    first = SlotDecision(slot_ns=500_000_000, settling_ns=100_000_000, reason="a test")
    spec = _spec([jobs["reads"]], "100blocks").model_copy(update={"slots": {"reads": first}})
    session = SessionWithCarryOver(0)
    record, listener = _switched(session, spec, tmp_path)
    with Store.opened(str(tmp_path / "again.sqlite")) as store:
        store.begin(record)
        store.add_samples(record.run_id, record.samples)
        _run(record, session, store, listener)
        assert len(store.load(record.run_id).samples) == len(record.samples)


class KilledSession(SessionWithCarryOver):
    """Is killed in the place of a run of that number."""

    def __init__(self, killed_at: int) -> None:
        super().__init__(0)
        self.killed_at = killed_at
        self.made: list[Cell] = []

    def run(self, cell: Cell) -> RunSample:
        if len(self.made) == self.killed_at:
            raise InterruptedRunError(signal.SIGTERM, "killed")
        self.made.append(cell)
        return super().run(cell)


def _begun(spec: ExperimentSpec, session: SessionWithCarryOver) -> ExperimentRecord:
    return ExperimentRecord(
        run_id="20260101-0000-test",
        created_at="2026-01-01T00:00:00+00:00",
        state="running",
        blklab_version="0",
        spec=spec,
        target=session.target,
        machine=describe_machine(),
        samples=[],
    )


@pytest.mark.parametrize("killed_at", [5, 7])
def test_a_block_beside_slots_is_made_whole_after_a_kill(
    tmp_path: Path, jobs: Mapping[str, str], killed_at: int
) -> None:
    """Of two workloads with runs, the one that has all of its runs keeps them, the other has them again."""
    other = tmp_path / "other.fio"
    other.write_text(SYNCED)
    decision = SlotDecision(slot_ns=500_000_000, settling_ns=100_000_000, reason="a test")
    slots = {"reads": decision, "log": SlotDecision(reason="a test"), "other": SlotDecision(reason="a test")}
    spec = _spec([jobs["reads"], jobs["log"], str(other)], "4blocks", margin=0.0001)
    spec = spec.model_copy(update={"slots": slots})
    killed, second = KilledSession(killed_at), KilledSession(-1)
    record = _begun(spec, killed)
    with Store.opened(str(tmp_path / "runs.sqlite")) as store:
        store.begin(record)
        with pytest.raises(InterruptedRunError):
            _run(record, killed, store, Listener())
        broken = store.load(record.run_id)
        _run(broken, second, store, Listener())
        whole = store.load(record.run_id)
    interrupted = {killed.made[-1].workload.name}
    again = [cell.key for cell in second.made if cell.key in [one.key for one in killed.made]]
    assert {key.workload for key in again} == interrupted
    assert {key.block for key in again} == {1}
    runs = Counter((one.cell.workload, one.cell.block) for one in whole.samples if one.slot is None)
    assert runs == {(name, block): 2 for name in ("log", "other") for block in range(4)}
    assert set(_rounds(whole, "reads").values()) == {2}


class ParallelSession(SessionWithCarryOver):
    """Takes two loads at once, and counts them."""

    parallel = 2

    def __init__(self) -> None:
        super().__init__(0)
        self.meeting = threading.Barrier(2, timeout=60)
        self.met = 0

    def run_stretch(self, stretch: Stretch) -> list[RunSample]:
        if stretch.number == 0:
            self.meeting.wait()
            self.met += 1
        return super().run_stretch(stretch)


def test_stretches_of_several_workloads_run_at_once(tmp_path: Path, jobs: Mapping[str, str]) -> None:
    other = tmp_path / "other.fio"
    other.write_text(READS)
    decision = SlotDecision(slot_ns=500_000_000, settling_ns=100_000_000, reason="a test")
    spec = _spec([jobs["reads"], str(other)], "20blocks")
    spec = spec.model_copy(update={"slots": {"reads": decision, "other": decision}})
    session = ParallelSession()
    record, _ = _switched(session, spec, tmp_path)
    assert session.met == 2
    assert set(_rounds(record, "reads").values()) == set(_rounds(record, "other").values()) == {2}


def test_a_used_up_budget_gets_no_round_by_resuming(tmp_path: Path, jobs: Mapping[str, str]) -> None:
    decision = SlotDecision(slot_ns=500_000_000, settling_ns=100_000_000, reason="a test")
    spec = _spec([jobs["reads"]], "4blocks", margin=0.0001).model_copy(update={"slots": {"reads": decision}})
    session = SessionWithCarryOver(0)
    record, listener = _switched(session, spec, tmp_path)
    with Store.opened(str(tmp_path / "runs.sqlite")) as store:
        _run(record, session, store, listener)
        assert store.load(record.run_id).samples == record.samples


def _reason_for_two_jobs(spec: ExperimentSpec, jobs: Mapping[str, str], *schedulers: str) -> str | None:
    """The reason why schedulers cannot take turns under two jobs."""
    text = READS + "[writer]\nrw=randwrite\nbs=4k\ndirect=1\ntime_based\nruntime=1s\n"
    two = parse_workload(text, name="two", source=jobs["reads"])
    choices = [parse_scheduler_choice(name) for name in schedulers]
    spec = spec.model_copy(update={"workloads": [two], "schedulers": choices})
    reasons = reasons_for_runs(spec, cast("Session", SessionWithCarryOver(0)), by_default=True)
    assert reasons is not None
    return reasons["two"]


def test_reasons_for_runs(jobs: Mapping[str, str]) -> None:
    session = SessionWithCarryOver(0)
    spec = _spec([jobs["reads"]])
    assert reasons_for_runs(spec, cast("Session", session), by_default=False) == {"reads": None}
    auto = spec.model_copy(update={"design": "auto"})
    assert reasons_for_runs(auto, cast("Session", session), by_default=False) is None
    assert reasons_for_runs(auto, cast("Session", session), by_default=True) == {"reads": None}
    fixed = auto.model_copy(update={"blocks": 5, "budget_blocks": None})
    assert reasons_for_runs(fixed, cast("Session", session), by_default=True) is None
    assert "low_latency" in str(_reason_for_two_jobs(auto, jobs, "none", "bfq"))
    assert _reason_for_two_jobs(auto, jobs, "none", "bfq:low_latency=0", "kyber") is None
    assert _reason_for_two_jobs(auto, jobs, "none", "mq-deadline") is None
    refusing = SessionWithCarryOver(0, refuses="a reason")
    settled = settle_slots(auto, cast("Session", refusing), Listener(), by_default=True)
    assert settled.slots == {"reads": SlotDecision(reason="a reason")}
