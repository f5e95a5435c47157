"""An experiment in the order by-scheduler, as studies were run, is made whole."""

from __future__ import annotations

from blklab.experiment.blocks import NullRunObserver
from blklab.experiment.pipeline import compare
from blklab.records.store import Store
from blklab.spec.request import SpecValues, build_specs


def test_every_run_of_every_scheduler_is_made() -> None:
    given = SpecValues(
        targets=["sim:fixed"],
        schedulers=["none", "mq-deadline", "bfq"],
        workloads=["random-read-4k-qd1"],
        blocks=2,
        order="by-scheduler",
    )
    (spec,) = build_specs(given)
    spec = spec.model_copy(update={"runtime_ns": 20_000_000})
    with Store.opened("sqlite://") as store:
        record = compare(spec, store, NullRunObserver())
    made = [(sample.cell.scheduler, sample.cell.block) for sample in record.samples]
    assert made == [(name, block) for name in ("none", "mq-deadline", "bfq") for block in (0, 1)]
