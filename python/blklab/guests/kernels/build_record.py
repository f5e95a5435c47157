"""The record of a build, ``build.json``: what a guest kernel was built from."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class PatchRecord(BaseModel):
    """A patch that went into a build."""

    model_config = ConfigDict(frozen=True)

    name: str
    sha256: str
    files: list[str]


class InstrumentRecord(PatchRecord):
    """A patch of blklab's own that improves the measuring, or was to."""

    complaint: str | None = None
    """What of it does not apply to this source, so that all of it was left out."""


class BuildRecord(BaseModel):
    """Where a build comes from: ``build.json``."""

    model_config = ConfigDict(frozen=True)

    format: Literal[1] = 1
    build_id: str
    version: str
    """Release of the kernel as ``uname -r`` prints it, for example ``6.1.192``."""
    source: str
    """The source as a person knows it: a path."""
    source_kind: Literal["debian", "tarball", "directory"]
    source_sha256: str
    patches: list[PatchRecord]
    instruments: list[InstrumentRecord] = []
    """Nothing if the build was asked to be without them."""
    fragments: list[str]
    """Configuration fragments of the person, after the shipped one, by name."""
    missing_options: list[str]
    """Optional options that this source does not know."""
    compiler: str
    recipe: int
    tree_id: str
    linux_sha256: str
    compiled_files: int
    built_at: str
    build_seconds: float
