"""Runs cells on a kernel in virtual time and caches the answers.

A run depends only on the kernel, the guest program and the request. Its answer is cached under a key made of
these three, so the same request never runs twice.
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
"""Maps a request to the guest's answer; raises a `BlklabError` if there is none."""


@dataclass(frozen=True)
class KernelRuns:
    """A kernel with a cache of its answers."""

    kernel_id: str
    """Identifies the kernel and the guest program by content."""
    run: Run
    folder: Path

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answers a request, from the cache if possible.

        Raises:
            BlklabError: if the guest failed; failures are not cached.
        """
        text = json.dumps({"kernel": self.kernel_id, "request": request}, sort_keys=True)
        file = self.folder / f"{hashlib.sha256(text.encode()).hexdigest()}.json"
        try:
            return dict(json.loads(file.read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError):
            pass  # not cached, or damaged: run it
        answer = self.run(request)
        if "error" in answer:
            raise BlklabError(str(answer["error"].get("message", answer["error"])))
        self.folder.mkdir(parents=True, exist_ok=True)
        draft = file.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(answer), encoding="utf-8")
        draft.replace(file)
        return answer


def cache_folder() -> Path:
    """The folder of cached answers."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "blklab" / "fidelity"
