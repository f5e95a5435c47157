"""Tables as frames of pandas and polars, which are extras."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from blklab.api.tables import Kind, Table
from blklab.errors import MissingToolError

if TYPE_CHECKING:
    import pandas
    import polars

_PANDAS_TYPES: dict[Kind, str] = {
    "text": "string",
    "integer": "Int64",
    "number": "Float64",
    "truth": "boolean",
    "list": "object",
}


def pandas_frame(table: Table) -> pandas.DataFrame:
    """A frame with pandas' nullable types.

    Raises:
        MissingToolError: if pandas is not installed.
    """
    try:
        import pandas as pd  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingToolError("a pandas frame needs pandas", hint="pip install 'blklab[pandas]'") from error
    series: dict[str, Any] = {}
    for name, column in table.items():
        if column.kind == "time":
            series[name] = pd.to_datetime(pd.Series(column.values, dtype="object"), utc=True)
        else:
            series[name] = pd.Series(column.values, dtype=_PANDAS_TYPES[column.kind])
    return pd.DataFrame(series)


def polars_frame(table: Table) -> polars.DataFrame:
    """A frame with polars' types.

    Raises:
        MissingToolError: if polars is not installed.
    """
    try:
        import polars as pl  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingToolError("a polars frame needs polars", hint="pip install 'blklab[polars]'") from error
    types: dict[Kind, Any] = {
        "text": pl.String,
        "integer": pl.Int64,
        "number": pl.Float64,
        "truth": pl.Boolean,
        "list": pl.List(pl.String),
        "time": pl.String,
    }
    frame = pl.DataFrame(
        {name: pl.Series(name, column.values, dtype=types[column.kind]) for name, column in table.items()}
    )
    times = [name for name, column in table.items() if column.kind == "time"]
    return frame.with_columns(pl.col(times).str.to_datetime(time_zone="UTC")) if times else frame
