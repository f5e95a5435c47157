"""The recording in a guest's answer."""

from __future__ import annotations

from typing import Any

import pytest

from blklab.errors import RunFailedError
from blklab.guests.recorded_ios import RecordedIo, recorded_ios


def answer(**changes: Any) -> dict[str, Any]:
    columns = {
        "jobs": [0, 1],
        "process": [1, 0],
        "is_write": [0, 1],
        "offset": [4096, 0],
        "bytes": [4096, 512],
        "queued_ns": [0, 7],
        "submitted_ns": [0, 9],
        "completed_ns": [100, 200],
    }
    return {"recording": columns | changes}


def test_columns_become_ios() -> None:
    rows = [(1, 1, False, 4096, 4096, 0, 0, 100), (0, 0, True, 0, 512, 7, 9, 200)]
    assert recorded_ios(answer()) == [RecordedIo(*row) for row in rows]


@pytest.mark.parametrize("wrong", [{}, {"recording": None}, answer(jobs=[]), answer(offset=[1])])
def test_a_broken_recording_is_no_recording(wrong: dict[str, Any]) -> None:
    with pytest.raises(RunFailedError, match="recording"):
        recorded_ios(wrong)
