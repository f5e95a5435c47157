"""Studies with smaller sizes than the shipped ones, for tests on kernels, where every run costs seconds."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import pytest
from pydantic import BaseModel

from blklab.labs.studies import study_in
from blklab.labs.studies.replication.protocol import Study
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.shipped import shipped_folder

Model = TypeVar("Model", bound=BaseModel)


def with_sizes(monkeypatch: pytest.MonkeyPatch, sizes: Mapping[str, Mapping[str, object]]) -> None:
    """Has set-up.toml read with other values: by table, then key."""
    whole = StudyFolder.set_up

    def smaller(folder: StudyFolder, model: type[Model]) -> Model:
        set_up = whole(folder, model)
        changed = {
            table: getattr(set_up, table).model_copy(update=dict(values)) for table, values in sizes.items()
        }
        return set_up.model_copy(update=changed)

    monkeypatch.setattr(StudyFolder, "set_up", smaller)


def smaller_copy(folder: Path, name: str, changes: Mapping[str, str]) -> Study:
    """A copy of a described study in a folder, with other texts in study.toml."""
    copy = folder / name
    shutil.copytree(shipped_folder("studies") / name, copy)
    text = (copy / "study.toml").read_text("utf-8")
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    (copy / "study.toml").write_text(text, "utf-8")
    return study_in(copy)
