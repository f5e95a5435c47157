"""Keeps answers of guests. A run depends on the kernel, the guest program and the request alone."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class KeptAnswers:
    """A folder of answers, each under the digest of what it depends on."""

    folder: Path

    def get(self, key: Any) -> dict[str, Any] | None:
        """The answer under a key, which can be written as JSON; None if there is none, or it is damaged."""
        try:
            return dict(json.loads(self._file(key).read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError):
            return None

    def put(self, key: Any, answer: dict[str, Any]) -> None:
        """Keeps an answer; a reader sees all of it or nothing.

        Raises:
            OSError: if it cannot be written.
        """
        file = self._file(key)
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(answer), encoding="utf-8")
        draft.replace(file)

    def _file(self, key: Any) -> Path:
        text = json.dumps(key, sort_keys=True)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()}.json"
