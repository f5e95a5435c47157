"""A figure over two scales, as a surface in space: how iozone's users look at its tables."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SurfacePicture:
    """A table of figures as a surface; `blklab.report.repeated` draws it."""

    name: str
    """Of the file, such as ``surface``."""
    title: str
    note: str
    """How to read it."""
    row_axis: str
    column_axis: str
    height_axis: str
    """Name and unit of the figures."""
    rows: tuple[str, ...]
    """From the back to the front."""
    columns: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    """By row and column; positive."""
