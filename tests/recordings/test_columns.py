"""Traces as NumPy columns, and their export."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blklab.errors import BlklabError, DataError, FormatError, UnknownNameError, UsageError
from blklab.recordings.export import export
from blklab.recordings.trace import (
    IO_COLUMNS,
    NEVER,
    TraceReader,
    flag_names,
    operation_names,
    read_trace,
    trace_formats,
)
from blklab.recordings.waits import analyse_waits

MSR = (
    "128166372003061629,hm,1,Read,383496192,32768,1331\n"
    "128166372016382155,hm,1,Write,310378496,4096,2326\n"
    "128166372016382255,hm,0,Read,512,1024,7\n"
)


@pytest.fixture
def msr(tmp_path: Path) -> Path:
    path = tmp_path / "hm.csv"
    path.write_text(MSR)
    return path


def test_columns_are_what_the_lines_say(msr: Path) -> None:
    trace = read_trace(msr)
    assert {name: column.dtype.str for name, column in trace.ios.items()} == {
        name: np.dtype(dtype).str for name, dtype in IO_COLUMNS.items()
    }
    assert trace.ios["bytes"].tolist() == [32768, 4096, 1024]
    assert trace.ios["sector"].tolist() == [383496192 // 512, 310378496 // 512, 1]
    assert [operation_names()[number] for number in trace.ios["operation"]] == ["read", "write", "read"]
    latencies = trace.ios["completed_ns"] - trace.ios["queued_ns"]
    assert latencies.tolist() == [133100, 232600, 700]
    assert set(trace.ios["issued_ns"]) == {NEVER}
    assert [device.name for device in trace.facts.devices] == ["hm_1", "hm_0"]
    assert (trace.tally.ios, trace.tally.whole, trace.warnings) == (3, True, [])


def test_an_empty_rest_has_all_columns(tmp_path: Path) -> None:
    path = tmp_path / "none.csv"
    path.write_text("Timestamp,Response,IOType,LUN,Offset,Size\n")
    trace = read_trace(path)
    assert all(len(column) == 0 for column in trace.ios.values())


def test_wrong_files_are_named(tmp_path: Path, msr: Path) -> None:
    with pytest.raises(UnknownNameError, match="no such file"):
        TraceReader(tmp_path / "missing")
    with pytest.raises(UnknownNameError, match="unknown trace format"):
        TraceReader(msr, "csv")
    with pytest.raises(FormatError, match="is a directory"):
        TraceReader(tmp_path)
    (tmp_path / "text").write_text("hello\n")
    with pytest.raises(FormatError, match="no reader knows this format") as caught:
        TraceReader(tmp_path / "text")
    assert all(name in str(caught.value.hint) for name in trace_formats())
    with pytest.raises(DataError, match=":1: no line can be read"):
        read_trace(msr, "alibaba")


def test_skipped_lines_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "hm.csv"
    path.write_text(MSR + "nonsense\n" * 50)
    trace = read_trace(path)
    assert trace.tally.ios == 3
    assert trace.warnings[0] == f"{path}:4: not 7 fields"
    assert trace.warnings[-1] == "30 more warnings"


def test_numpy_export_keeps_the_columns(msr: Path, tmp_path: Path) -> None:
    assert export(msr, tmp_path / "hm.npz") == 3
    with np.load(tmp_path / "hm.npz") as stored:
        assert stored["bytes"].tolist() == [32768, 4096, 1024]
        assert stored["names"].tolist() == [""]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hm.csv", "hm.npz"]


def test_parquet_export_has_names_and_nulls(msr: Path, tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    assert export(msr, tmp_path / "hm.parquet") == 3
    table = pq.read_table(tmp_path / "hm.parquet")
    rows = table.to_pylist()
    assert [row["operation"] for row in rows] == ["read", "write", "read"]
    assert [row["device"] for row in rows] == ["hm_1", "hm_1", "hm_0"]
    assert [row["completed_ns"] for row in rows] == [133100, 1332052600 + 232600, 1332062600 + 700]
    unknown = ("issued_ns", "tgid", "command", "processor", "segments")
    assert all(row[name] is None for row in rows for name in unknown)
    assert set(flag_names().values()) <= set(rows[0])


def test_exports_have_the_processors(tmp_path: Path) -> None:
    trace = tmp_path / "two.txt"
    trace.write_text(
        "  8,0 3 1 0.000000000 100 Q R 8 + 8 [a]\n"
        "  8,0 0 2 0.000100000   0 C R 8 + 8 [0]\n"
        "  8,0 1 3 0.000200000 100 Q R 16 + 8 [a]\n"
    )
    export(trace, tmp_path / "two.npz")
    with np.load(tmp_path / "two.npz") as stored:
        assert stored["processor"].tolist() == [3, 1]
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    export(trace, tmp_path / "two.parquet")
    assert pq.read_table(tmp_path / "two.parquet")["processor"].to_pylist() == [3, 1]


@pytest.mark.parametrize("ending", ["npz", "parquet"])
def test_exports_heed_the_format(msr: Path, tmp_path: Path, ending: str) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    with pytest.raises(DataError, match="no line can be read"):
        export(msr, tmp_path / f"hm.{ending}", "alibaba")
    assert [path.name for path in tmp_path.iterdir()] == ["hm.csv"]


def test_groups_of_rows_have_the_names_that_they_need(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    line = "  8,0 0 {n} {s}.000000000 {n} Q R {n} + 8 [{name}]\n"
    trace = tmp_path / "trace"
    trace.write_text("".join(line.format(n=n, s=n, name=f"task {n % 300}") for n in range(20_000)))
    assert export(trace, tmp_path / "x.parquet") == 20_000
    file = pq.ParquetFile(tmp_path / "x.parquet")
    assert file.num_row_groups == 1
    assert file.read()["command"].to_pylist() == [f"task {n % 300}" for n in range(20_000)]


def test_other_endings_are_refused(msr: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"\.parquet or \.npz"):
        export(msr, tmp_path / "hm.csv")


@settings(max_examples=200, deadline=None)
@given(
    data=st.binary(max_size=400),
    start=st.sampled_from([b"", MSR.encode(), b"blklab record\n\x01\x00", b"\x07tae"]),
)
def test_any_bytes_give_a_typed_error_or_a_trace(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, start: bytes
) -> None:
    path = tmp_path_factory.mktemp("any") / "trace"
    path.write_bytes(start + data)
    try:
        trace = read_trace(path)
        assert analyse_waits(path).all.ios == trace.tally.ios == len(trace.ios["sector"])
    except BlklabError as error:
        assert str(path) in error.message or "no reader" in error.message
