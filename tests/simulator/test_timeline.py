"""Timelines: columns, files, and the errors of damaged files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from blklab.errors import DataError, SpaceError
from blklab.simulator.timeline import FLUSH, MERGED, NO_HEAD, NO_JOB, Timeline, table_formats
from plain_simulation import simulate

JOBS = """
[reader]
rw=randread
bs=4k
direct=1
number_ios=300
size=64m

[log]
rw=write
bs=64k
size=4m
fdatasync=8
"""


@pytest.fixture(scope="module")
def timeline() -> Timeline:
    recorded = simulate("hdd-7200", JOBS, scheduler="deadline", timeline=True).timeline
    assert recorded is not None
    return recorded


def test_columns_are_arrays_by_name(timeline: Timeline) -> None:
    columns = timeline.columns()
    assert all(column.flags.c_contiguous for column in columns.values())
    assert {len(column) for column in columns.values()} == {len(timeline.requests)}
    assert (columns["arrive_ns"] <= columns["dispatch_ns"]).all()
    assert (columns["dispatch_ns"] < columns["complete_ns"]).all()
    assert (columns["head_complete"] != NO_HEAD).all()
    assert set(columns["job"].tolist()) == {0, 1, NO_JOB}
    assert (columns["operation"] == FLUSH).sum() == timeline.run.engine["flushes"]
    assert ((columns["flags"] & MERGED) != 0).sum() == timeline.run.engine["merges"]
    ios = timeline.columns("ios")
    assert (ios["job"] == 0).sum() == 300
    assert ios["bytes"][ios["job"] == 0].tolist() == [4096] * 300


def test_a_file_gives_back_what_was_recorded(timeline: Timeline, tmp_path: Path) -> None:
    timeline.save(tmp_path / "a.timeline")
    again = Timeline.load(tmp_path / "a.timeline")
    assert again.run == timeline.run
    assert again.requests.tobytes() == timeline.requests.tobytes()
    assert again.ios.tobytes() == timeline.ios.tobytes()


def test_the_header_is_all_that_another_reader_needs(timeline: Timeline, tmp_path: Path) -> None:
    """As docs/reference/simulator.md shows it."""
    timeline.save(tmp_path / "a.timeline")
    content = (tmp_path / "a.timeline").read_bytes()
    length = int.from_bytes(content[20:24], "little")
    assert length % 8 == 0
    table = json.loads(content[24 : 24 + length])["tables"][0]
    columns = [(column["name"], f"<u{column['bytes']}") for column in table["columns"]]
    requests = np.frombuffer(content, columns, table["rows"], 24 + length)
    assert requests.tobytes() == timeline.requests.tobytes()


def test_rows_are_not_padded() -> None:
    _, formats = table_formats()
    assert {name: one.dtype.itemsize for name, one in formats.items()} == {"requests": 80, "ios": 32}


def test_damage_is_found(timeline: Timeline, tmp_path: Path) -> None:
    file = tmp_path / "a.timeline"
    timeline.save(file)
    content = file.read_bytes()
    length = int.from_bytes(content[20:24], "little")
    cases = {
        "truncated or damaged": [
            content[:-1],
            content[: 24 + length + 1000],
            content[:-40] + bytes(8) + content[-32:],
        ],
        "header": [content[:100], content[:24] + b"x" * length + content[24 + length :]],
        "version 9": [content[:16] + b"\x09" + content[17:]],
        "is not a timeline": [b"", b"hello", content[1:]],
    }
    for said, damaged in cases.items():
        for bad in damaged:
            file.write_bytes(bad)
            with pytest.raises(DataError, match=said):
                Timeline.load(file)
    with pytest.raises(DataError, match="cannot be read"):
        Timeline.load(tmp_path / "missing")
    with pytest.raises(SpaceError, match="cannot be written"):
        timeline.save(tmp_path / "no" / "folder")
