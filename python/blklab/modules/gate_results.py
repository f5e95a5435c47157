"""Results of the gate that a changed scheduler passes in a guest before it runs on this machine.

They are kept by content, beside the modules: the same changes on the same guest kernel are asked once.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from blklab.guests.kernels.cache import make_folder
from blklab.modules.cache import module_cache


class GateFailure(BaseModel):
    """The first thing that a changed scheduler did wrong."""

    model_config = ConfigDict(frozen=True)

    part: Literal["questions", "torture"]
    place: str
    """The question, or the seed."""
    message: str
    seed: int | None
    command: str
    """Shows it again."""


class GateResult(BaseModel):
    """The outcome of the gate for some changes on one guest kernel."""

    model_config = ConfigDict(frozen=True)

    format: Literal[1] = 1
    changes_sha256: str
    source_sha256: str
    """Of the guest kernel's source."""
    questions_version: int
    scheduler: str
    """Its name in the guest."""
    release: str
    """The guest kernel's."""
    build: str
    """Its build."""
    questions: int
    """Loads that it has served."""
    seeds: int
    """Seeds of torture that it has survived, or that had been begun when one failed."""
    excused: list[str] = []
    """Mistakes that the unchanged scheduler makes as well."""
    failure: GateFailure | None
    decided_at: str

    @property
    def passed(self) -> bool:
        """Whether nothing went wrong."""
        return self.failure is None


def kept_result(changes_sha256: str, source_sha256: str, questions_version: int) -> GateResult | None:
    """The result for changes on a source; None if there is none of this version of the questions."""
    result = _read(_file(changes_sha256, source_sha256))
    return result if result is not None and result.questions_version == questions_version else None


def keep_result(result: GateResult) -> None:
    """Keeps a result instead of the former one; without space for it the gate is asked again."""
    file = _file(result.changes_sha256, result.source_sha256)
    with suppress(OSError):
        make_folder(file.parent)
        draft = file.with_suffix(".new")
        draft.write_text(result.model_dump_json(indent=1) + "\n", encoding="utf-8")
        draft.replace(file)


def results_of(changes_sha256: str) -> list[GateResult]:
    """All results for some changes, on whatever guest."""
    found = [_read(path) for path in sorted(_folder().glob(f"{changes_sha256[:32]}-*.json"))]
    return [result for result in found if result is not None and result.changes_sha256 == changes_sha256]


def _read(path: Path) -> GateResult | None:
    try:
        return GateResult.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def _file(changes_sha256: str, source_sha256: str) -> Path:
    return _folder() / f"{changes_sha256[:32]}-{hashlib.sha256(source_sha256.encode()).hexdigest()[:16]}.json"


def _folder() -> Path:
    return module_cache() / "gates"
