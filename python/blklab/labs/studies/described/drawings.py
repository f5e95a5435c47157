"""The pictures of a described study."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blklab.labs.studies.described.measured import StudyRuns
from blklab.labs.studies.described.parts import DescribedPicture, PictureLine, PictureRows, filled
from blklab.labs.studies.described.rows import ValueRow
from blklab.labs.studies.described.runs import Published, arithmetic_mean, session_values
from blklab.labs.studies.replication.options import StudyBackend
from blklab.labs.studies.replication.pictures import (
    IntervalPicture,
    IntervalRow,
    LinePicture,
    LineSeries,
    Picture,
)


def drawn(
    measured: StudyRuns, one: DescribedPicture, rows: Sequence[ValueRow], backend: StudyBackend
) -> Picture | None:
    """A picture; None if nothing that it shows was measured."""
    if one.kind == "session":
        return _session(measured, one) if one.ours in measured.series else None
    if one.kind == "lines":
        lines = [_line(part, rows) for part in one.lines if part.is_on(backend)]
        if not any(line.x for line in lines):
            return None
        return LinePicture(one.name, one.title, one.note, one.x_axis, one.axis, tuple(lines))
    shown = tuple(row for part in one.rows if part.is_on(backend) for row in _interval_rows(part, rows))
    marks = tuple((value, name) for name, value in one.marks.items())
    return IntervalPicture(one.name, one.title, one.note, one.axis, shown, marks) if shown else None


def _line(part: PictureLine, rows: Sequence[ValueRow]) -> LineSeries:
    points = [
        (row.x, found.value)
        for row in rows
        for found in [row.value.published if part.origin == "published" else row.value.ours]
        if row.value.table == part.table and row.x is not None and found is not None
    ]
    return LineSeries(part.label, tuple(x for x, _ in points), tuple(y for _, y in points), part.dashed)


def _interval_rows(part: PictureRows, rows: Sequence[ValueRow]) -> Iterator[IntervalRow]:
    for row in rows:
        value = row.value
        if value.table == part.table:
            for origin, one in (("published", value.published), ("ours", value.ours)):
                if one is not None:
                    label = filled(part.label, name=value.name, scheduler=row.scheduler, origin=origin)
                    yield IntervalRow(label, one.value, one.low, one.high, published=origin == "published")


def _session(measured: StudyRuns, one: DescribedPicture) -> LinePicture | None:
    """Both sessions run by run, relative to the mean of each."""
    theirs = measured.published[one.published or ""]
    ours = measured.series[one.ours or ""]
    own = [value for label in theirs for value in ours.get(label, {}).values()]
    if not own:
        return None
    series = [*_session_lines(theirs, dashed=False), *_session_lines({"ours": own}, dashed=True)]
    return LinePicture(
        one.name,
        one.title,
        one.note,
        "run of the session",
        "relative to the mean of the session",
        tuple(series),
        counts=True,
    )


def _session_lines(runs: Published, *, dashed: bool) -> Iterator[LineSeries]:
    mean, begun = arithmetic_mean(session_values(runs)), 0
    for label, values in runs.items():
        numbers = tuple(float(begun + index + 1) for index in range(len(values)))
        yield LineSeries(label, numbers, tuple(value / mean for value in values), dashed=dashed)
        begun += len(values)
