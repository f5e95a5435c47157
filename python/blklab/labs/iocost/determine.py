"""Determines io.cost's parameters: measures the disk, sweeps a model of it, puts the solutions together."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass

from blklab.errors import RequirementError, UsageError
from blklab.labs.calibration.disk.ground import SessionGround, opened_ground
from blklab.labs.iocost.document import SCHEMA, IoCostDocument, Sweep
from blklab.labs.iocost.drive import calibrated_facts, drive_of, model_forms, obstacle_here
from blklab.labs.iocost.measuring import IocostObserver
from blklab.labs.iocost.model_sweep import solutions_of_sweep, sweep_of, tried
from blklab.labs.iocost.remarks import remarks_on_disk, remarks_on_profile, remarks_on_sweep
from blklab.labs.iocost.solutions import NAIVE, Solution, naive
from blklab.labs.iocost.stages import IocostStages, Measured, measured
from blklab.labs.iocost.sweep import SweptDisk
from blklab.labs.iocost.written import model_line, qos_line
from blklab.linux.machine.description import describe_machine
from blklab.simulator.request import model_target
from blklab.spec.machines import DEFAULT_MACHINE, Machine, load_machine
from blklab.spec.profiles import load_profile
from blklab.spec.targets import ModelTarget, Target, parse_target

QUEUE = {"nomerges": "2"}
"""While loads run: the model prices I/Os before they are merged."""


@dataclass(frozen=True)
class IoCostRequest:
    """The target, and how its parameters are determined."""

    target: str
    profile: str | None
    """A model of the disk to sweep, as after ``sim:``; None for the target itself if it is a model."""
    sweeps: bool
    models: tuple[str, ...]
    """The drive's model in udev; empty to find it."""
    needs_model: bool
    """Whether it is an error if the drive has none."""
    machine: Machine | None
    """The cost table of models; None for the one that a calibrated profile names, or the usual one."""
    solution: str | None
    """The solution whose lines are wanted; None for the first."""
    stages: IocostStages
    file_bytes: int | None


def determined(request: IoCostRequest, observer: IocostObserver) -> IoCostDocument:
    """Determines the parameters.

    Raises:
        BlklabError: if the disk cannot be measured, or lacks what the request needs.
    """
    target = parse_target(request.target)
    profile = _profile(request, target)
    if request.solution not in {None, NAIVE} and not (request.sweeps and profile):
        raise UsageError(
            f"the solution {request.solution} needs a sweep of a model of the disk",
            hint="--profile my-disk.toml, a profile that `blklab calibrate` wrote",
        )
    machine = _machine(request, profile)
    with opened_ground(
        target,
        seed=request.stages.seed,
        machine=machine,
        file_bytes=request.file_bytes,
        queue=QUEUE,
    ) as ground:
        facts = ground.facts
        require_suitable(ground)
        drive = drive_of(target, ground.target)
        models = request.models or drive.models or _models_of(profile)
        if request.needs_model:
            require_model(models)
        of_disk = measured(ground, request.stages, observer)
    remarks = [*remarks_on_disk(target, facts), *of_disk.remarks]
    solutions = [naive(of_disk.model, percentile=of_disk.percentile, latencies_us=of_disk.latencies_us)]
    sweep = None
    if request.sweeps and profile is not None:
        of_model = of_disk
        if not isinstance(target, ModelTarget):
            of_model = _measured_on(profile, request, machine, observer)
            remarks += remarks_on_profile(of_disk.coefficients, of_model.coefficients)
        disk = SweptDisk(
            device=profile,
            model=of_model.model,
            space_bytes=of_model.space_bytes,
            machine=machine,
            seed=request.stages.seed,
            latencies_us=of_model.latencies_us,
            queue=QUEUE,
        )
        sweep, solutions = _swept(disk, of_model, of_disk, solutions, observer)
        remarks += remarks_on_sweep(sweep)
    if drive.device_number is not None and (obstacle := obstacle_here()) is not None:
        remarks.append(obstacle)
    chosen = _chosen(request.solution, solutions)
    return IoCostDocument(
        schema=SCHEMA,
        target=request.target,
        disk=facts.model or facts.name,
        models=list(models),
        device_number=drive.device_number,
        measured_on=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        kernel=describe_machine().kernel,
        machine=machine.source if isinstance(target, ModelTarget) else None,
        seed=request.stages.seed,
        rounds=request.stages.rounds,
        runtime_s=request.stages.runtime_us / 1e6,
        percentile=of_disk.percentile,
        coefficients=of_disk.coefficients,
        latencies=of_disk.latencies,
        sweep=sweep,
        solutions=solutions,
        chosen=chosen.name,
        model_line=model_line(chosen.parameters, drive.device_number),
        qos_line=qos_line(chosen.parameters, drive.device_number),
        remarks=remarks,
    )


def require_suitable(ground: SessionGround) -> None:
    """Makes sure that io.cost's parameters can be measured on a disk.

    Raises:
        RequirementError: if they cannot.
    """
    if not ground.facts.writable:
        raise RequirementError(
            f"{ground.target.target} is only read, and half of the coefficients are about writes",
            hint="name a directory on it, or loop:4g,dir=DIRECTORY",
        )
    if len(ground.target.disks) > 1:
        names = ", ".join(disk.name for disk in ground.target.disks)
        raise RequirementError(
            f"{ground.target.target} lies on {names}, and io.cost has parameters for each disk",
            hint="measure them one after the other",
        )


def require_model(models: Sequence[str]) -> None:
    """Makes sure that udev can find the drive in its hardware database.

    Raises:
        RequirementError: if the drive has no model.
    """
    if not models:
        raise RequirementError(
            "udev's hardware database finds a drive by its model, and this one has none",
            hint="name it as udev does (ID_MODEL of `udevadm info /dev/sda`): --drive MODEL",
        )


def _profile(request: IoCostRequest, target: Target) -> str | None:
    """The model of the disk, as after ``sim:``; None for none."""
    if isinstance(target, ModelTarget):
        if request.profile is not None:
            raise UsageError("a model is swept itself", hint="leave --profile out")
        named = request.target
    elif request.profile is not None:
        named = request.profile
    else:
        return None
    # A profile that cannot be read is an error before anything is measured.
    device = named.removeprefix("sim:").removeprefix("uml:")
    load_profile(model_target(device).device)
    return device


def _models_of(profile: str | None) -> tuple[str, ...]:
    """The drive's model that a calibrated profile names."""
    if profile is None:
        return ()
    return model_forms(calibrated_facts(load_profile(model_target(profile).device)).model)


def _machine(request: IoCostRequest, profile: str | None) -> Machine:
    """The cost table of models: as asked for, as the profile has it, or the usual one."""
    if request.machine is not None:
        return request.machine
    named = "" if profile is None else calibrated_facts(load_profile(model_target(profile).device)).machine
    return load_machine(named or DEFAULT_MACHINE)


def _measured_on(
    profile: str, request: IoCostRequest, machine: Machine, observer: IocostObserver
) -> Measured:
    """The same loads on a model of the disk."""
    observer.announce(f"the same loads on {profile}")
    target = model_target(profile)
    with opened_ground(target, seed=request.stages.seed, machine=machine, queue=QUEUE) as ground:
        return measured(ground, request.stages, observer)


def _swept(
    disk: SweptDisk,
    of_model: Measured,
    of_disk: Measured,
    solutions: list[Solution],
    observer: IocostObserver,
) -> tuple[Sweep, list[Solution]]:
    """The sweep, and all solutions with what they do on the model."""
    sweep, runs = sweep_of(disk, of_model.coefficients, observer)
    if sweep.range is not None:
        more = solutions_of_sweep(disk, sweep.range, runs, of_disk.model, of_disk.percentile)
        solutions = [*more, *solutions]
    observer.announce("trying the solutions on the model")
    return sweep, [tried(solution, disk) for solution in solutions]


def _chosen(wanted: str | None, solutions: Sequence[Solution]) -> Solution:
    for solution in solutions:
        if wanted in {None, solution.name}:
            return solution
    raise RequirementError(
        f"there is no solution {wanted}: no vrate protects the group on this model", hint="--solution naive"
    )
