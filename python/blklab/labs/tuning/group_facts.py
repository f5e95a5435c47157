"""Facts about the control groups of a load, found on the model before the search."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from blklab.backends.protocol import Session
from blklab.errors import RequirementError, RunFailedError
from blklab.labs.calibration.disk.ground import opened_ground
from blklab.labs.iocost.determine import QUEUE, require_suitable
from blklab.labs.iocost.estimates import LEAST_ROUNDS
from blklab.labs.iocost.measuring import IocostPlan
from blklab.labs.iocost.stages import IocostStages, measured
from blklab.labs.tuning.group_space import CostFigures, GroupConditions, GroupLoad
from blklab.quantities.units import NS_PER_SECOND
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.group_settings import KEYED, OF_DISK
from blklab.spec.plan import Cell, CellKey, derive_seed
from blklab.spec.profiles import calibration_facts, load_profile
from blklab.spec.schedulers import SchedulerChoice
from blklab.spec.targets import ModelTarget, parse_target

_RUNTIME_US = {True: 500_000, False: 100_000}
"""Of each load that io.cost's parameters are measured with, by whether the disk rotates."""


class _Silent:
    def planned(self, plan: IocostPlan) -> None: ...
    def announce(self, line: str) -> None: ...
    def measuring(self, name: str, *, done: int, planned: int, left_ns: int | None = None) -> None: ...


def group_conditions(
    spec: ExperimentSpec,
    session: Session,
    default: SchedulerChoice,
    attributes: frozenset[str],
    *,
    own_model: bool,
    vary: Sequence[str],
) -> GroupConditions:
    """Facts that the settings of groups follow from; empty for a load without groups.

    Args:
        spec: The experiment on the model.
        session: Of the model.
        default: The scheduler under which the load is looked at.
        attributes: Those that target and model both have.
        own_model: Whether the model is of the very disk that is tuned.
        vary: Names as a person gave them; empty for all that the load can feel.

    Raises:
        RunFailedError: if the model fails under its default.
    """
    load = GroupLoad.of(spec.workloads)
    if not load.groups:
        return GroupConditions()
    limits = "io.max" in attributes and _is_wanted("io.max", vary, load)
    weights = "io.weight" in attributes and _is_wanted("io.weight", vary, load)
    cost = "io.cost.qos" in attributes and (weights or any(_is_wanted(one, vary, load) for one in OF_DISK))
    return GroupConditions(
        load=load,
        attributes=attributes,
        given=spec.cgroups,
        moved=_moved(spec, session, default) if limits else {},
        cost=_cost_figures(spec, own_model=own_model) if cost else None,
    )


def _is_wanted(attribute: str, vary: Sequence[str], load: GroupLoad) -> bool:
    """Whether some setting of an attribute is varied."""
    if not vary:
        return load.compete
    return any(
        one.rpartition("/")[2] == attribute
        or (attribute in KEYED and one.rpartition("/")[2].startswith(f"{attribute}."))
        for one in vary
    )


def _moved(
    spec: ExperimentSpec, session: Session, default: SchedulerChoice
) -> Mapping[tuple[str, str], float]:
    """Bytes a second of each group, by direction: the most under any workload."""
    found: dict[tuple[str, str], float] = defaultdict(float)
    for workload in spec.workloads:
        seed = derive_seed(spec.seed, "groups", workload.name)
        key = CellKey(
            block=0, sequence=0, position=0, workload=workload.name, scheduler=default.label, seed=seed
        )
        sample = session.run(Cell(key=key, scheduler=default, workload=workload))
        if sample.status == "failed":
            raise RunFailedError(f"the model fails under its default: {sample.error}")
        groups = {job.name: job.cgroup for job in workload.jobs}
        here: dict[tuple[str, str], float] = defaultdict(float)
        for job in sample.jobs:
            group = groups.get(job.name)
            if group is None or not job.runtime_ns:
                continue
            for entry in job.data_directions():
                here[group, entry.direction[0]] += entry.bytes * NS_PER_SECOND / job.runtime_ns
        for place, rate in here.items():
            found[place] = max(found[place], rate)
    return dict(found)


def _cost_figures(spec: ExperimentSpec, *, own_model: bool) -> CostFigures | None:
    """io.cost's parameters, measured on the model; None where io.cost has none, as for arrays."""
    target = spec.parsed_target
    if not isinstance(target, ModelTarget) or spec.machine is None:
        raise TypeError(f"{spec.target} is no model with a cost table")
    with opened_ground(target, seed=spec.seed, machine=spec.machine, queue=QUEUE) as ground:
        try:
            require_suitable(ground)
        except RequirementError:
            return None
        stages = IocostStages(
            rounds=LEAST_ROUNDS,
            runtime_us=_RUNTIME_US[ground.facts.rotational],
            processes=1,
            seed=spec.seed,
        )
        found = measured(ground, stages, _Silent())
    rlat_us, wlat_us = found.latencies_us
    return CostFigures(found.percentile, rlat_us, wlat_us, found.model if own_model else {})


def is_own_model(spec: ExperimentSpec, model: str) -> bool:
    """Whether a model is of the very disk: the target itself, or a profile that calibration made of it.

    Args:
        spec: The experiment on the target.
        model: Target of the search.
    """
    target = parse_target(model)
    if not isinstance(target, ModelTarget):
        return False
    if isinstance(spec.parsed_target, ModelTarget):
        return spec.parsed_target.text.partition(":")[2] == target.text.partition(":")[2]
    return calibration_facts(load_profile(target.device)).get("target") == spec.target
