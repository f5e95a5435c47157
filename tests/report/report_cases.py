"""Experiments whose reports are tested and inspected; each shows something different."""

from __future__ import annotations

import functools
from collections.abc import Callable

from blklab.analysis.verdict import Analysis, analyse
from blklab.records.experiment import ExperimentRecord
from blklab.report.documents.comparison import compare_document
from blklab.report.html.comparison import render_html
from blklab.testing.experiments import (
    QUIET,
    SchedulerBehaviour,
    WorkloadBehaviour,
    make_experiment,
    make_spec,
    make_target,
    make_workload,
)

HOSTILE = "</script><script>document.title='taken over'</script><img src=x onerror=alert(2)> & \"it's\""
"""Text that a job file, a label or a disk's model may hold."""

TWELVE = (
    "none",
    "mq-deadline",
    "kyber",
    "bfq",
    "calm=bfq:slice_idle=0:low_latency=0:back_seek_max=16384:timeout_sync=125",
    "bfq:slice_idle=0:low_latency=0",
    "mq-deadline:fifo_batch=1:read_expire=50",
    "k2=kyber:read_lat_nsec=1000000",
    "n2=none",
    "n3=none",
    "n4=none",
    "n5=none",
)

_random_read = make_workload("random-read-4k-qd32", source="random-read-4k-qd32")
_log = make_workload(
    "write-ahead-log",
    purpose="A database's log: one writer, fdatasync after each write.",
    decide_by="sync_latency_p99",
    reads=False,
    syncs=True,
    iodepth=1,
)
_beside = make_workload(
    "reader-beside-writers",
    purpose="A reader that must be quick beside four writers.",
    decide_by="latency_p99",
    background=True,
    iodepth=1,
)
_control = make_workload(
    "cached-read",
    purpose="Reads from the page cache.",
    control=True,
    decide_by="throughput",
    block_size_bytes=1 << 20,
    iodepth=1,
)


def decided() -> ExperimentRecord:
    """One winner in two workloads, a quiet control, and a machine that grows slower."""
    return make_experiment(
        make_spec(workloads=[_random_read, _beside, _control], blocks=8),
        behaviours={
            "mq-deadline": SchedulerBehaviour(0.93, tail=1.2),
            "kyber": SchedulerBehaviour(0.95, 0.02, tail=1.2),
            "bfq": SchedulerBehaviour(0.45, 0.03, tail=1.6),
        },
        workloads={
            "cached-read": WorkloadBehaviour(
                4000, 1, 0.2, {name: SchedulerBehaviour() for name in ("none", "mq-deadline", "kyber", "bfq")}
            ),
            "reader-beside-writers": WorkloadBehaviour(900, 1, 0.8),
        },
        drift=-0.15,
    )


def equal() -> ExperimentRecord:
    """The same scheduler under two labels."""
    return make_experiment(make_spec(["first=none", "second=none"], [_random_read], blocks=10))


def undecided() -> ExperimentRecord:
    """Much noise, few blocks."""
    return make_experiment(
        make_spec(workloads=[_random_read, _log], blocks=5),
        behaviours={
            "none": SchedulerBehaviour(1, 0.08),
            "kyber": SchedulerBehaviour(1.03, 0.08),
            "mq-deadline": SchedulerBehaviour(1.01, 0.05),
            "bfq": SchedulerBehaviour(0.6, 0.05),
        },
        workloads={"write-ahead-log": WorkloadBehaviour(90, 1, 0.6)},
    )


def depends() -> ExperimentRecord:
    """One scheduler wins here, the other there."""
    return make_experiment(
        make_spec(["none", "bfq"], [_random_read, _beside], blocks=8),
        behaviours={"bfq": SchedulerBehaviour(0.8)},
        workloads={
            "reader-beside-writers": WorkloadBehaviour(900, 1, 0.5, {"none": SchedulerBehaviour(0.5)}),
        },
    )


def damaged() -> ExperimentRecord:
    """Aborted after one block, failed runs, twelve schedulers, hostile text wherever text can be."""
    hostile = make_workload(
        'odd <b>name</b> & "quotes"', purpose=HOSTILE, remark=HOSTILE, source="./odd name's.fio"
    )
    spec = make_spec(TWELVE, [hostile], blocks=6, target="/srv/Ünï <odd> 'path' \"x\"")
    first = spec.schedulers[0].model_copy(update={"label": "<i>none</i> & \"co\" 'x'"})
    spec = spec.model_copy(update={"schedulers": [first, *spec.schedulers[1:]]})
    return make_experiment(
        spec,
        behaviours={"bfq": SchedulerBehaviour(0.05)},
        blocks_made=1,
        failures=[(0, hostile.name, "kyber"), (0, hostile.name, "n3")],
        state="interrupted",
        target=make_target(spec, model=HOSTILE),
        warnings=[HOSTILE],
    )


def twelve() -> ExperimentRecord:
    """Twelve schedulers in twenty blocks, one failed run."""
    spec = make_spec(TWELVE, [_random_read], blocks=20)
    return make_experiment(
        spec,
        behaviours={
            choice.label: SchedulerBehaviour(1 - 0.03 * index, 0.02, tail=1 + 0.05 * index)
            for index, choice in enumerate(spec.schedulers)
        },
        failures=[(3, _random_read.name, "kyber")],
        drift=0.3,
    )


def suspicious() -> ExperimentRecord:
    """A control that differs."""
    return make_experiment(
        make_spec(["none", "bfq"], [_random_read, _control]),
        behaviours={"bfq": SchedulerBehaviour(0.8)},
        workloads={"cached-read": WorkloadBehaviour(4000, 1, 0.2, {"bfq": SchedulerBehaviour(0.7)})},
    )


def empty() -> ExperimentRecord:
    """Aborted before the first run ended."""
    return make_experiment(make_spec(workloads=[_random_read]), blocks_made=0, state="interrupted")


def purpose() -> ExperimentRecord:
    """A goal whose metrics conflict, a virtual machine with steal time, runs that slow down."""
    stolen = QUIET.model_copy(update={"steal_fraction": 0.2})
    return make_experiment(
        make_spec(workloads=[_random_read, _beside], blocks=8, goal="iops=0.6,latency_p99=0.4"),
        behaviours={
            "mq-deadline": SchedulerBehaviour(0.8, tail=1.2),
            "kyber": SchedulerBehaviour(0.95, 0.02, tail=0.4, change=-0.4),
            "bfq": SchedulerBehaviour(0.45, 0.03, tail=1.6),
        },
        over_time=True,
        events={(2, "random-read-4k-qd32", "bfq"): stolen, (5, "reader-beside-writers", "none"): stolen},
    )


def swept() -> ExperimentRecord:
    """Two tunables of bfq crossed."""
    spec = make_spec(
        ["none"],
        [_random_read],
        blocks=8,
        sweeps=["bfq:slice_idle=0,8,20:low_latency=0"],
        sweep_defaults={"slice_idle": "8", "low_latency": "1"},
    )
    return make_experiment(
        spec,
        behaviours={
            choice.label: SchedulerBehaviour(
                (1.3 if choice.tunables.get("slice_idle") == "0" else 1.0)
                * (0.9 if "low_latency" in choice.tunables else 1.0)
            )
            for choice in spec.schedulers
        },
    )


CASES: dict[str, Callable[[], ExperimentRecord]] = {
    case.__name__: case
    for case in (decided, equal, undecided, depends, damaged, twelve, suspicious, empty, purpose, swept)
}


@functools.cache
def analysed(case: str) -> tuple[ExperimentRecord, Analysis]:
    """A case with its analysis, made once."""
    record = CASES[case]()
    return record, analyse(record)


@functools.cache
def html_of(case: str) -> str:
    """A case's HTML report, made once."""
    record, analysis = analysed(case)
    return render_html(record, compare_document(record, analysis))
