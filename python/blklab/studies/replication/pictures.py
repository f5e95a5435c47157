"""What a study's pictures show, as data; `blklab.studies.replication.report` draws them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Course:
    """One line of a `LinePicture`."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    dashed: bool = False


@dataclass(frozen=True)
class _Titled:
    name: str
    """Of the file, such as ``per-second``."""
    title: str
    note: str
    """How to read it."""


@dataclass(frozen=True)
class LinePicture(_Titled):
    """Courses over a common axis; both axes are logarithmic where figures span much, unless `counts`."""

    x_axis: str
    """Name and unit."""
    y_axis: str
    courses: tuple[Course, ...]
    counts: bool = False
    """Whether the horizontal axis counts something off, and so is never logarithmic."""


@dataclass(frozen=True)
class MatrixPicture(_Titled):
    """A table of figures, tinted by size."""

    row_axis: str
    column_axis: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    """By row and column; nothing where there is no figure."""
    decimals: int
    """Of the printed figures."""
    middle: float | None = None
    """Figure without a tint: those above and below it are tinted differently. Nothing: the lowest one."""


@dataclass(frozen=True)
class IntervalRow:
    """One row of an `IntervalPicture`."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    published: bool = False
    """Drawn apart: not ours."""


@dataclass(frozen=True)
class IntervalPicture(_Titled):
    """Figures with their intervals, one below the other on one axis."""

    axis: str
    """Name and unit."""
    rows: tuple[IntervalRow, ...]
    marks: tuple[tuple[float, str], ...] = ()
    """Values with a name, drawn as lines across all rows."""


@dataclass(frozen=True)
class SurfacePicture(_Titled):
    """A table of figures as a surface in space: how iozone's users look at its tables."""

    row_axis: str
    column_axis: str
    height_axis: str
    """Name and unit of the figures."""
    rows: tuple[str, ...]
    """From the back to the front."""
    columns: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    """By row and column; positive."""


Picture = LinePicture | MatrixPicture | IntervalPicture | SurfacePicture
