"""The atlas: profiles of drives that people measured, found by the drive's own name.

Each is a profile like the others (`blklab.spec.profiles`), written by ``scripts/write-atlas.py`` from the
coefficients of io.cost's model. Its table ``calibration`` keeps what was measured; see `derivation` for what
follows from it and what is assumed.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blklab.errors import UnknownNameError, did_you_mean
from blklab.shipped import shipped_files
from blklab.spec.atlas.solutions import SOLUTIONS, DriveSolution

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = "devices/atlas"
_BESIDE_WORDS = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class AtlasDrive:
    """A drive of the atlas."""

    model: str
    """As the kernel has it."""
    path: Path
    summary: str
    capacity_bytes: int
    facts: Mapping[str, Any]
    """The profile's table ``calibration``."""

    @property
    def target(self) -> str:
        """The drive as a target of experiments."""
        return f"sim:{self.model}"

    @property
    def coefficients(self) -> dict[str, int]:
        """Those of io.cost's model, as measured."""
        return {name: int(value) for name, value in self.facts["coefficients"].items()}

    @property
    def results(self) -> int:
        """Measurements that the figures are medians of."""
        return int(self.facts["results"])

    @property
    def solutions(self) -> list[DriveSolution]:
        """Parameters of io.cost by purpose, in the usual order."""
        known = self.facts.get("solutions", {})
        return [DriveSolution.from_table(name, known[name]) for name in SOLUTIONS if name in known]


def file_stem(model: str) -> str:
    """The name of a drive's file: its model in small letters, with hyphens between words.

    So ``Samsung SSD 980 PRO 1TB``, ``samsung ssd 980 pro 1tb`` and udev's ``Samsung_SSD_980_PRO_1TB`` are one
    drive.
    """
    return _BESIDE_WORDS.sub("-", model.lower()).strip("-")


def drive_file(model: str) -> Path | None:
    """The profile of a drive; None if the atlas has none."""
    return shipped_files(FOLDER, ".toml").get(file_stem(model))


def find_drive(model: str) -> AtlasDrive | None:
    """The drive of a model, whatever its capitals; None if the atlas has none."""
    path = drive_file(model)
    return None if path is None else _read(path)


def require_drive(model: str) -> AtlasDrive:
    """The drive of a model.

    Raises:
        UnknownNameError: if the atlas has none; close names are suggested.
    """
    drive = find_drive(model)
    if drive is None:
        raise UnknownNameError(
            f"the atlas has no drive {model!r}",
            hint=did_you_mean(model, drive_models()) or "`blklab targets --atlas` lists its drives",
        )
    return drive


def drives() -> list[AtlasDrive]:
    """All drives of the atlas, by name."""
    found = [_read(path) for path in shipped_files(FOLDER, ".toml").values()]
    return sorted(found, key=lambda drive: drive.model.lower())


def drive_models() -> list[str]:
    """The names of all drives of the atlas."""
    return [drive.model for drive in drives()]


def drive_stems() -> list[str]:
    """Their names as a shell takes them without quotes, which find the same drives."""
    return sorted(shipped_files(FOLDER, ".toml"))


@functools.cache
def _read(path: Path) -> AtlasDrive:
    table = tomllib.loads(path.read_text("utf-8"))
    return AtlasDrive(
        model=table["name"],
        path=path,
        summary=table["summary"],
        capacity_bytes=table["capacity"],
        facts=table["calibration"],
    )
