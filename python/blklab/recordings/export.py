"""Exports recordings to Parquet and NumPy.

Parquet keeps names as text and unknown values as nulls, so that any tool can read it. NumPy's ``.npz`` keeps
the columns as they are, with ``names``, ``facts`` and ``tally``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from blklab.errors import MissingToolError, SpaceError, UsageError, reason_of
from blklab.recordings.trace import (
    NEVER,
    UNKNOWN_IOPRIO,
    UNKNOWN_PROCESSOR,
    UNKNOWN_SEGMENTS,
    UNKNOWN_TASK,
    Columns,
    TraceReader,
    flag_names,
    operation_names,
    read_trace,
)

if TYPE_CHECKING:
    import pyarrow as pa

_UNKNOWN: Final = {
    "split_ns": NEVER,
    "queued_ns": NEVER,
    "merged_ns": NEVER,
    "inserted_ns": NEVER,
    "issued_ns": NEVER,
    "completed_ns": NEVER,
    "tgid": UNKNOWN_TASK,
    "tid": UNKNOWN_TASK,
    "ioprio": UNKNOWN_IOPRIO,
    "processor": UNKNOWN_PROCESSOR,
    "segments": UNKNOWN_SEGMENTS,
}
"""The value of each column that means unknown or never."""


_ROW_GROUP_IOS: Final = 1 << 17
"""I/Os of a row group of Parquet at least."""


def export(source: str | Path, destination: str | Path, format_name: str | None = None) -> int:
    """Writes a recording as Parquet (``.parquet``) or NumPy (``.npz``).

    Args:
        source: A recording or another program's trace.
        destination: The file to write; its ending says the format.
        format_name: Format of the source; None recognises it.

    Returns:
        The number of I/Os.

    Raises:
        UsageError: if the ending is another one.
        MissingToolError: if pyarrow is missing.
        SpaceError: if the file cannot be written.
        DataError: if the source cannot be read.
    """
    path = Path(destination)
    writers: dict[str, Callable[[str | Path, str | None, Path], int]] = {
        ".parquet": _to_parquet,
        ".npz": _to_npz,
    }
    write = writers.get(path.suffix)
    if write is None:
        raise UsageError(f"{path}: a recording is exported to {' or '.join(writers)}")
    # Beside the destination, so that a failure leaves no half of a file under its name.
    partial = path.with_name(f".{path.name}.{os.getpid()}{path.suffix}")
    try:
        count = write(source, format_name, partial)
        partial.replace(path)
    except OSError as error:
        raise SpaceError(f"{path}: cannot be written: {reason_of(error)}") from error
    finally:
        partial.unlink(missing_ok=True)
    return count


def _to_npz(source: str | Path, format_name: str | None, path: Path) -> int:
    trace = read_trace(source, format_name)
    columns: dict[str, Any] = {
        **trace.ios,
        **{f"task_{name}": column for name, column in trace.tasks.items()},
        "names": np.array(trace.names),
        "facts": np.array(trace.facts.model_dump_json()),
        "tally": np.array(trace.tally.model_dump_json()),
    }
    np.savez_compressed(path, **columns)
    return trace.tally.ios


def _to_parquet(source: str | Path, format_name: str | None, path: Path) -> int:
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError as error:
        raise MissingToolError("Parquet needs pyarrow", hint="pip install 'blklab[parquet]'") from error
    reader = TraceReader(source, format_name)
    schema = _schema(pa)
    count = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for ios in _row_groups(reader):
            writer.write_table(_table(pa, ios, reader, schema))
            count += len(ios["sector"])
        writer.add_key_value_metadata(
            {"blklab.facts": reader.facts.model_dump_json(), "blklab.tally": reader.tally.model_dump_json()}
        )
    return count


def _row_groups(reader: TraceReader) -> Iterator[Columns]:
    """The I/Os in groups: each has the names that it refers to, and costs as much as a thousand I/Os."""
    waiting: list[Columns] = []
    rows = 0
    for ios, _ in reader.batches():
        if not len(ios["sector"]):
            continue  # task events only
        waiting.append(ios)
        rows += len(ios["sector"])
        if rows >= _ROW_GROUP_IOS:
            yield _together(waiting)
            waiting, rows = [], 0
    if waiting:
        yield _together(waiting)


def _together(batches: list[Columns]) -> Columns:
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}


def _schema(pa: Any) -> pa.Schema:
    text = pa.dictionary(pa.int32(), pa.string())
    times = ("queued_ns", "split_ns", "merged_ns", "inserted_ns", "issued_ns", "completed_ns")
    return pa.schema(
        [
            *((name, pa.int64()) for name in times),
            ("sector", pa.uint64()),
            ("bytes", pa.uint64()),
            ("operation", text),
            *((name, pa.bool_()) for name in flag_names().values()),
            ("ioprio", pa.uint16()),
            ("error", pa.uint16()),
            ("tgid", pa.uint32()),
            ("tid", pa.uint32()),
            ("command", text),
            ("cgroup", text),
            ("processor", pa.uint16()),
            ("segments", pa.uint16()),
            ("device", text),
        ]
    )


def _table(pa: Any, ios: Columns, reader: TraceReader, schema: pa.Schema) -> pa.Table:
    names = reader.names
    devices = {device.number: device.name for device in reader.facts.devices}
    numbers, device_places = np.unique(ios["device"], return_inverse=True)
    used = {name: np.unique(ios[name], return_inverse=True) for name in ("command", "cgroup")}
    flags = {name: (ios["flags"] & bit) != 0 for bit, name in flag_names().items()}
    texts = {
        "operation": (ios["operation"], operation_names()),
        **{name: (places, [names[number] for number in kept]) for name, (kept, places) in used.items()},
        "device": (device_places, [devices.get(int(number), str(number)) for number in numbers]),
    }
    arrays = []
    for field in schema:
        if field.name in texts:
            indices, words = texts[field.name]
            # The first name means unknown.
            mask = ios[field.name] == 0 if field.name in used else None
            places = pa.array(indices.astype(np.int32), mask=mask)
            column = pa.DictionaryArray.from_arrays(places, pa.array(words, pa.string()))
        elif field.name in flags:
            column = pa.array(flags[field.name])
        else:
            values = ios[field.name]
            unknown = _UNKNOWN.get(field.name)
            mask = values == unknown if unknown is not None else None
            column = pa.array(values.astype(field.type.to_pandas_dtype()), field.type, mask=mask)
        arrays.append(column)
    return pa.Table.from_arrays(arrays, schema=schema)
