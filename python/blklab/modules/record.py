"""The record of a module, ``module.json``: what it was built from, and how it was proven to fit."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from blklab.guests.kernels.build_record import PatchRecord


class ProofRecord(BaseModel):
    """How far the headers were compared with the kernel's own type information."""

    model_config = ConfigDict(frozen=True)

    structures: int
    members: int
    constants: int


class ChangesRecord(BaseModel):
    """The changes of a module to the kernel's own scheduler, kept so that a guest can be built of them."""

    model_config = ConfigDict(frozen=True)

    kind: Literal["patches", "file"]
    """Patches, or a scheduler that is one file."""
    files: list[str]
    """In the module's folder, in the order in which patches apply."""
    scheduler: str
    """The scheduler's name in a guest that has them."""
    sha256: str
    """Of all of them, and of the name."""


class ModuleRecord(BaseModel):
    """The inputs and the outcome of a build."""

    model_config = ConfigDict(frozen=True)

    format: Literal[2] = 2
    build_id: str
    scheduler: str
    """The scheduler that it is a variant of, or the new one's own name."""
    is_new: bool
    """Whether the kernel has no such scheduler of its own."""
    name: str
    """The scheduler's name in the kernel."""
    module: str
    """The module's, as in ``/sys/module``."""
    release: str
    """The kernel that it is for, as ``uname -r`` prints it."""
    kernel_build: str
    """As ``uname -v`` prints it; empty if the headers did not say."""
    headers: str
    source: str
    """Path of the source; empty for one file of the user's with headers that have ``block/``."""
    source_version: str
    patches: list[PatchRecord]
    changes: ChangesRecord | None
    """None for an unchanged copy."""
    compiler: str
    proof: ProofRecord | None
    """None if the module was built unproven, as told."""
    signed_with: str | None = None
    notes: list[str] = []
    sha256: str
    """Of the module's file."""
    size_bytes: int
    built_at: str
    build_seconds: float
