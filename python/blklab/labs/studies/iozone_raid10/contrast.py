"""Reads the runs of readers beside writers, a load under which the scheduler can matter.

A disk takes a limited number of commands at once (32 here, its tags). If the writers have fewer in flight,
the readers find tags free and their reads wait for no other request: a scheduler has no choice to make. If
the writers have more in flight, they fill the disk, and the kinds of scheduler differ:

* Under a scheduler, waiting writes are in its queue, and each freed tag goes to the next of them at once
  (``blk_mq_dispatch_rq_list``, block/blk-mq.c, Linux 6.1). A read therefore waits for a write to complete, if
  the scheduler puts it first, and longer if not.
* Without one, a writer sleeps until a tag is free, and sleepers are woken for several tags at once
  (``wake_batch``, lib/sbitmap.c): a reader that arrives in between takes a free tag.
"""

from __future__ import annotations

from collections.abc import Mapping

from blklab.analysis.metrics import iops
from blklab.labs.studies.iozone_raid10.experiments import CONTRAST, SHALLOW
from blklab.labs.studies.replication.result import IntervalEstimate, Statement
from blklab.labs.studies.replication.statements import equal, greater, mean_of
from blklab.quantities.formatting import rounded
from blklab.records.experiment import ExperimentRecord

DECIDES_FROM = 1.1
"""Ratio of the readers' rates under two schedulers from which the choice matters."""
WITHOUT = "none"
QUEUEING = ("mq-deadline", "kyber")
"""Schedulers that keep the disks full and do not idle for a process's next I/O."""
WAITING = ("cfq", "bfq")
"""Schedulers that idle for the next I/O of the process that they serve."""

Speeds = dict[str, dict[int, float]]
"""Reads per second, by scheduler and block."""


def contrast_statements(records: Mapping[str, ExperimentRecord]) -> list[Statement]:
    """States what the readers get while writers fill the disks, and while they do not."""
    speeds = _speeds(records[CONTRAST])
    found = [_decides(speeds)]
    queueing = [label for label in QUEUEING if label in speeds]
    if WITHOUT in speeds and queueing:
        found.append(_without(speeds, queueing))
    if SHALLOW in records:
        found.append(_shallow(records[SHALLOW]))
    return found


def _decides(speeds: Speeds) -> Statement:
    best, worst = _ends(speeds)
    return greater(
        "contrast",
        "With readers beside writers on the same disks, the scheduler decides: under one they read more than "
        f"{DECIDES_FROM:g} times as much as under another.",
        _ratio(speeds, best, worst),
        DECIDES_FROM,
        origin="ours",
        why=_spelt(speeds),
    )


def _without(speeds: Speeds, queueing: list[str]) -> Statement:
    best = max(queueing, key=lambda label: _mean(speeds, label))
    return greater(
        "contrast-none",
        f"Beside writers that fill the disks' queues, readers read more under {WITHOUT} than under "
        f"{' and '.join(queueing)}.",
        _ratio(speeds, WITHOUT, best),
        DECIDES_FROM,
        origin="ours",
        why=f"against {best}. A scheduler gives each free tag of the disk to a waiting write at once; "
        "without one the writers sleep until several tags are free, and a reader takes one of them",
    )


def _shallow(record: ExperimentRecord) -> Statement:
    speeds = _speeds(record)
    best, worst = _ends({label: speeds[label] for label in speeds if label not in WAITING})
    deepest = max(
        (
            member["peak_in_flight"]
            for sample in record.samples
            for member in sample.engine.get("members", [])
        ),
        default=0,
    )
    return equal(
        "contrast-shallow",
        "Beside writers that leave tags free, no scheduler matters to readers except one that "
        "idles for them.",
        _ratio(speeds, best, worst),
        why=f"{best} over {worst}; no disk had more than {deepest} commands in flight. {_spelt(speeds)}",
    )


def _speeds(record: ExperimentRecord) -> Speeds:
    speeds: Speeds = {}
    for sample in record.samples:
        focus = [job for job in sample.jobs if job.name == "reader"]
        value = iops.compute(focus) if sample.status == "ok" else None
        if value:
            speeds.setdefault(sample.cell.scheduler, {})[sample.cell.block] = value
    return speeds


def _ends(speeds: Speeds) -> tuple[str, str]:
    """The best scheduler and the worst."""
    in_order = sorted(speeds, key=lambda label: _mean(speeds, label))
    return in_order[-1], in_order[0]


def _mean(speeds: Speeds, label: str) -> float:
    return mean_of(list(speeds[label].values())).value


def _ratio(speeds: Speeds, one: str, other: str) -> IntervalEstimate:
    """One scheduler over another, in pairs of runs of the same block."""
    blocks = sorted(speeds[one].keys() & speeds[other].keys())
    return mean_of([speeds[one][block] / speeds[other][block] for block in blocks])


def _spelt(speeds: Speeds) -> str:
    means = {label: _mean(speeds, label) for label in speeds}
    return ", ".join(
        f"{label} {rounded(value)} reads/s" for label, value in sorted(means.items(), key=lambda one: -one[1])
    )
