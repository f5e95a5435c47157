"""The pictures of a study as data; `blklab.labs.studies.replication.report` draws them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LineSeries:
    """One line of a `LinePicture`."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    dashed: bool = False


@dataclass(frozen=True)
class _Titled:
    name: str
    """File name without its suffix, such as ``per-second``."""
    title: str
    note: str
    """How to read the picture."""


@dataclass(frozen=True)
class LinePicture(_Titled):
    """Lines over a common axis.

    An axis is logarithmic if its values span a wide range; the horizontal one never is with `counts`.
    """

    x_axis: str
    """Name and unit."""
    y_axis: str
    series: tuple[LineSeries, ...]
    counts: bool = False
    """The horizontal axis is a running count, such as the number of a run."""


@dataclass(frozen=True)
class MatrixPicture(_Titled):
    """A table of values, tinted by size."""

    row_axis: str
    column_axis: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    """By row and column; None for an empty cell."""
    decimals: int
    """Decimals of the printed values."""
    middle: float | None = None
    """The value without a tint; larger and smaller values get different colours. None: the smallest value."""


@dataclass(frozen=True)
class IntervalRow:
    """One row of an `IntervalPicture`."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    published: bool = False
    """Drawn in another colour, because it is not ours."""


@dataclass(frozen=True)
class IntervalPicture(_Titled):
    """Values with their intervals, one row each, on one axis."""

    axis: str
    """Name and unit."""
    rows: tuple[IntervalRow, ...]
    marks: tuple[tuple[float, str], ...] = ()
    """Named values, drawn as lines across all rows."""


@dataclass(frozen=True)
class SurfacePicture(_Titled):
    """A table of values as a surface in space, the usual view of iozone's tables."""

    row_axis: str
    column_axis: str
    height_axis: str
    """Name and unit of the values."""
    rows: tuple[str, ...]
    """From the back to the front."""
    columns: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    """By row and column; positive."""


Picture = LinePicture | MatrixPicture | IntervalPicture | SurfacePicture
