"""Notes what the last recovery restored, because mostly it is a start of blklab that recovers, unseen."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

_NAME = "last-recovery.json"


@dataclass(frozen=True)
class RestoredRun:
    """A killed run whose changes were undone."""

    run_id: str
    purpose: str
    started_at: str
    """ISO 8601, UTC."""
    restored: list[str]
    """Changes that were undone; empty if every setting already had its former value."""
    notes: list[str]


@dataclass(frozen=True)
class LastRecovery:
    """The last recovery that found killed runs."""

    at: str
    """ISO 8601, UTC."""
    runs: list[RestoredRun]


def note_recovery(state: Path, runs: list[RestoredRun]) -> None:
    """Remembers a recovery; one that cannot be noted is complete all the same."""
    content = {
        "at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "runs": [vars(run) for run in runs],
    }
    draft = state / f".{_NAME}.{os.getpid()}"
    with suppress(OSError):
        descriptor = os.open(
            draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(content, file)
        draft.replace(state / _NAME)


def last_recovery(state: Path) -> LastRecovery | None:
    """The last recovery that found killed runs; None if there was none, or its note cannot be read."""
    try:
        content = json.loads((state / _NAME).read_text(encoding="utf-8"))
        return LastRecovery(str(content["at"]), [RestoredRun(**run) for run in content["runs"]])
    except (OSError, ValueError, TypeError, KeyError):
        return None
