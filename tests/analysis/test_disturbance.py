"""Marks on disturbed blocks, and the verdict without them."""

from __future__ import annotations

from typing import Any

import pytest

from blklab.analysis.disturbance import machine_findings, without_marked
from blklab.analysis.doubts import DisturbedAnswer
from blklab.analysis.verdict import analyse
from blklab.records.experiment import ExperimentRecord
from blklab.records.machine_events import DiskTraffic, KernelMessage, MachineEvents
from blklab.report.documents.comparison import compare_document
from blklab.report.sentences.machine import disturbance_text, sensitivity_text, typical_text
from blklab.report.text.conditions import conditions, quiet_sentence
from blklab.testing.experiments import QUIET, SchedulerBehaviour, make_experiment, make_spec

WORKLOAD = "random-read-4k-qd32"


def _record(events: dict[tuple[int, str], MachineEvents], **arguments: Any) -> ExperimentRecord:
    named = {(block, WORKLOAD, label): event for (block, label), event in events.items()}
    return make_experiment(make_spec(("none", "bfq"), blocks=6), events=named, **arguments)


def _changed(**changes: Any) -> MachineEvents:
    return QUIET.model_copy(update=changes)


def _traffic(read_bytes: int = 100_200_000, written_bytes: int = 400_000) -> DiskTraffic:
    return DiskTraffic(
        read_bytes=read_bytes,
        written_bytes=written_bytes,
        own_read_bytes=100_000_000,
        own_written_bytes=0,
    )


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (_changed(steal_fraction=0.05), "5.0 % of the CPU time stolen (typical: 0.1 %"),
        (_changed(pressure_ns={"memory_some": 100_000_000}), "5.0 % of the time under memory pressure"),
        (_changed(pressure_ns={"cpu_some": 600_000_000}), "30 % of the time under CPU pressure"),
        (_changed(traffic=_traffic(read_bytes=110_000_000)), "10 % of the load read by others"),
        (_changed(traffic=_traffic(written_bytes=50_000_000)), "50 % of the load written by others"),
        (_changed(frequency_mhz=1800.0), "the CPU at 1800 MHz (typical: the CPU at 2400 MHz)"),
        (_changed(temperature_celsius=80.0), "80 °C (typical: 45 °C)"),
    ],
)
def test_what_marks_a_run(event: MachineEvents, said: str) -> None:
    findings = machine_findings(_record({(3, "bfq"): event}))
    assert [(one.block, one.workload, one.scheduler) for one in findings.disturbances] == [
        (3, WORKLOAD, "bfq")
    ]
    assert said in disturbance_text(findings.disturbances[0])
    assert findings.blocks == [3]


@pytest.mark.parametrize(
    "event",
    [
        QUIET,
        _changed(steal_fraction=0.02),
        _changed(pressure_ns={"io_some": 2_000_000_000, "io_full": 2_000_000_000}),
        _changed(traffic=None, frequency_mhz=None, temperature_celsius=None, steal_fraction=None),
        _changed(frequency_mhz=3000.0, temperature_celsius=20.0),
        _changed(traffic=_traffic(read_bytes=90_000_000)),
    ],
)
def test_what_does_not(event: MachineEvents) -> None:
    assert machine_findings(_record({(3, "bfq"): event})).disturbances == []


HUNG = KernelMessage(kind="timeout", text="nvme nvme0: I/O tag 458 QID 1 timeout, aborting")


def test_what_the_kernel_logs_about_a_disk_marks_a_run_whatever_others_had() -> None:
    hung = _changed(kernel_log_read=True, kernel_messages=[HUNG, HUNG], nr_kernel_messages=2)
    every = {(block, label): hung for block in range(6) for label in ("none", "bfq")}
    findings = machine_findings(_record(every))
    assert len(findings.disturbances) == 12
    assert disturbance_text(findings.disturbances[0]) == f'the kernel\'s log: timeout (2): "{HUNG.text}"'


def test_a_run_that_takes_far_longer_than_asked_is_marked() -> None:
    asked = {(block, label): _changed(asked_ns=8_000_000_000, duration_ns=8_300_000_000)
             for block in range(6) for label in ("none", "bfq")}  # fmt: skip
    late = asked | {(2, "none"): _changed(asked_ns=8_000_000_000, duration_ns=62_400_000_000)}
    findings = machine_findings(_record(late))
    (one,) = findings.disturbances
    assert (one.block, one.scheduler) == (2, "none")
    assert "54.4 s longer than asked (typical: as long as asked)" in disturbance_text(one)
    # A load that always waits for its last writes marks none.
    slow = {key: _changed(asked_ns=8_000_000_000, duration_ns=20_000_000_000) for key in asked}
    findings = machine_findings(_record(slow))
    assert findings.disturbances == []
    assert list(map(typical_text, findings.typical)) == [
        f"in a typical run of {WORKLOAD}: 12 s longer than asked"
    ]


def test_the_report_names_what_the_kernel_logged() -> None:
    hung = _changed(kernel_log_read=True, kernel_messages=[HUNG], nr_kernel_messages=1)
    record = _record({(2, "none"): hung})
    document = compare_document(record, analyse(record))
    assert conditions(document)[0] == (
        f"The kernel's log tells of trouble with the disk during 1 run: timeout ({HUNG.text})."
    )
    assert quiet_sentence(document) is None


def test_what_all_runs_suffer_alike_marks_none_but_is_said() -> None:
    stolen = _changed(steal_fraction=0.2)
    findings = machine_findings(
        _record({(block, label): stolen for block in range(6) for label in ("none", "bfq")})
    )
    assert findings.disturbances == []
    assert list(map(typical_text, findings.typical)) == [
        f"in a typical run of {WORKLOAD}: 20 % of the CPU time stolen"
    ]


def test_runs_that_were_not_watched_say_nothing() -> None:
    record = make_experiment(make_spec(("none", "bfq")))
    assert machine_findings(record).watched == 0
    assert analyse(record).machine is None
    assert analyse(record).sensitivity is None


def test_marked_blocks_stay_in_all_figures() -> None:
    analysis = analyse(_record({(3, "bfq"): _changed(steal_fraction=0.5)}))
    assert {result.n for result in analysis.results} == {6}
    assert {pair.n for pair in analysis.comparisons} == {6}


def test_the_verdict_is_stated_with_and_without() -> None:
    stolen = _changed(steal_fraction=0.5)
    steady = {"bfq": SchedulerBehaviour(0.8), "none": SchedulerBehaviour()}
    analysis = analyse(_record({(3, "bfq"): stolen}, behaviours=steady))
    assert analysis.sensitivity is not None
    assert analysis.sensitivity.same
    assert not [one for one in analysis.verdict.doubts if isinstance(one, DisturbedAnswer)]
    assert (
        sensitivity_text(analysis.sensitivity)
        == "without the 1 marked block the answer is the same: best (none)"
    )


def test_an_answer_that_depends_on_marked_blocks_differs_without() -> None:
    stolen = _changed(steal_fraction=0.5)
    record = _record(
        {(block, "bfq"): stolen for block in range(4)}, behaviours={"bfq": SchedulerBehaviour(0.8)}
    )
    other = analyse(record).sensitivity
    assert other is not None
    assert (other.marked_runs, other.marked_blocks, other.same) == (4, [0, 1, 2, 3], False)
    assert other.status == "undecided"
    assert "different: undecided" in sensitivity_text(other)
    document = compare_document(record, analyse(record))
    warning = "4 repetitions were disturbed from outside, and without them the answer is another: undecided"
    assert [one for one in document.warnings if one.startswith(warning)], "every report shows its warnings"
    left = without_marked(record, machine_findings(record))
    assert {sample.cell.block for sample in left.samples} == {4, 5}


def test_all_blocks_marked_leave_nothing() -> None:
    stolen = _changed(steal_fraction=0.5)
    other = analyse(_record({(block, "bfq"): stolen for block in range(6)})).sensitivity
    # Half of the runs are stolen from, so the typical run lies in between; every block is marked.
    assert other is not None
    assert other.marked_blocks == [0, 1, 2, 3, 4, 5]
    assert other.status == "undecided"
