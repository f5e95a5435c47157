"""Studies with smaller sizes than the shipped ones, for tests on kernels, where every run costs seconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import pytest
from pydantic import BaseModel

from blklab.labs.studies.replication.study_folder import StudyFolder

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
