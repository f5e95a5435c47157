"""Timelines of simulated runs: every request and every I/O, as NumPy columns.

A file (``.timeline``) consists of

====================  ====================================================================================
16 bytes              the magic ``blklab timeline`` and a line feed
4 bytes               version of the format (1)
4 bytes               length of the header in bytes (a multiple of 8, so that rows lie aligned)
the header            JSON: ``tables`` (name, rows, row_bytes, crc32 and columns, each with name, bytes, unit
                      and help) and ``run`` (facts about the run), padded with spaces
the tables            rows of fixed size, one table after the other, in the order of the header
====================  ====================================================================================

All integers are unsigned and little endian. The header describes every column, so a reader in any language
needs no other information; docs/reference/simulator.md lists the columns.
"""

from __future__ import annotations

import functools
import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from blklab import _core
from blklab.errors import DataError, SpaceError
from blklab.named_files import MOST_TIMELINE_BYTES, read_bytes, written_whole
from blklab.quantities.formatting import count_of
from blklab.records.samples import ChangeSample, JobSample

MAGIC: Final = b"blklab timeline\n"
SUFFIX: Final = ".timeline"
_PREFIX_BYTES: Final = len(MAGIC) + 8

SECTOR_BYTES: Final = 512

NO_JOB: Final = 0xFFFF
"""Value of ``job`` for a row without a job: background writeback, cache flushes."""
NO_HEAD: Final = 0xFFFF_FFFF_FFFF_FFFF
"""Head position of a device without a head."""

MERGED, SYNC, READAHEAD, BACKGROUND, BUFFERED = 1, 2, 4, 8, 16
"""Bits of the column ``flags``."""

READ, WRITE, FLUSH = 0, 1, 2
"""Values of the column ``operation``."""

Table = NDArray[np.void]
"""A structured array: ``table["arrive_ns"]`` is a column."""


class RunFacts(BaseModel):
    """Facts about the run of a timeline."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: str
    workload: str
    scheduler: str
    tunables: dict[str, str | int]
    queue: dict[str, str | int]
    seed: int
    simulated_ns: int
    device: dict[str, Any]
    jobs: list[JobSample]
    """In the order of the numbers in the column ``job``."""
    engine: dict[str, Any]
    changes: list[ChangeSample] = []
    """Changes while it ran."""


@dataclass(frozen=True)
class TableFormat:
    """The columns of a table and their positions in a row."""

    name: str
    columns: tuple[tuple[str, int, str, str], ...]
    """Name, bytes, unit and meaning of each."""

    @property
    def dtype(self) -> np.dtype[np.void]:
        """The NumPy type of a row."""
        return np.dtype([(name, f"<u{width}") for name, width, _, _ in self.columns])


@functools.cache
def table_formats() -> tuple[int, dict[str, TableFormat]]:
    """The version of the format, and its tables by name."""
    described = json.loads(_core.timeline_format())
    return described["version"], {
        table["name"]: TableFormat(
            table["name"],
            tuple((one["name"], one["bytes"], one["unit"], one["help"]) for one in table["columns"]),
        )
        for table in described["tables"]
    }


@dataclass(frozen=True)
class Timeline:
    """Both tables of a run, in order of completion."""

    run: RunFacts
    requests: Table
    """One row for each request dispatched to the device, followed by rows for the requests merged into it."""
    ios: Table
    """One row for each I/O or call of a job."""

    def __repr__(self) -> str:
        """The run and the sizes of its tables; `columns` has their rows."""
        of = f"{self.run.workload} under {self.run.scheduler} on {self.run.target}"
        return (
            f"<Timeline of {of}: {count_of(len(self.requests), 'request')}, {count_of(len(self.ios), 'I/O')}>"
        )

    @staticmethod
    def from_rows(run: RunFacts, requests: bytes, ios: bytes) -> Timeline:
        """Builds a timeline from rows of the compiled core, without copying them."""
        _, formats = table_formats()
        return Timeline(
            run,
            np.frombuffer(requests, formats["requests"].dtype),
            np.frombuffer(ios, formats["ios"].dtype),
        )

    def columns(self, table: str = "requests") -> dict[str, NDArray[np.unsignedinteger[Any]]]:
        """The columns of a table (``requests`` or ``ios``), each contiguous, by name."""
        rows: Table = {"requests": self.requests, "ios": self.ios}[table]
        return {name: np.ascontiguousarray(rows[name]) for name in rows.dtype.names or ()}

    def save(self, path: str | Path) -> None:
        """Writes a file.

        Raises:
            SpaceError: if it cannot be written.
        """
        version, formats = table_formats()
        contents = {"requests": self.requests.tobytes(), "ios": self.ios.tobytes()}
        tables = [
            {
                "name": name,
                "rows": len(content) // formats[name].dtype.itemsize,
                "row_bytes": formats[name].dtype.itemsize,
                "crc32": zlib.crc32(content),
                "columns": [
                    {"name": column, "bytes": width, "unit": unit, "help": meaning}
                    for column, width, unit, meaning in formats[name].columns
                ],
            }
            for name, content in contents.items()
        ]
        header = json.dumps({"tables": tables, "run": self.run.model_dump(mode="json")}).encode()
        header += b" " * (-len(header) % 8)
        try:
            with written_whole(Path(path)) as file:
                file.write(MAGIC + version.to_bytes(4, "little") + len(header).to_bytes(4, "little"))
                file.write(header)
                file.writelines(contents.values())
        except OSError as error:
            raise SpaceError(f"{path}: cannot be written: {error.strerror}") from error

    @staticmethod
    def load(path: str | Path) -> Timeline:
        """Reads a file.

        Raises:
            DataError: if it cannot be read, or is not a timeline, of another version, truncated or damaged.
        """
        try:
            content = read_bytes(Path(path), MOST_TIMELINE_BYTES)
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror}") from error
        if not content.startswith(MAGIC):
            raise DataError(
                f"{path} is not a timeline", hint="`blklab run sim:… WORKLOAD --timeline FILE` writes one"
            )
        known_version, formats = table_formats()
        version, header_bytes = (
            int.from_bytes(content[at : at + 4], "little") for at in (len(MAGIC), len(MAGIC) + 4)
        )
        if version != known_version:
            raise DataError(f"{path}: a timeline of version {version}; this blklab reads {known_version}")
        try:
            header = json.loads(content[_PREFIX_BYTES : _PREFIX_BYTES + header_bytes])
            run = RunFacts.model_validate(header["run"])
            places = {table["name"]: (int(table["rows"]), int(table["crc32"])) for table in header["tables"]}
        except (ValueError, KeyError, TypeError, ValidationError) as error:
            raise DataError(f"{path}: the header of the timeline is damaged") from error
        if list(places) != list(formats):
            raise DataError(f"{path}: the header of the timeline lists unknown tables")
        rows, at = {}, _PREFIX_BYTES + header_bytes
        for name, (count, crc32) in places.items():
            end = at + count * formats[name].dtype.itemsize
            table = content[at:end]
            if count < 0 or end > len(content) or zlib.crc32(table) != crc32:
                raise DataError(f"{path}: the table {name} is truncated or damaged")
            rows[name], at = table, end
        return Timeline.from_rows(run, rows["requests"], rows["ios"])
