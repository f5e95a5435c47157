"""Readers of other tools' output, one module per format.

A new reader needs a module here and a line in `_MODULES`; other packages add theirs by an entry point
(`blklab.registry`). docs/reference/analyse.md describes each format,
`blklab.labs.reanalysis.readers.protocol` the interface.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from blklab.errors import BlklabError, FormatError, UnknownNameError
from blklab.labs.reanalysis.readers.iozone_workbook import is_worksheet, report_text
from blklab.labs.reanalysis.readers.protocol import Reader, ReaderOptions, Reading, Source
from blklab.named_files import MOST_RESULT_BYTES, read_bytes
from blklab.quantities.formatting import count_of, join_names
from blklab.recordings.trace import TraceReader
from blklab.registry import Registry

_MODULES = {
    "hdparm": "hdparm",
    "fio-json": "fio_json",
    "fio-terse": "fio_terse",
    "fio-normal": "fio_normal",
    "iozone": "iozone",
    "tiotest": "tiotest",
    "tiobench": "tiobench",
    "dd": "dd",
    "iotop": "iotop",
    "bonnie": "bonnie",
    "sysbench": "sysbench",
    "ioping": "ioping",
    "elbencho": "elbencho",
    "elbencho-csv": "elbencho_csv",
    "diskspd": "diskspd",
    "diskspd-xml": "diskspd_xml",
    "kdiskmark": "kdiskmark",
    "biolatency": "biolatency",
    "phoronix": "phoronix",
    "csv": "csv_table",
}


def _checked(name: str, module: Any) -> Reader:
    for attribute in ("NAME", "SUMMARY", "recognises", "read"):
        if not hasattr(module, attribute):
            raise TypeError(f"the reader {name} has no {attribute}")
    if name != module.NAME:
        raise TypeError(f"the reader {name} calls itself {module.NAME!r}")
    return cast("Reader", module)


READERS = Registry(
    "blklab.readers",
    {name: f"blklab.labs.reanalysis.readers.{module}" for name, module in _MODULES.items()},
    _checked,
)
"""By name, in the order in which recognition tries them."""


def reader_named(name: str) -> Reader:
    """Returns the reader with this name.

    Raises:
        UnknownNameError: if there is none.
    """
    if name not in READERS:
        raise UnknownNameError(f"no reader {name!r}", hint=f"there are: {', '.join(READERS)}")
    return READERS[name]


def load_source(path: str) -> tuple[Source, list[str]]:
    """Loads a file's text; also returns notes on how it was decoded.

    Raises:
        FormatError: if it cannot be read, or is not text.
    """
    try:
        content = read_bytes(Path(path), MOST_RESULT_BYTES)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a file's name"
        raise FormatError(f"{path}: cannot be read: {reason}") from error
    return decoded(path, content)


def decoded(name: str, content: bytes) -> tuple[Source, list[str]]:
    """Decodes bytes: UTF-8, UTF-16 with a byte order mark, or the cells of iozone's worksheet.

    Raises:
        FormatError: for an empty file and for other binary content.
    """
    if not content.strip():
        raise FormatError(f"{name}: the file is empty")
    if is_worksheet(content):
        return Source(name, report_text(name, content)), [f"{name}: a worksheet; its lines are its rows"]
    encoding = "utf-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    text = content.decode(encoding, "replace")
    if "\0" in text:
        raise FormatError(
            f"{name}: a binary file",
            hint="give a text file; export a spreadsheet as CSV",
        )
    notes = []
    if damaged := text.count("\N{REPLACEMENT CHARACTER}"):
        count = count_of(damaged, "character")
        notes.append(f"{name}: {count} could not be read as {encoding.removesuffix('-sig').upper()}")
    return Source(name, text.replace("\r\n", "\n")), notes


def read_source(
    source: Source, options: ReaderOptions, reader_name: str | None = None
) -> tuple[Reader, Reading]:
    """Reads a file with the named reader, or with the one that recognises it.

    A plain table is read only if the options name its value columns or `reader_name` is ``csv``.

    Raises:
        FormatError: if no reader recognises it.
        UnknownNameError: if there is no reader of that name.
    """
    if reader_name is not None:
        reader = reader_named(reader_name)
        return reader, reader.read(source, options)
    tried = [reader for reader in READERS.values() if reader.NAME != "csv"]
    if recognising := [reader for reader in tried if reader.recognises(source)]:
        reader, *others = recognising
        reading = reader.read(source, options)
        # fio's formats of one run hold the same values.
        others = [one for one in others if one.NAME.partition("-")[0] != reader.NAME.partition("-")[0]]
        if others:
            names = join_names([one.NAME for one in others])
            reading.problem(
                source.at(None),
                f"read as {reader.NAME} alone, and it also has results of {names}: analyse them with "
                f"--reader {others[0].NAME}",
            )
        return reader, reading
    if options.value_columns:
        reader = READERS["csv"]
        return reader, reader.read(source, options)
    if (trace := _trace_format(source.name)) is not None:
        raise FormatError(
            f"{source.name}: a trace ({trace}), not the results of a benchmark",
            hint=f"blklab where {shlex.quote(source.name)} shows where its I/Os waited",
        )
    for reader in tried:
        reason: Callable[[Source], FormatError | None] = getattr(reader, "why_empty", lambda _: None)
        if (error := reason(source)) is not None:
            raise error
    names = ", ".join(reader.NAME for reader in tried)
    if READERS["csv"].recognises(source):
        raise FormatError(
            f"{source.name}: a table, but not in the format of a known tool (tried: {names})",
            hint="name its value columns with --value COLUMN, and the compared factor with --factor COLUMN",
        )
    raise FormatError(
        f"{source.name}: in no known format (tried: {names})",
        hint="force a format with --reader NAME; a table with headings needs --value COLUMN",
    )


def benchmark_of(path: str) -> str | None:
    """The reader that recognises a file as the results of a tool; `None` for a table, and for all else."""
    try:
        source, _ = load_source(path)
    except FormatError:
        return None
    tools = (reader for reader in READERS.values() if reader.NAME != "csv")
    return next((reader.NAME for reader in tools if reader.recognises(source)), None)


def _trace_format(name: str) -> str | None:
    """The format of a file that is a trace of the block layer."""
    try:
        return TraceReader(name).facts.format if Path(name).is_file() else None
    except BlklabError:
        return None
