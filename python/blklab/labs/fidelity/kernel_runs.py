"""Runs cells on a kernel in virtual time and keeps the answers, so the same request never runs twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blklab.errors import BlklabError
from blklab.guests.kept_answers import KeptAnswers

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
        key = {"kernel": self.kernel_id, "request": request}
        kept = KeptAnswers(self.folder)
        known = kept.get(key)
        if known is not None:
            return known
        answer = self.run(request)
        if "error" in answer:
            raise BlklabError(str(answer["error"].get("message", answer["error"])))
        kept.put(key, answer)
        return answer
