"""The record of a build, ``build.json``: what a guest kernel was built from."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class PatchRecord(BaseModel):
    """A patch of a build."""

    model_config = ConfigDict(frozen=True)

    name: str
    sha256: str
    files: list[str]


class InstrumentRecord(PatchRecord):
    """One of blklab's own patches that improve measurements, applied or skipped."""

    complaint: str | None = None
    """The part that does not apply to this source, so that all of it was skipped; None if it was applied."""


class BuildRecord(BaseModel):
    """The inputs and the outcome of a build."""

    model_config = ConfigDict(frozen=True)

    format: Literal[1] = 1
    build_id: str
    version: str
    """Release of the kernel as ``uname -r`` prints it, for example ``6.1.192``."""
    source: str
    """Path of the source."""
    source_kind: Literal["debian", "tarball", "directory"]
    source_sha256: str
    patches: list[PatchRecord]
    instruments: list[InstrumentRecord] = []
    """Empty if they were not requested."""
    fragments: list[str]
    """Names of the user's configuration fragments, which follow the shipped one."""
    missing_options: list[str]
    """Optional options that this source does not know."""
    added_schedulers: list[str] = []
    """The schedulers that are built in beside those of the unchanged kernel, from patches and files."""
    compiler: str
    recipe: int
    tree_id: str
    linux_sha256: str
    compiled_files: int
    built_at: str
    build_seconds: float
