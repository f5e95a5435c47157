"""Modelled devices as targets, for guest kernels and for the simulator."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from blklab import _core
from blklab.errors import UsageError
from blklab.records.samples import DiskDescription, TargetDescription
from blklab.simulator.core import call_core, device_request
from blklab.spec.machines import Machine
from blklab.spec.profiles import Profile, load_profile
from blklab.spec.targets import ModelTarget, Target
from blklab.spec.writeback_settings import PREFIX, writeback_names

_CONDITION = "condition"
_STEADY = "random"
"""The condition of a flash model after random writes until steady state."""


def require_model(target: Target, *, precondition: bool = False) -> ModelTarget:
    """The model that a target names, preconditioned if requested.

    Raises:
        UsageError: if a device to precondition is not flash, or its target asks for another condition.
    """
    if not isinstance(target, ModelTarget):
        raise TypeError(f"{target!r} is not a modelled device")  # `backend_for` sends only models here
    return _preconditioned(target) if precondition else target


def check_with_core(request: dict[str, Any], *, source: str = "") -> dict[str, Any]:
    """Checks a request with the core, without simulating it.

    Args:
        request: As for a simulation; parts that are missing are not checked.
        source: Name of the job file, for messages.

    Returns:
        The facts of its device and queue.

    Raises:
        BlklabError: if the core refuses the request.
    """
    facts: dict[str, Any] = json.loads(call_core(_core.check_request, json.dumps(request), source=source))
    return facts


def default_writeback(facts: dict[str, Any]) -> dict[str, str]:
    """The settings of writeback of a model's machine, by their names in choices.

    Args:
        facts: The answer of `check_with_core`.
    """
    machine = facts["machine"]
    return {name: str(machine[name.removeprefix(PREFIX)]) for name in writeback_names()}


def device_facts(target: ModelTarget, profile: Profile) -> dict[str, Any]:
    """The facts of an idle device and its queue, with the target's parameters applied."""
    return check_with_core(device_request(target, profile))


def describe_disk(profile: Profile, facts: dict[str, Any], schedulers: Sequence[str]) -> DiskDescription:
    """A modelled device as the disk of a target, with the schedulers available for it."""
    device = facts["device"]
    return DiskDescription(
        name=profile.name,
        model=profile.summary,
        size_bytes=device["capacity_bytes"],
        rotational=device["rotational"],
        scheduler=device["default_scheduler"],
        schedulers=list(schedulers),
        queue={key: str(value) for key, value in facts["queue"].items()},
    )


def _preconditioned(target: ModelTarget) -> ModelTarget:
    """The device in the condition after random writes until steady state."""
    kind = load_profile(target.device).kind
    if kind != "flash":
        raise UsageError(
            f"{target.text}: --precondition works only on flash, and this device is of kind {kind}",
            hint="leave it out",
        )
    chosen = dict(target.parameters).get(_CONDITION)
    if chosen not in (None, _STEADY):
        raise UsageError(
            f"{target.text} asks for {_CONDITION}={chosen}, but --precondition for {_CONDITION}={_STEADY}"
        )
    return replace(target, parameters=tuple((dict(target.parameters) | {_CONDITION: _STEADY}).items()))


def with_machine(description: TargetDescription, machine: Machine) -> TargetDescription:
    """The target, with the processors that it runs on."""
    details = {**description.details, "processors": machine.description()}
    joint = "where" if machine.is_free else "on"
    summary = f"{description.summary}, {joint} {machine.brief_description()}"
    return description.model_copy(update={"summary": summary, "details": details})
