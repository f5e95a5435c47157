"""Reads the files of a study's folder.

=====================  ===========================================================================
``published/*.csv``    the values as printed
``claims.toml``        source, set-up, conclusions, and the analyses of the printed values
``set-up.toml``        the replication as data: devices, schedulers, sizes, the values for ``--quick``
``*.fio``              the jobs
``expected.toml``      the expected statements and values, with bounds and reasons
=====================  ===========================================================================
"""

from __future__ import annotations

import csv
import functools
import re
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import TypeVar

from pydantic import BaseModel

from blklab.errors import DataError, SpecError, did_you_mean, reason_of
from blklab.labs.studies.published.study import (
    PUBLISHED,
    StudyReading,
    load_published_study,
    read_published_study,
    read_study_file,
    read_study_table,
    study_place,
)
from blklab.spec.workloads import Workload, parse_workload

SET_UP_FILE = "set-up.toml"

_FILE_NAME = re.compile(r"[\w][\w. +-]*")

Model = TypeVar("Model", bound=BaseModel)


class StudyFolder:
    """The files of a study."""

    def __init__(self, name: str, folder: Path | None = None) -> None:
        """Finds the folder.

        Args:
            name: Name of the study.
            folder: Its folder, if it does not ship.

        Raises:
            UnknownNameError: if there is no study with this name.
            SpecError: if its claims have a mistake.
        """
        self.name = name
        self.place = study_place(name, folder)
        """The folder in messages."""
        self.claims, self.folder = load_published_study(name, folder)
        self._own = folder

    @functools.cached_property
    def readings(self) -> StudyReading:
        """The printed claims, compared with the printed values."""
        return read_published_study(self.name, self._own)

    def rows(self, file: str, /, **where: str) -> list[dict[str, str]]:
        """Rows of a table of published values whose columns have the given values.

        Raises:
            DataError: if the file cannot be read, or no row matches.
        """
        place = f"{self.place}/{PUBLISHED}/{file}"
        try:
            reader = csv.DictReader(read_study_file(self._file(PUBLISHED, file)).splitlines())
            rows = []
            for row in reader:
                if None in row or None in row.values():
                    number = reader.line_num
                    raise DataError(f"{place}, line {number}: has more or fewer cells than the headings")
                rows.append(row)
        except OSError as error:
            raise DataError(f"{place}: cannot be read: {reason_of(error)}", hint=_CSV_HINT) from error
        except (csv.Error, UnicodeDecodeError) as error:
            raise DataError(f"{place}: is not a table: {error}", hint=_CSV_HINT) from error
        for column in where:
            _require_column(place, rows, column)
        found = [row for row in rows if all(row[key] == value for key, value in where.items())]
        if not found:
            raise DataError(f"{place} has no row with {where}", hint="`where` names the values of columns")
        return found

    def cells(self, file: str, column: str, /, **where: str) -> list[str]:
        """One column of the matching rows, in their order.

        Raises:
            DataError: as `rows`, or if there is no such column.
        """
        rows = self.rows(file, **where)
        _require_column(f"{self.place}/{PUBLISHED}/{file}", rows, column)
        return [row[column] for row in rows]

    def values(self, file: str, column: str, /, **where: str) -> list[float]:
        """The same as numbers.

        Raises:
            DataError: as `cells`, or if a cell is not a number.
        """
        try:
            return [float(cell) for cell in self.cells(file, column, **where)]
        except ValueError as error:
            raise DataError(
                f"{self.place}/{PUBLISHED}/{file}, column {column}: {error}", hint=_CSV_HINT
            ) from error

    def set_up(self, model: type[Model]) -> Model:
        """The set-up as data.

        Raises:
            SpecError: if the file cannot be read or has a mistake.
        """
        return self.toml(SET_UP_FILE, model)

    def toml(self, file: str, model: type[Model]) -> Model:
        """A TOML file of the folder.

        Raises:
            SpecError: if it cannot be read or has a mistake.
        """
        return read_study_table(self.folder, file, self.place, model)

    def workload(self, file: str, *, name: str | None = None, **values: str | int) -> Workload:
        """A job file of the folder, with placeholders such as ``$size`` replaced by the given values.

        Raises:
            JobFileError: if it has a mistake.
            SpecError: if it cannot be read, or a value is missing.
        """
        return self.filled_workload(file, name, values)

    def filled_workload(self, file: str, name: str | None, values: Mapping[str, str | int]) -> Workload:
        """The same with values whose names a reader chose."""
        place = f"{self.place}/{file}"
        try:
            text = Template(read_study_file(self._file(file))).substitute(values)
        except OSError as error:
            raise SpecError(f"{place}: cannot be read: {reason_of(error)}") from error
        except UnicodeDecodeError as error:
            raise SpecError(f"{place}: is not text: {error}") from error
        except KeyError as error:
            raise SpecError(f"{place}: no value for ${error.args[0]}", hint="`values` gives them") from error
        except ValueError as error:
            raise SpecError(f"{place}: {error}", hint="`$$` is a dollar sign") from error
        return parse_workload(text, name=name or Path(file).stem, source=place)

    def _file(self, *parts: str) -> Path:
        """A file of the folder: a study reads no others."""
        if _FILE_NAME.fullmatch(parts[-1]) is None:
            raise SpecError(f"{self.place}: {parts[-1]!r} is not the name of a file in the study's folder")
        return self.folder.joinpath(*parts)


_CSV_HINT = "a table has comma-separated cells, and its headings in the first line"


def _require_column(place: str, rows: list[dict[str, str]], column: str) -> None:
    if rows and column not in rows[0]:
        close = did_you_mean(column, list(rows[0])) or f"it has {', '.join(rows[0])}"
        raise DataError(f"{place} has no column {column!r}", hint=close)
