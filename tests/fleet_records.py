"""Made-up experiments on the drives of a fleet."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from blklab.records.experiment import ExperimentRecord
from blklab.spec.workloads import Workload
from blklab.testing.experiments import SchedulerBehaviour, make_experiment, make_spec

MODEL = "EXAMPLE SSD 1TB"


def make_fleet(
    effects: Mapping[str, float],
    *,
    drives: int = 6,
    spread: float = 0.02,
    blocks: int = 5,
    tails: Mapping[str, float] | None = None,
    workloads: Sequence[Workload] = (),
    model: str = MODEL,
    name: str = "nvme0n1",
) -> list[ExperimentRecord]:
    """One experiment on each drive.

    `effects` are the logarithms of the schedulers' mean speeds, `tails` factors on their spread of latencies.
    """
    records = []
    for number in range(drives):
        generator = np.random.default_rng([number, 7])
        own = {label: effect + generator.normal(0, spread) for label, effect in effects.items()}
        record = make_experiment(
            make_spec(tuple(effects), workloads, blocks=blocks, seed=number + 1),
            behaviours={
                label: SchedulerBehaviour(speed=math.exp(log), tail=(tails or {}).get(label, 1.0))
                for label, log in own.items()
            },
        )
        records.append(on_drive(record, number, model=model, name=name))
    return records


def on_drive(
    record: ExperimentRecord,
    number: int,
    *,
    model: str = MODEL,
    name: str = "nvme0n1",
    run_id: str | None = None,
    created_at: str = "2026-01-02T03:04:05+00:00",
) -> ExperimentRecord:
    """The experiment on a drive that its number tells apart from others, two drives in each host."""
    disk = record.target.disks[0].model_copy(
        update={"identity": f"drive{number}", "name": name, "model": model, "rotational": False}
    )
    return record.model_copy(
        update={
            "run_id": run_id or f"20260102-0304-a{number:03d}",
            "created_at": created_at,
            "target": record.target.model_copy(update={"disks": [disk]}),
            "machine": record.machine.model_copy(update={"details": {"host": f"host{number // 2}"}}),
        }
    )
