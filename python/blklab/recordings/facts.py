"""The conditions of a recording and its counts, as crates/blkrecord keeps them."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class DeviceFacts(BaseModel):
    """A recorded device."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int
    """As in the column ``device``: major shifted by 20 bits, plus minor. Traces without device numbers count
    their devices from 0."""
    name: str
    model: str = ""
    size_bytes: int = 0
    """0 if unknown."""
    rotational: bool | None = None
    scheduler: str = ""
    """The active scheduler; empty if unknown."""
    settings: dict[str, str] = {}
    """Attributes of the queue and, as ``iosched/…``, of the scheduler."""


class CgroupFacts(BaseModel):
    """A control group that did I/O, or one above it, when its first I/O was seen."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str
    settings: dict[str, str] = {}
    """Contents of the I/O controller's files by name, such as ``io.weight``; without those that it lacks."""


class Facts(BaseModel):
    """The conditions of a recording."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: str = ""
    """The format of the file."""
    capture: str = ""
    """``bpf`` or ``tracefs``; empty for other programs' traces."""
    target: str = ""
    kernel: str = ""
    started_unix_ns: int | None = None
    """Start in nanoseconds since 1970; None if unknown."""
    processors: int | None = None
    """Processors of the machine; None if unknown."""
    cgroup_version: int | None = None
    """Version of the control group hierarchy with the I/O controller."""
    command: list[str] = []
    """The program that was recorded: its name, or all arguments if that was asked for."""
    devices: list[DeviceFacts] = []
    cgroups: list[CgroupFacts] = []
    """Known once the file has been read."""
    missing: list[str] = []
    """Facts that the recording lacks."""


class Tally(BaseModel):
    """Counts of a recording."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ios: int = 0
    events: int = 0
    """Events that became I/Os; 0 for formats without events."""
    lost: int = 0
    """Events that the kernel dropped because its buffer was full."""
    unmatched: int = 0
    """Completions without a queued I/O: those under way when the recording began, or after a loss."""
    incomplete: int = 0
    """I/Os without a completion."""
    span_ns: int = 0
    """Length in nanoseconds."""
    whole: bool = False
    """False if the recorder was killed."""


def device_number(text: str) -> int:
    """The number of ``MAJOR:MINOR`` as the kernel keeps it."""
    major, minor = text.split(":")
    return int(major) << 20 | int(minor)
