"""The model that is searched: which one stands for a target, what both share, how long its runs are."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from blklab.backends import THIS_MACHINE, SessionOptions, Workers, backend_for
from blklab.backends.protocol import Session
from blklab.errors import RunFailedError, SpecError, UsageError
from blklab.labs.tuning.group_facts import group_conditions
from blklab.labs.tuning.group_space import GroupLoad
from blklab.labs.tuning.space import TUNED_SCHEDULERS, Space, Work, search_space
from blklab.quantities.units import NS_PER_SECOND
from blklab.records.samples import TargetDescription
from blklab.records.store import new_run_id
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.machines import DEFAULT_MACHINE, load_machine
from blklab.spec.plan import Cell, CellKey
from blklab.spec.profiles import calibrated_profiles, calibration_facts, load_profile
from blklab.spec.schedulers import SchedulerChoice
from blklab.spec.targets import ModelTarget, parse_target

_IOS_OF_A_RUN = 20_000
"""A run is as long as it takes for about so many I/Os, but no longer than the load itself says …"""
_SHORTEST_NS = NS_PER_SECOND // 2
"""… and no shorter than this."""
_PILOT_NS = NS_PER_SECOND // 4
_SHARED = {"read_ahead_kb": 1 << 20, "max_sectors_kb": 32_767, "nomerges": 2, "rq_affinity": 2}
"""Attributes of the target's queue that the model takes over, each with the most that it takes."""
_SIM = "sim"


@dataclass(frozen=True)
class FoundTarget:
    """A target before it is tuned."""

    description: TargetDescription
    default: SchedulerChoice
    settings: Mapping[str, Mapping[str, str]]
    """By scheduler that can be tuned there: its tunables and the queue's attributes, with their defaults."""
    group_attributes: frozenset[str] = frozenset()
    """Attributes of control groups there; empty for a load without groups."""


def find_target(spec: ExperimentSpec, *, dry_run: bool = False) -> FoundTarget:
    """Looks at a target: its schedulers and their defaults. Leaves no change behind.

    Args:
        spec: The experiment on it.
        dry_run: Changes nothing meanwhile either: a disk's scheduler is not switched, so that its defaults
            stay unknown.

    Raises:
        UsageError: if a scheduler is named that tuning does not know, or with settings of its own.
        SpecError: if the target has no scheduler of its own to compare with, or offers none that is tuned.
        RequirementError: if the load has control groups, and the target none with the I/O controller.
        BlklabError: if the target cannot be opened.
    """
    for choice in spec.schedulers:
        if choice.name not in TUNED_SCHEDULERS or choice.without_label != choice.name:
            raise UsageError(
                f"{choice.without_label}: tuning takes names of schedulers and finds their settings",
                hint=f"it knows {', '.join(TUNED_SCHEDULERS)}",
            )
    with opened(spec, dry_run=dry_run) as session:
        description = session.target
        if description.default_scheduler is None:
            raise SpecError(
                f"{spec.target} has no scheduler of its own to compare with", hint="tune a single disk"
            )
        wanted = [choice.name for choice in spec.schedulers] or list(TUNED_SCHEDULERS)
        names = [name for name in wanted if name in description.schedulers]
        if not names:
            raise SpecError(f"{spec.target} offers none of {', '.join(wanted)}")
        settings = {name: session.tunable_defaults(_plain(name)) or {} for name in names}
        # bfq's weight appears with bfq, which has been in force by now.
        attributes = session.group_attributes() if GroupLoad.of(spec.workloads).groups else frozenset()
    return FoundTarget(description, _plain(description.default_scheduler), settings, attributes)


def model_for(spec: ExperimentSpec, asked: str | None, folder: Path) -> str:
    """The target of the search.

    Args:
        spec: The experiment on the target.
        asked: The model as the person named it; None if they did not.
        folder: Where profiles that calibration wrote are looked for.

    Returns:
        What was asked for; else the target itself, if it is a model; else the newest profile of it.

    Raises:
        UsageError: if that is no simulated device, or there is none for the target.
    """
    target = spec.parsed_target
    if asked is not None:
        named = parse_target(asked)
        if not isinstance(named, ModelTarget) or named.scheme != _SIM:
            raise UsageError(f"--model {asked} is not a simulated device", hint="such as sim:my-disk.toml")
        return named.text
    if isinstance(target, ModelTarget):
        return f"{_SIM}:{target.text.partition(':')[2]}"
    own = [one for one in calibrated_profiles(folder) if calibration_facts(one).get("target") == spec.target]
    if not own:
        raise UsageError(
            f"there is no model of {spec.target} to search on",
            hint=f"make one: blklab calibrate disk {spec.target} -o my-disk.toml; or name one with --model",
        )
    newest = max(own, key=lambda one: str(calibration_facts(one).get("measured_on", "")))
    return f"{_SIM}:{newest.source}"


def spec_on_model(spec: ExperimentSpec, model: str, target: TargetDescription) -> ExperimentSpec:
    """The experiment on the model: the same load and conditions, with what the target's queue is like.

    Raises:
        BlklabError: if the model or its cost table cannot be read.
    """
    here = parse_target(model)
    if not isinstance(here, ModelTarget):
        raise TypeError(f"{model} is no model")  # `model_for` gives only models
    own = str(calibration_facts(load_profile(here.device)).get("machine", "")) or DEFAULT_MACHINE
    is_model = isinstance(spec.parsed_target, ModelTarget)
    queue = {} if is_model else _shared_attributes(target)
    return spec.model_copy(
        update={
            "target": model,
            "schedulers": [],
            "machine": spec.machine or load_machine(own),
            "queue": queue | spec.queue,
            "precondition": spec.precondition and is_model,
            "allow_writes": False,
        }
    )


def _shared_attributes(target: TargetDescription) -> dict[str, str]:
    found = target.disks[0].queue
    return {
        name: found[name]
        for name, most in _SHARED.items()
        if found.get(name, "").isdigit() and int(found[name]) <= most
    }


def space_of(
    spec: ExperimentSpec, found: FoundTarget, session: Session, vary: Sequence[str], *, own_model: bool
) -> Space:
    """The candidates: settings that both the target and the model have.

    Args:
        spec: The experiment on the model.
        found: The target.
        session: Of the model.
        vary: Names of the settings to vary; empty for all that matter.
        own_model: Whether the model is of the very disk that is tuned.

    Raises:
        UsageError, TunableError: as for `search_space`.
        RunFailedError: if the model fails under its default.
    """
    work = Work.of(
        spec.workloads,
        rotational=bool(found.description.disks[0].rotational),
        several_processors=spec.machine is not None and spec.machine.cpus > 1,
    )
    modelled = {name: session.tunable_defaults(_plain(name)) or {} for name in found.settings}
    common = {
        name: {key: value for key, value in (had or modelled[name]).items() if key in modelled[name]}
        for name, had in found.settings.items()
    }
    if spec.machine is not None:
        # Not among the effective attributes of the model, which has it all the same.
        common = {name: {"rq_affinity": "1"} | had for name, had in common.items()}
    depth = common.get("none", {}).get("nr_requests", "")
    groups = group_conditions(
        spec,
        session,
        found.default,
        found.group_attributes & session.group_attributes(),
        own_model=own_model,
        vary=vary,
    )
    queue_depth = int(depth) if depth.isdigit() else None
    return search_space(common, work, vary=vary, queue_depth=queue_depth, groups=groups)


def run_length_ns(spec: ExperimentSpec, default: SchedulerChoice) -> int | None:
    """Length of a run on the model, from a short run of each workload; None if no load is time-based.

    Args:
        spec: The experiment on the model.
        default: The scheduler of these runs.

    Raises:
        RunFailedError: if a run fails.
    """
    own_ns = [
        spec.runtime_ns or job.runtime_ns or _SHORTEST_NS
        for workload in spec.workloads
        for job in workload.jobs
        if job.time_based
    ]
    if not own_ns:
        return None
    short = spec.model_copy(update={"runtime_ns": _PILOT_NS})
    rates = []
    label = default.label
    with opened(short) as session:
        session.check([default], short.workloads)
        for workload in short.workloads:
            key = CellKey(block=0, sequence=0, position=0, workload=workload.name, scheduler=label, seed=0)
            sample = session.run(Cell(key=key, scheduler=default, workload=workload))
            if sample.status == "failed":
                raise RunFailedError(f"the model fails under its default: {sample.error}")
            ios = sum(entry.ios for job in sample.jobs for entry in job.data_directions())
            rates.append(ios * NS_PER_SECOND / _PILOT_NS)
    needed_ns = round(_IOS_OF_A_RUN * len(rates) / max(sum(rates), 1.0) * NS_PER_SECOND)
    return min(max(needed_ns, _SHORTEST_NS), max(own_ns))


def opened(
    spec: ExperimentSpec, *, dry_run: bool = False, workers: Workers = THIS_MACHINE
) -> AbstractContextManager[Session]:
    """A session of an experiment's target, under its conditions."""
    target = spec.parsed_target
    run_id = new_run_id(datetime.datetime.now(datetime.timezone.utc))
    options = SessionOptions(run_id=run_id, workers=workers, dry_run=dry_run, **spec.conditions())
    return backend_for(target).open(target, options)


def _plain(name: str) -> SchedulerChoice:
    return SchedulerChoice(name=name, label=name)
