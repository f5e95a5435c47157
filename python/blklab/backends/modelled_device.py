"""Modelled devices as targets, whatever kernel or simulator stands above them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from blklab import _core
from blklab.errors import UsageError
from blklab.records.samples import DiskDescription
from blklab.simulator.core import call_core, device_request
from blklab.spec.profiles import Profile, load_profile
from blklab.spec.targets import ModelTarget, Target

_CONDITION = "condition"
_USED = "random"
"""The state of a flash model after random writes until steady."""


def require_model(target: Target, *, precondition: bool = False) -> ModelTarget:
    """The model that a target names, aged if that was asked for.

    Raises:
        UsageError: if a device is to be preconditioned that is no flash, or begins in another state.
    """
    if not isinstance(target, ModelTarget):
        raise TypeError(f"{target!r} is not a modelled device")
    return _preconditioned(target) if precondition else target


def check_with_core(request: dict[str, Any], *, source: str = "") -> dict[str, Any]:
    """Asks the core whether a request could be carried out, and for the facts of its device and queue.

    Args:
        request: As for a simulation; what is left out is not checked.
        source: Name of the job file for messages.

    Raises:
        BlklabError: for whatever the core refuses.
    """
    facts: dict[str, Any] = json.loads(call_core(_core.check_request, json.dumps(request), source=source))
    return facts


def device_facts(target: ModelTarget, profile: Profile) -> dict[str, Any]:
    """The facts of a device and its queue: an idle one is asked, so that parameters count in."""
    return check_with_core(device_request(target, profile))


def describe_disk(profile: Profile, facts: dict[str, Any], schedulers: Sequence[str]) -> DiskDescription:
    """A modelled device as the disk of a target, with the schedulers that it can have."""
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
    """The device as after random writes until steady: flash models begin in that state."""
    kind = load_profile(target.device).kind
    if kind != "flash":
        raise UsageError(
            f"{target.text}: --precondition is for flash, and this is a device of the kind {kind}",
            hint="leave it out",
        )
    chosen = dict(target.parameters).get(_CONDITION)
    if chosen not in (None, _USED):
        raise UsageError(
            f"{target.text} asks for {_CONDITION}={chosen}, --precondition for {_CONDITION}={_USED}"
        )
    return replace(target, parameters=tuple((dict(target.parameters) | {_CONDITION: _USED}).items()))
