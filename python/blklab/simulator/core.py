"""Calls the compiled core: builds and reads its JSON, and translates its errors."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from blklab import _core
from blklab.errors import (
    BlklabError,
    JobFileError,
    ProfileError,
    RequirementError,
    SchedulerCodeError,
    SchedulerUnavailableError,
    SimulationError,
    TunableError,
    UnknownNameError,
    UsageError,
    did_you_mean,
)
from blklab.records.samples import ChangeSample
from blklab.registry import load_from_packages
from blklab.simulator.timeline import RunFacts
from blklab.spec.changes import Change
from blklab.spec.profiles import Profile
from blklab.spec.targets import ModelTarget

_ERRORS_BY_KIND: dict[str, type[BlklabError]] = {
    "unknown_scheduler": SchedulerUnavailableError,
    "unknown_tunable": TunableError,
    "unknown_queue_attribute": TunableError,
    "unknown_device": UnknownNameError,
    "out_of_range": TunableError,
    "host_only": UsageError,
    "layout": UsageError,
    "endless": UsageError,
    "unsupported": RequirementError,
    "profile": ProfileError,
    "scheduler": SchedulerCodeError,
    "job_file": UsageError,
}
"""Error kinds of the core and of the guest program; any other kind is a failed run."""


_LOADED: set[str] = set()


def load_plugins() -> None:
    """Registers the simulated schedulers of other packages, once."""
    if "blklab.schedulers" not in _LOADED:
        _LOADED.add("blklab.schedulers")
        from blklab.simulator.schedulers import register  # noqa: PLC0415 - it imports this module

        load_from_packages("blklab.schedulers", register)


def known_schedulers() -> list[dict[str, Any]]:
    """The simulator's schedulers with their families and tunables, those of other packages included."""
    load_plugins()
    known: list[dict[str, Any]] = json.loads(_core.schedulers())
    return known


_NOT_SIMULATED = re.compile(r'scheduler "([^"]*)" is not simulated')
"""The core's message for a scheduler that it does not know."""
MODELLED_RELEASES = tuple(
    tuple(int(part) for part in release.split(".")) for release in _core.kernel_releases()
)
"""Releases of Linux that the simulator follows, the first by default."""

_KERNEL = "kernel"
"""Option of a target that names the release that the simulator follows."""


def device_request(target: ModelTarget, profile: Profile) -> dict[str, Any]:
    """The part of a core request that describes the device.

    Raises:
        UsageError: if the target of a guest names a release of the simulator's.
    """
    if target.scheme != "sim" and _KERNEL in dict(target.parameters):
        raise UsageError(
            f"{target.text!r} names a kernel, which only the simulator takes there",
            hint="choose a guest's kernel with --kernel NAME",
        )
    return {
        "device": {
            "profile": profile.text,
            "source": profile.source,
            "kind": None if profile.text is not None else profile.kind,
            "parameters": dict(target.parameters),
        }
    }


def call_core(function: Any, argument: Any, *, source: str = "") -> Any:
    """Calls the compiled core and translates its errors into the package's own.

    Args:
        function: A function of `_core` with one argument.
        argument: The request.
        source: Name of the job file for messages, if the core does not know it.

    Raises:
        BlklabError: if the core refuses the request or fails.
    """
    load_plugins()
    try:
        return function(argument)
    except _core.SimulationError as error:
        if unknown := _NOT_SIMULATED.match(error.message):
            raise _unknown_scheduler(unknown[1]) from error
        raise core_error({"kind": error.kind, "message": error.message}) from error
    except _core.ProfileError as error:
        raise ProfileError(str(error)) from error
    except _core.JobFileError as error:
        raise JobFileError(error.message, source=source or error.source, line=error.line) from error


def _unknown_scheduler(name: str) -> UnknownNameError:
    known = [str(entry["name"]) for entry in known_schedulers()]
    close = did_you_mean(name, known)
    return UnknownNameError(
        f"the scheduler {name!r} is not simulated",
        hint=f"{close} " * bool(close) + f"the simulator has {', '.join(known)}",
    )


def core_error(error: Mapping[str, Any]) -> BlklabError:
    """Translates an error of the core or of the guest program (``kind``, ``message``)."""
    return _ERRORS_BY_KIND.get(str(error.get("kind")), SimulationError)(str(error.get("message")))


def read_back_settings(answer: Mapping[str, Any], disk: str) -> dict[str, str]:
    """The settings in effect, from an answer of the core or of the guest program, in the form of samples."""
    settings = {f"{disk}/scheduler": str(answer["scheduler"])}
    settings |= {f"{disk}/iosched/{key}": str(value) for key, value in answer["tunables"].items()}
    return settings | {f"{disk}/{key}": str(value) for key, value in answer["queue"].items()}


def changes_made(changes: Sequence[Change], answer: Mapping[str, Any]) -> list[ChangeSample]:
    """The planned changes that were in force before a run on a model ended.

    Args:
        changes: As they were planned.
        answer: Of the core or the guest program.
    """
    end_ns = answer["engine"]["simulated_ns"]
    return [
        ChangeSample(change=change.canonical, planned_ns=change.at_ns, begun_ns=change.at_ns, made_ns=made_ns)
        for change, made_ns in zip(changes, answer.get("changes_made_ns", []), strict=False)
        if made_ns is not None and made_ns <= end_ns
    ]


def run_facts(
    answer: Mapping[str, Any], *, target: str, workload: str, changes: Sequence[Change] = ()
) -> RunFacts:
    """The facts that a timeline stores about its run, from the core's answer."""
    return RunFacts(
        target=target,
        workload=workload,
        scheduler=answer["scheduler"],
        tunables=answer["tunables"],
        queue=answer["queue"],
        seed=answer["engine"]["seed"],
        simulated_ns=answer["engine"]["simulated_ns"],
        device=answer["device"],
        jobs=answer["jobs"],
        engine=answer["engine"],
        changes=changes_made(changes, answer),
    )
