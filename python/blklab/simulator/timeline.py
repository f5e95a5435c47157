"""The inside view of one simulated run: what happened to every request and every I/O, as NumPy columns.

A file (``.timeline``) is

====================  ====================================================================================
16 bytes              the magic ``blklab timeline`` and a line feed
4 bytes               version of the format (1)
4 bytes               length of the header in bytes (a multiple of 8, so that rows lie aligned)
the header            JSON: ``tables`` (name, rows, row_bytes, crc32 and columns, each with name, bytes, unit
                      and help) and ``run`` (what was simulated), padded with blanks
the tables            rows of fixed size, one table behind the other, in the order of the header
====================  ====================================================================================

All integers are unsigned and little endian. The header names every column, so a reader in any language
needs nothing else; docs/reference/simulator.md lists the columns.
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
from blklab.records.samples import JobSample

MAGIC: Final = b"blklab timeline\n"
SUFFIX: Final = ".timeline"
_PREFIX_BYTES: Final = len(MAGIC) + 8

SECTOR_BYTES: Final = 512

NO_JOB: Final = 0xFFFF
"""Job of a row that no job stands behind: background writeback, cache flushes."""
NO_HEAD: Final = 0xFFFF_FFFF_FFFF_FFFF
"""Head position of a device that has no head."""

MERGED, SYNC, READAHEAD, BACKGROUND, BUFFERED = 1, 2, 4, 8, 16
"""Bits of the column ``flags``."""

READ, WRITE, FLUSH = 0, 1, 2
"""Values of the column ``operation``."""

Table = NDArray[np.void]
"""A structured array: ``table["arrive_ns"]`` is a column."""


class RunFacts(BaseModel):
    """What a timeline shows."""

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
    """In the order that the column ``job`` counts."""
    engine: dict[str, Any]


@dataclass(frozen=True)
class TableFormat:
    """Columns of a table and their place in a row."""

    name: str
    columns: tuple[tuple[str, int, str, str], ...]
    """Name, bytes, unit and meaning of each."""

    @property
    def dtype(self) -> np.dtype[np.void]:
        """As NumPy reads it."""
        return np.dtype([(name, f"<u{width}") for name, width, _, _ in self.columns])


@functools.cache
def table_formats() -> tuple[int, dict[str, TableFormat]]:
    """Version of the format, and its tables by name."""
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
    """A row for each request given to the device, each followed by the pieces that were merged into it."""
    ios: Table
    """A row for each I/O or call of a job."""

    @staticmethod
    def from_rows(run: RunFacts, requests: bytes, ios: bytes) -> Timeline:
        """From rows as the compiled core writes them; nothing is copied."""
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
            with Path(path).open("wb") as file:
                file.write(MAGIC + version.to_bytes(4, "little") + len(header).to_bytes(4, "little"))
                file.write(header)
                file.writelines(contents.values())
        except OSError as error:
            raise SpaceError(f"{path}: cannot be written: {error.strerror}") from error

    @staticmethod
    def load(path: str | Path) -> Timeline:
        """Reads a file.

        Raises:
            DataError: if it cannot be read, is no timeline, of another version, cut off or damaged.
        """
        try:
            content = Path(path).read_bytes()
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
            raise DataError(f"{path}: the header of the timeline names other tables")
        rows, at = {}, _PREFIX_BYTES + header_bytes
        for name, (count, crc32) in places.items():
            end = at + count * formats[name].dtype.itemsize
            table = content[at:end]
            if count < 0 or end > len(content) or zlib.crc32(table) != crc32:
                raise DataError(f"{path}: the table {name} is cut off or damaged")
            rows[name], at = table, end
        return Timeline.from_rows(run, rows["requests"], rows["ios"])
