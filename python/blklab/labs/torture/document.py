"""A torture as JSON, ``blklab.torture/1``: without times and paths, so that it repeats to the byte."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

FaultKind = Literal[
    "corruption",
    "completed_twice",
    "stuck",
    "idle",
    "leak",
    "unflushed",
    "error",
    "complaint",
    "crash",
    "hang",
]
"""Wrong data; an I/O that was reported twice; one that waits beyond the bound; a request or tag that is in
use when nobody has I/O in flight; syncs without a flush; an I/O that failed though the disk did not; a
warning of the kernel; its end; a kernel that computes and does not go on."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True)


class MistakePart(_Part):
    """A seed that shows a mistake."""

    scheduler: str
    seed: int
    kind: FaultKind
    message: str


class SchedulerPart(_Part):
    """The runs of a scheduler."""

    scheduler: str
    seeds: int
    """Seeds whose runs have ended, with mistakes or without."""
    ios: int
    """I/Os of the runs without mistakes."""
    switches: int
    """Selections of a scheduler under load, in those runs."""
    failed_ios: int
    """I/Os that failed because the disk let their requests time out."""
    longest_idle_ns: int
    """Longest time for which requests waited in the scheduler while the disk had nothing to do, in those
    runs."""
    digest: str
    """Of all completions with their times: equal for equal runs."""


class TortureDocument(_Part):
    """The document that `blklab kernel torture --json` prints."""

    schema_: Literal["blklab.torture/1"] = Field("blklab.torture/1", alias="schema")
    version: str
    """Release of the kernel."""
    build: str
    patches: list[str]
    checks: list[str]
    """The kernel's own checks that are built in."""
    first_seed: int
    seeds: int
    """Seeds that were asked for."""
    schedulers: list[SchedulerPart]
    mistakes: list[MistakePart]
