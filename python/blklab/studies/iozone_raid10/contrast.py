"""Readers beside writers: where the scheduler decides, and where it does not.

A disk takes so many commands at once (32 here, its tags). Writers that have fewer under way leave some to
the readers, whose reads then wait for nobody: no scheduler has anything to choose from. Writers that have
more fill the disk; then the kinds differ:

* Under a scheduler the writes that wait stand in its queue, and each tag that is given back takes the next
  one of them at once (``blk_mq_dispatch_rq_list``, block/blk-mq.c, Linux 6.1), so that a read waits for a
  write to end, if the scheduler lets it go first, and for more if not.
* Without one a writer sleeps until a tag is free, and sleepers are woken for several tags at once
  (``wake_batch``, lib/sbitmap.c): a reader that comes meanwhile takes one that lies free.
"""

from __future__ import annotations

from collections.abc import Mapping

from blklab.analysis.metrics import iops
from blklab.quantities.formatting import rounded
from blklab.records.experiment import ExperimentRecord
from blklab.studies.iozone_raid10.experiments import CONTRAST, SHALLOW
from blklab.studies.replication.result import Estimate, Statement
from blklab.studies.replication.statements import equal, greater, mean_of

MATTERS_FROM = 1.1
"""Readers of one scheduler over those of another from which on the choice matters."""
WITHOUT = "none"
QUEUEING = ("mq-deadline", "kyber")
"""Schedulers that keep the disks full and wait for nobody's next I/O."""
WAITING = ("cfq", "bfq")
"""Schedulers that keep others waiting for the next I/O of the process that they serve."""

Speeds = dict[str, dict[int, float]]
"""Reads a second, by scheduler and block."""


def contrast_statements(records: Mapping[str, ExperimentRecord]) -> list[Statement]:
    """What the readers got, while writers fill the disks and while they do not."""
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
        "With readers beside writers on the same disks, the scheduler decides: one lets them read more than "
        f"{MATTERS_FROM:g} times as much as another.",
        _ratio(speeds, best, worst),
        MATTERS_FROM,
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
        MATTERS_FROM,
        origin="ours",
        why=f"against {best}. A scheduler fills each place that the disk has free with a write that waits; "
        "without one the writers sleep until several places are free, and a reader takes one of them",
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
        "Beside writers that leave room in the disks' queues, no scheduler matters to readers but one that "
        "waits for them.",
        _ratio(speeds, best, worst),
        why=f"{best} over {worst}; no disk had more than {deepest} commands under way. {_spelt(speeds)}",
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


def _ratio(speeds: Speeds, one: str, other: str) -> Estimate:
    """Run by run of a block."""
    blocks = sorted(speeds[one].keys() & speeds[other].keys())
    return mean_of([speeds[one][block] / speeds[other][block] for block in blocks])


def _spelt(speeds: Speeds) -> str:
    means = {label: _mean(speeds, label) for label in speeds}
    return ", ".join(
        f"{label} {rounded(value)} reads/s" for label, value in sorted(means.items(), key=lambda one: -one[1])
    )
