"""Builds the experiments of studies that are run again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blklab.labs.studies.replication.options import StudyOptions
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.guest import GuestOptions
from blklab.spec.machines import ZERO_CPU_TIME, load_machine
from blklab.spec.schedulers import SchedulerChoice, parse_scheduler_choices
from blklab.spec.sweeps import TunableSweep
from blklab.spec.targets import ModelTarget, parse_target
from blklab.spec.workloads import Workload


def study_spec(
    options: StudyOptions,
    target: str,
    schedulers: Sequence[str] | Sequence[SchedulerChoice],
    workloads: Sequence[Workload],
    *,
    blocks: int,
    as_printed: bool = False,
    queue: Mapping[str, str] | None = None,
    cgroups: Mapping[str, Mapping[str, str]] | None = None,
    guest: GuestOptions | None = None,
    sweep: TunableSweep | None = None,
    rate_window_ns: int | None = None,
) -> ExperimentSpec:
    """Builds one experiment.

    In models computing takes no time: no study says what it cost on its machine, and their disks are slow
    beside any processor.

    Args:
        options: The options of the study.
        target: What to test.
        schedulers: The schedulers; none for all that the target offers.
        workloads: What to run.
        blocks: Number of blocks.
        as_printed: Run one scheduler after another instead of randomised blocks.
        queue: Attributes of the queue.
        cgroups: Settings of control groups.
        guest: Settings of the guest kernel.
        sweep: Tunables to cross; its cells are schedulers too.
        rate_window_ns: Window of the rates over time.
    """
    names = [one for one in schedulers if isinstance(one, str)]
    parsed = parse_scheduler_choices(names) if names else []
    return ExperimentSpec(
        target=target,
        schedulers=[*parsed, *(one for one in schedulers if not isinstance(one, str))],
        workloads=list(workloads),
        blocks=blocks,
        seed=options.seed,
        arrangement="fixed",
        machine=load_machine(ZERO_CPU_TIME) if isinstance(parse_target(target), ModelTarget) else None,
        order="by-scheduler" if as_printed else "randomised",
        queue=dict(queue or {}),
        cgroups={name: dict(group) for name, group in (cgroups or {}).items()},
        guest=guest or GuestOptions(),
        sweeps=[sweep] if sweep else [],
        rate_window_ns=rate_window_ns,
    )
