"""Runs cells on a kernel in virtual time, and keeps what they found.

A run depends on the kernel, the guest program and the request alone, so its answer is kept under a name made
of these three, and is never asked for twice.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blklab.errors import BlklabError

Run = Callable[[dict[str, Any]], dict[str, Any]]
"""Takes a request, gives the guest's answer; raises a `BlklabError` if there is none."""


@dataclass(frozen=True)
class KernelRuns:
    """A kernel with a memory."""

    kernel_id: str
    """Names the kernel and the guest program by content."""
    run: Run
    folder: Path

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request, from memory if it was given before.

        Raises:
            BlklabError: if the guest failed; a failure is not kept.
        """
        text = json.dumps({"kernel": self.kernel_id, "request": request}, sort_keys=True)
        place = self.folder / f"{hashlib.sha256(text.encode()).hexdigest()}.json"
        try:
            return dict(json.loads(place.read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError):
            pass  # not asked before, or damaged: ask
        answer = self.run(request)
        if "error" in answer:
            raise BlklabError(str(answer["error"].get("message", answer["error"])))
        self.folder.mkdir(parents=True, exist_ok=True)
        draft = place.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(answer), encoding="utf-8")
        draft.replace(place)
        return answer


def cache_folder() -> Path:
    """Where answers are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "blklab" / "fidelity"
