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
import sys
from pathlib import Path
from string import Template
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from blklab.errors import DataError, SpecError
from blklab.labs.studies.published.study import (
    PUBLISHED,
    PublishedStudy,
    StudyReading,
    load_published_study,
    read_published_study,
)
from blklab.spec.mistakes import first_mistake
from blklab.spec.workloads import Workload, parse_workload

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SET_UP_FILE = "set-up.toml"


Model = TypeVar("Model", bound=BaseModel)


class StudyFolder:
    """The files that ship with a study."""

    def __init__(self, name: str) -> None:
        """Finds the folder.

        Raises:
            UnknownNameError: if there is no study with this name.
            SpecError: if its claims have a mistake.
        """
        self.name = name
        self.claims: PublishedStudy
        self.folder: Path
        self.claims, self.folder = load_published_study(name)

    @functools.cached_property
    def readings(self) -> StudyReading:
        """The printed claims, compared with the printed values."""
        return read_published_study(self.name)

    def rows(self, file: str, **where: str) -> list[dict[str, str]]:
        """Rows of a table of published values whose columns have the given values.

        Raises:
            DataError: if the file cannot be read, or no row matches.
        """
        try:
            with (self.folder / PUBLISHED / file).open(encoding="utf-8", newline="") as stream:
                lines = list(csv.DictReader(stream))
        except OSError as error:
            raise DataError(f"studies/{self.name}/{PUBLISHED}/{file}: {error.strerror}") from error
        found = [line for line in lines if all(line.get(key) == value for key, value in where.items())]
        if not found:
            raise DataError(f"studies/{self.name}/{PUBLISHED}/{file} has no row with {where}")
        return found

    def values(self, file: str, column: str, **where: str) -> list[float]:
        """One column of the matching rows, in their order.

        Raises:
            DataError: as `rows`, or if a cell is not a number.
        """
        try:
            return [float(line[column]) for line in self.rows(file, **where)]
        except (KeyError, ValueError) as error:
            raise DataError(f"studies/{self.name}/{PUBLISHED}/{file}, column {column}: {error}") from error

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
        path = f"studies/{self.name}/{file}"
        try:
            return model.model_validate(tomllib.loads((self.folder / file).read_text(encoding="utf-8")))
        except OSError as error:
            raise SpecError(f"{path}: cannot be read: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise SpecError(f"{path}: {error}") from error
        except ValidationError as error:
            raise SpecError(f"{path}: {first_mistake(error)}") from error

    def workload(self, file: str, *, name: str | None = None, **values: str | int) -> Workload:
        """A job file of the folder, with placeholders such as ``$size`` replaced by the given values.

        Raises:
            JobFileError: if it has a mistake.
            SpecError: if it cannot be read, or a value is missing.
        """
        path = f"studies/{self.name}/{file}"
        try:
            text = Template((self.folder / file).read_text(encoding="utf-8")).substitute(values)
        except OSError as error:
            raise SpecError(f"{path}: cannot be read: {error.strerror}") from error
        except (KeyError, ValueError) as error:
            raise SpecError(f"{path}: no value for {error}") from error
        return parse_workload(text, name=name or Path(file).stem, source=path)
