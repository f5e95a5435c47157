"""Recordings as workloads: ``trace:FILE[,replay=closed|open][,speed=…][,scale-to=…][,device=…]``.

crates/blkreplay turns a recording, or another program's trace, into a job file with one section for each
kind of task. Its key ``replay_plan`` holds the recorded I/Os with what each of them waits for, so that a
stored run repeats without the recording.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from blklab import _core
from blklab.errors import FormatError, UnknownNameError, UsageError
from blklab.quantities.units import parse_size_bytes

PREFIX: Final = "trace:"
_KEYS: Final = ("replay", "speed", "scale-to", "device")
_OPTION: Final = re.compile(rf",({'|'.join(_KEYS)})=([^,]*)$")
_WHOLE: Final = re.compile(r"\d+[kmgtKMGT]?")
_LEAST_SPEED, _MOST_SPEED = 0.001, 1000.0


class ReplaySummary(BaseModel):
    """Figures and notes of a recording that became a workload."""

    replay: str
    """``closed`` or ``open``."""
    ios: int
    tasks: int
    signals: int
    """Dependencies between tasks."""
    file_bytes: int
    touched_bytes: int
    recorded_ns: int
    """Length of the recording at the replay's speed."""
    notes: list[str]
    """How the replay deviates from the recording, for people."""


@dataclass(frozen=True)
class ReplayRequest:
    """A recording, and how to replay it."""

    path: str
    replay: str = ""
    """``closed`` or ``open``; empty for what the recording allows."""
    speed: float = 1.0
    """Recorded times are divided by this."""
    scale_to: str = ""
    """Bytes, ``touched`` or ``recorded``; empty for the default."""
    device: str | None = None

    @property
    def name(self) -> str:
        """A name for the workload: the file's."""
        return Path(self.path).name.split(".")[0] or "trace"


def is_replay(text: str) -> bool:
    """Whether a workload's name asks for a replay."""
    return text.startswith(PREFIX)


def parse_replay(text: str) -> ReplayRequest:
    """Reads ``trace:FILE,key=value,…``.

    Raises:
        UsageError: for a key that is given twice, or a value that does not fit.
    """
    path = text.removeprefix(PREFIX)
    given: dict[str, str] = {}
    while match := _OPTION.search(path):
        key, value = match.groups()
        if key in given:
            raise UsageError(f"{text}: {key} is given twice")
        given[key] = value
        path = path[: match.start()]
    if not path:
        raise UsageError(f"{text!r} names no file", hint="trace:FILE, as `blklab record` wrote it")
    head, comma, last = path.rpartition(",")
    if comma and "=" in last and not Path(path).exists():
        raise UsageError(
            f"{text}: unknown option {last.partition('=')[0]!r}", hint=f"there are {', '.join(_KEYS)}; {head}"
        )
    replay = given.get("replay", "")
    if "replay" in given and replay not in ("closed", "open"):
        raise UsageError(f"{text}: replay takes closed or open, not {replay!r}")
    return ReplayRequest(
        path=path,
        replay=replay,
        speed=_speed(text, given.get("speed")),
        scale_to=_scale_to(text, given.get("scale-to")),
        device=given.get("device"),
    )


def read_replay(text: str) -> tuple[ReplayRequest, str, ReplaySummary]:
    """Makes a job file out of a recording.

    Args:
        text: As in `parse_replay`.

    Returns:
        The request, the job file, and a summary.

    Raises:
        UsageError: for a mistake in the text, or a recording that cannot be replayed as asked.
        UnknownNameError: if there is no such file.
        FormatError: if the file is in no known format, or damaged.
    """
    request = parse_replay(text)
    try:
        job_file, summary = _core.replay_workload(
            request.path, request.path, request.replay, request.speed, request.scale_to, request.device
        )
    except _core.ReplayError as error:
        raise UsageError(error.message, hint=error.hint) from error
    except _core.RecordError as error:
        raise _translated(error) from error
    return request, job_file, ReplaySummary.model_validate(json.loads(summary))


def _speed(text: str, given: str | None) -> float:
    if given is None:
        return 1.0
    try:
        speed = float(given)
    except ValueError:
        speed = math.nan
    if not _LEAST_SPEED <= speed <= _MOST_SPEED:
        raise UsageError(
            f"{text}: speed takes a number from {_LEAST_SPEED:g} to {_MOST_SPEED:g}, not {given!r}"
        )
    return speed


def _scale_to(text: str, given: str | None) -> str:
    if given is None or given in ("touched", "recorded"):
        return given or ""
    if not _WHOLE.fullmatch(given):
        raise UsageError(f"{text}: scale-to takes a size, touched or recorded, not {given!r}")
    return str(parse_size_bytes(given))


def _translated(error: _core.RecordError) -> FormatError | UnknownNameError:
    if error.kind == "unknown_format":
        known = ", ".join(name for name, _ in _core.record_formats())
        return FormatError(str(error), hint=f"formats that are known: {known}")
    if error.kind == "system" and "(os error 2)" in str(error):
        return UnknownNameError(str(error).replace(" (os error 2)", "").lower())
    hint = "record for less time, or fewer disks" if error.kind == "too_large" else None
    return FormatError(str(error), hint=hint)
