"""The backends, by kind of target. To add one, add a file here and its line in `_MODULES`."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from blklab.backends.protocol import Backend, Session, SessionOptions
from blklab.backends.workers import THIS_MACHINE, Workers
from blklab.errors import UnknownNameError
from blklab.linux.scratch.space import Announce
from blklab.spec.targets import LoopTarget, ModelTarget, PathTarget, Target

__all__ = ["THIS_MACHINE", "Announce", "Backend", "Session", "SessionOptions", "Workers", "backend_for"]

_MODULES = {"host": "blklab.backends.host", "sim": "blklab.backends.sim", "uml": "blklab.backends.uml"}


def backend_for(target: Target) -> Backend:
    """The backend for a target.

    Raises:
        UnknownNameError: if this version has no backend for the target's scheme.
    """
    match target:
        case PathTarget() | LoopTarget():
            name = "host"
        case ModelTarget(scheme=scheme):
            name = scheme
    if name not in _MODULES:
        raise UnknownNameError(
            f"this version of blklab has no backend for {name}: targets",
            hint="use sim: for a modelled device",
        )
    return cast("Backend", import_module(_MODULES[name]).BACKEND)
