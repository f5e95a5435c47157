"""A study's folder: figures as printed, what they support, the set-up as data, the job files.

=====================  ==========================================================================
``published/*.csv``    figures as printed
``claims.toml``        source, set-up and conclusions, and the questions that the figures are asked
``set-up.toml``        what to run, as data: devices, schedulers, sizes, the values of ``--quick``
``*.fio``              the jobs
``expected.toml``      statements and figures that must come out, with bounds and reasons
=====================  ==========================================================================
"""

from __future__ import annotations

import csv
import functools
import sys
from pathlib import Path
from string import Template
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from blklab.errors import DataError, SpecError
from blklab.spec.workloads import Workload, parse_workload
from blklab.studies.published.study import PUBLISHED, PublishedStudy, StudyReading, load_study, read_study

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SET_UP_FILE = "set-up.toml"


class Table(BaseModel):
    """A table of ``set-up.toml`` or ``expected.toml``: a name that it does not know is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid")


Model = TypeVar("Model", bound=BaseModel)


class Published:
    """What ships with a study."""

    def __init__(self, name: str) -> None:
        """Finds the folder.

        Raises:
            UnknownNameError: if there is no study of that name.
            SpecError: if its claims have a mistake.
        """
        self.name = name
        self.claims: PublishedStudy
        self.folder: Path
        self.claims, self.folder = load_study(name)

    @functools.cached_property
    def readings(self) -> StudyReading:
        """What the published figures support."""
        return read_study(self.name)

    def rows(self, file: str, **where: str) -> list[dict[str, str]]:
        """Lines of a table of published figures, those whose columns have the given values.

        Raises:
            DataError: if the file cannot be read, or nothing is left of it.
        """
        try:
            with (self.folder / PUBLISHED / file).open(encoding="utf-8", newline="") as stream:
                lines = list(csv.DictReader(stream))
        except OSError as error:
            raise DataError(f"studies/{self.name}/{PUBLISHED}/{file}: {error.strerror}") from error
        found = [line for line in lines if all(line.get(key) == value for key, value in where.items())]
        if not found:
            raise DataError(f"studies/{self.name}/{PUBLISHED}/{file} has no line with {where}")
        return found

    def figures(self, file: str, column: str, **where: str) -> list[float]:
        """One column of such lines, in their order.

        Raises:
            DataError: as `rows`, or if a cell is no number.
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
        place = f"studies/{self.name}/{file}"
        try:
            return model.model_validate(tomllib.loads((self.folder / file).read_text(encoding="utf-8")))
        except OSError as error:
            raise SpecError(f"{place}: cannot be read: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise SpecError(f"{place}: {error}") from error
        except ValidationError as error:
            first = error.errors()[0]
            raise SpecError(f"{place}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error

    def workload(self, file: str, *, name: str | None = None, **values: str | int) -> Workload:
        """A job file of the folder; ``$size`` and the like in it stand for the given values.

        Raises:
            JobFileError: if it has a mistake.
            SpecError: if it cannot be read, or a value is missing.
        """
        place = f"studies/{self.name}/{file}"
        try:
            text = Template((self.folder / file).read_text(encoding="utf-8")).substitute(values)
        except OSError as error:
            raise SpecError(f"{place}: cannot be read: {error.strerror}") from error
        except (KeyError, ValueError) as error:
            raise SpecError(f"{place}: no value for {error}") from error
        return parse_workload(text, name=name or Path(file).stem, source=place)
