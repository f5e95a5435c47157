"""The backends, by kind of target. To add one, add a file here and its line in `_MODULES`.

Other packages add theirs by an entry point (`blklab.registry`).
"""

from __future__ import annotations

from typing import Any, cast

from blklab.backends.protocol import Backend, Session, SessionOptions
from blklab.backends.workers import THIS_MACHINE, Workers
from blklab.errors import UnknownNameError
from blklab.linux.scratch.space import Announce
from blklab.registry import Registry
from blklab.spec.targets import LoopTarget, ModelTarget, PathTarget, Target

__all__ = [
    "BACKENDS",
    "THIS_MACHINE",
    "Announce",
    "Backend",
    "Session",
    "SessionOptions",
    "Workers",
    "backend_for",
]

_MODULES = {"host": "blklab.backends.host", "sim": "blklab.backends.sim", "uml": "blklab.backends.uml"}


def _checked(name: str, backend: Any) -> Backend:
    for attribute in (*Backend.__annotations__, "default_machine", "describe", "open"):
        if not hasattr(backend, attribute):
            raise TypeError(f"the backend {name} has no {attribute}")
    if name != backend.NAME:
        raise TypeError(f"the backend {name} calls itself {backend.NAME!r}")
    return cast("Backend", backend)


BACKENDS = Registry(
    "blklab.backends", {name: f"{module}:BACKEND" for name, module in _MODULES.items()}, _checked
)
"""By the scheme of their targets; disks of this machine have ``host``."""


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
    if name not in BACKENDS:
        raise UnknownNameError(
            f"this version of blklab has no backend for {name}: targets",
            hint="use sim: for a modelled device",
        )
    return BACKENDS[name]
