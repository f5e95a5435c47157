"""Targets of experiments: one grammar for all backends.

=====================================  =======================================================
``PATH``                               a directory or file (the disks beneath it) or a block device
``loop:SIZE[,dir=PATH]``               a scratch file of that size as a direct-I/O loop device
``loop:SIZE,btrfs=raid10[,members=4]`` four such devices under one btrfs (``raid0``, ``raid1``, ``raid10``)
``sim:DEVICE[,key=value…]``            a simulated device: a profile's name, ``fixed``, or a .toml file
``uml:DEVICE[,key=value…]``            the same device under a real kernel in virtual time
``qemu:…``                             reserved for kernels in virtual machines
=====================================  =======================================================

Parsing is pure: it does not look at the disk. Write a path that looks like one of the schemes as
``./sim:x``.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from blklab.errors import UnknownNameError, UsageError
from blklab.quantities.units import format_bytes, parse_size_bytes
from blklab.registry import names_in_packages

_SCHEME = re.compile(r"([a-z][a-z0-9+]*):(.*)", re.DOTALL)
_KEY = re.compile(r"(member[0-9]+\.)?[a-z][a-z0-9_]*")

_BTRFS_LEAST_MEMBERS = {"raid0": 2, "raid1": 2, "raid10": 4}
"""btrfs profiles over several devices, each with its fewest devices."""
_USUAL_MEMBERS = 4
_MOST_MEMBERS = 16
_LEAST_MEMBER_BYTES = 256 << 20
"""mkfs.btrfs needs some 110 MiB of each device; smaller ones leave no room for files."""

MODEL_SCHEMES = ("sim", "uml", "qemu")
"""Schemes whose device is a model: they share the form ``SCHEME:DEVICE[,key=value…]``."""


@dataclass(frozen=True)
class PathTarget:
    """A path of this machine; the host backend finds the disks beneath it."""

    path: str

    @property
    def text(self) -> str:
        """The target in the grammar."""
        return f"./{self.path}" if _SCHEME.fullmatch(self.path) else self.path


@dataclass(frozen=True)
class LoopTarget:
    """A scratch file, set up as a loop device with direct I/O, written to freely and removed afterwards."""

    size_bytes: int
    directory: str | None
    """Folder of the scratch file; None means the default scratch folder."""
    btrfs: str | None = None
    """btrfs profile of data and metadata over several such devices; None for a single bare device."""
    members: int = 1
    """Number of devices; `size_bytes` is that of each."""

    @property
    def text(self) -> str:
        """The target in the grammar."""
        place = f",dir={self.directory}" if self.directory else ""
        size, suffix = self.size_bytes, ""
        for unit in ("k", "m", "g", "t"):
            if size % 1024:
                break
            size, suffix = size // 1024, unit
        array = f",btrfs={self.btrfs},members={self.members}" if self.btrfs else ""
        return f"loop:{size}{suffix}{array}{place}"


@dataclass(frozen=True)
class ModelTarget:
    """A modelled device under a backend that is not this machine's kernel."""

    scheme: str
    """One of `MODEL_SCHEMES`, or that of another package's backend."""
    device: str
    """A kind (``fixed``), a profile's name (``hdd-7200``) or the path of a profile (``./mine.toml``)."""
    parameters: tuple[tuple[str, str], ...]
    """Changed parameters, as typed; the model checks names, units and ranges."""

    @property
    def text(self) -> str:
        """The target in the grammar."""
        return f"{self.scheme}:" + ",".join(
            [self.device, *(f"{key}={value}" for key, value in self.parameters)]
        )


Target = PathTarget | LoopTarget | ModelTarget


@functools.lru_cache
def parse_target(text: str) -> Target:
    """Reads a target.

    Raises:
        UsageError: if a scheme's parameters do not follow the grammar.
        UnknownNameError: if the scheme is not known.
    """
    if not text.strip() or "\0" in text:
        raise UsageError(
            "the target is empty", hint="name a directory, a block device, loop:1g or sim:hdd-7200"
        )
    match = _SCHEME.fullmatch(text)
    if match is None:
        return PathTarget(text)
    scheme, rest = match[1], match[2]
    name, *settings = rest.split(",")
    parameters = _parse_parameters(text, settings)
    if scheme == "loop":
        return _loop_target(text, name, parameters)
    if scheme in MODEL_SCHEMES or scheme in names_in_packages("blklab.backends"):
        if not name:
            raise UsageError(f"{text!r} names no device", hint=f"write it like {scheme}:hdd-7200")
        return ModelTarget(scheme, name, tuple(parameters.items()))
    raise UnknownNameError(
        f"{text!r}: unknown kind of target {scheme!r}",
        hint=f"known are loop:, sim:, uml:, or a path (write ./{text} if it is one)",
    )


def _loop_target(text: str, size: str, parameters: dict[str, str]) -> LoopTarget:
    unknown = parameters.keys() - {"dir", "btrfs", "members"}
    if unknown:
        raise UnknownNameError(
            f"{text!r}: loop: has no parameter {min(unknown)!r}",
            hint="it takes dir=PATH, btrfs=raid10, members=4",
        )
    size_bytes, directory, profile = parse_size_bytes(size), parameters.get("dir"), parameters.get("btrfs")
    if profile is None:
        if "members" in parameters:
            raise UsageError(f"{text!r} has members but no array", hint="add btrfs=raid10")
        return LoopTarget(size_bytes, directory)
    if profile not in _BTRFS_LEAST_MEMBERS:
        raise UsageError(f"{text!r}: btrfs must be {' or '.join(_BTRFS_LEAST_MEMBERS)}, not {profile!r}")
    least = _BTRFS_LEAST_MEMBERS[profile]
    members = parameters.get("members", str(_USUAL_MEMBERS))
    if not members.isdecimal() or not least <= int(members) <= _MOST_MEMBERS:
        raise UsageError(f"{text!r}: {profile} takes {least} to {_MOST_MEMBERS} members, not {members}")
    if size_bytes < _LEAST_MEMBER_BYTES:
        raise UsageError(f"{text!r}: btrfs needs at least {format_bytes(_LEAST_MEMBER_BYTES)} on each device")
    return LoopTarget(size_bytes, directory, profile, int(members))


def _parse_parameters(text: str, settings: list[str]) -> dict[str, str]:
    parameters: dict[str, str] = {}
    for setting in settings:
        key, separator, value = setting.partition("=")
        if not separator or _KEY.fullmatch(key) is None or not value:
            raise UsageError(f"{setting!r} in {text!r} is not KEY=VALUE")
        if key in parameters:
            raise UsageError(f"{text!r} sets {key} twice")
        parameters[key] = value
    return parameters
