"""Converts the worksheet of ``iozone -b`` to the text that ``-R`` would have printed, one line per row.

iozone writes BIFF2, the records of Excel 2 without a container. The cells hold the report of -R; the first
one holds the command line. xlrd reads them.
"""

from __future__ import annotations

import io

from blklab.errors import FormatError

_BEGIN = bytes.fromhex("0900040002001000")
"""BOF of BIFF2: record 9 of 4 bytes, version 2, a worksheet."""


def is_worksheet(content: bytes) -> bool:
    """Whether the content is a worksheet as iozone writes it."""
    return content.startswith(_BEGIN)


def report_text(name: str, content: bytes) -> str:
    """Returns the rows as lines: texts, file sizes and record sizes in quotes, values without.

    Raises:
        FormatError: if the file is truncated or damaged.
    """
    # Only worksheets need it.
    import xlrd  # noqa: PLC0415

    try:
        book = xlrd.open_workbook(
            file_contents=content, logfile=io.StringIO(), encoding_override="latin-1", ragged_rows=True
        )
        sheet = book.sheet_by_index(0)
        rows: list[list[object]] = [sheet.row_values(number) for number in range(sheet.nrows)]
    # xlrd raises struct.error, AssertionError, IndexError or its own errors for a damaged file.
    except Exception as error:
        raise FormatError(
            f"{name}: the worksheet is truncated or damaged", hint="the output of iozone -R holds the same"
        ) from error
    return "\n".join(map(_line, rows)) + "\n"


def _line(cells: list[object]) -> str:
    heads = len(cells) if cells and cells[0] == "" else 1
    texts = [
        _number(cell) if isinstance(cell, float) and index >= heads else f'"{_plain(cell)}"'
        for index, cell in enumerate(cells)
        if cell != ""
    ]
    indent = "\t" if heads > 1 else ""
    return indent + "\t".join(texts)


def _plain(cell: object) -> str:
    text = _number(cell) if isinstance(cell, float) else str(cell)
    return " ".join(text.split()) or " "


def _number(value: float) -> str:
    return f"{value:.15g}"
