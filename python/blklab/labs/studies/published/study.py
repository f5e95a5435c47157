"""Loads published studies and analyses their printed values again.

A study is a folder of `studies/`: ``published/*.csv`` holds the values as printed, ``claims.toml`` describes
the study, the analyses of these values, and the conclusions that the study printed.
"""

from __future__ import annotations

import errno
import functools
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from blklab.errors import SpecError, UnknownNameError, reason_of
from blklab.labs.reanalysis.analysis import AnalysisRequest, FileAnalysis, analyse_files
from blklab.labs.reanalysis.design import DesignRequest
from blklab.labs.reanalysis.readers.protocol import ReaderOptions
from blklab.labs.studies.published.claims import Claim, ClaimReading, read_claim
from blklab.named_files import read_text
from blklab.shipped import shipped_folder
from blklab.spec.mistakes import first_mistake

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CLAIMS_FILE = "claims.toml"
PUBLISHED = "published"

_HOW_TO = "docs/how-to/run-studies.md describes a study's files"

Model = TypeVar("Model", bound=BaseModel)


class Reanalysis(BaseModel):
    """One analysis of a file of published values, in terms of the options of `blklab analyse`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    title: str
    file: str
    value: str
    unit: str = ""
    factor: str
    by: list[str] = []
    block: list[str] = []
    average: list[str] = []
    pool: list[str] = []
    run: str | None = None
    order: str | None = None
    where: dict[str, list[str]] = {}
    scale: Literal["difference", "ratio"] | None = None
    share: bool = False
    remarks: list[str] = []

    def request(self, folder: Path) -> AnalysisRequest:
        """This reanalysis as a request for `analyse_files`."""
        return AnalysisRequest(
            paths=[str(folder / PUBLISHED / self.file)],
            design=DesignRequest(
                factor=self.factor,
                by=tuple(self.by),
                block=tuple(self.block),
                average=tuple(self.average),
                pool=tuple(self.pool),
                run=self.run,
                order=self.order,
                where={name: frozenset(values) for name, values in self.where.items()},
                scale=self.scale,
                share=self.share,
            ),
            options=ReaderOptions(value_columns=(self.value,), unit=self.unit or None),
        )

    def arguments(self, study: str) -> list[str]:
        """The arguments of `blklab analyse`, relative to the top of the repository."""
        words = [f"studies/{study}/{PUBLISHED}/{self.file}", "--value", self.value, "--factor", self.factor]
        if self.unit:
            words += ["--unit", self.unit]
        for option, names in (
            ("--by", self.by),
            ("--block", self.block),
            ("--average", self.average),
            ("--pool", self.pool),
        ):
            words += [word for name in names for word in (option, name)]
        for option, name in (("--run", self.run), ("--order", self.order), ("--scale", self.scale)):
            words += [option, name] if name else []
        words += [
            word for name, values in self.where.items() for v in values for word in ("--where", f"{name}={v}")
        ]
        return [*words, *(["--share"] if self.share else [])]


class PublishedStudy(BaseModel):
    """One published study."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str
    source: str
    """The document that printed the values."""
    set_up: str = ""
    concludes: str = ""
    """The document's conclusion, in our words."""
    reanalyses: list[Reanalysis] = []
    claims: list[Claim] = []


@dataclass(frozen=True)
class StudyReading:
    """A study with its values analysed and its claims checked."""

    name: str
    study: PublishedStudy
    answers: dict[str, FileAnalysis]
    """By name of the reanalysis."""
    claims: list[ClaimReading]


def published_study_names() -> list[str]:
    """The published studies that ship, in alphabetical order."""
    return sorted(path.parent.name for path in shipped_folder("studies").glob(f"*/{CLAIMS_FILE}"))


def study_place(name: str, folder: Path | None) -> str:
    """How messages name a study's folder."""
    return f"studies/{name}" if folder is None else str(folder)


def load_published_study(name: str, folder: Path | None = None) -> tuple[PublishedStudy, Path]:
    """Loads a study; returns it with its folder.

    Args:
        name: Its name.
        folder: Its folder, if it does not ship.

    Raises:
        UnknownNameError: if no study of this name ships.
        SpecError: if ``claims.toml`` cannot be read or has a mistake.
    """
    place = study_place(name, folder)
    if folder is None:
        names = published_study_names()
        if name not in names:
            raise UnknownNameError(f"no study {name!r}", hint=f"there are: {', '.join(names)}")
        folder = shipped_folder("studies") / name
    return read_study_table(folder, CLAIMS_FILE, place, PublishedStudy), folder


def read_study_table(folder: Path, file: str, place: str, model: type[Model]) -> Model:
    """A TOML file of a study's folder.

    Raises:
        SpecError: if it cannot be read or has a mistake; the message names the file, and the line or the key.
    """
    where = f"{place}/{file}"
    try:
        return model.model_validate(_parsed(read_study_file(folder / file), model))
    except OSError as error:
        raise SpecError(f"{where}: cannot be read: {reason_of(error)}", hint=_HOW_TO) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpecError(f"{where}: is not valid TOML: {error}", hint=_HOW_TO) from error
    except RecursionError as error:
        raise SpecError(f"{where}: is nested too deeply", hint=_HOW_TO) from error
    except ValidationError as error:
        raise SpecError(f"{where}: {first_mistake(error)}", hint=_HOW_TO) from error


@functools.lru_cache(maxsize=64)
def _parsed(text: str, model: type[BaseModel]) -> BaseModel:
    """A command asks for a study's tables many times; the models are frozen."""
    return model.model_validate(tomllib.loads(text))


def read_study_file(path: Path) -> str:
    """The text of a file of a study.

    Raises:
        OSError: if it is not a regular file, is too large, or cannot be read.
        UnicodeDecodeError: if it is not UTF-8.
    """
    if path.exists() and not path.is_file():
        # A named pipe would be waited for.
        raise OSError(errno.EINVAL, "not a file", str(path))
    return read_text(path)


def read_published_study(name: str, folder: Path | None = None) -> StudyReading:
    """Analyses a study's values and compares its claims with them.

    Args:
        name: Its name.
        folder: Its folder, if it does not ship.

    Raises:
        UnknownNameError: if there is no study with this name.
        SpecError: if ``claims.toml`` has a mistake.
    """
    place = study_place(name, folder)
    study, folder = load_published_study(name, folder)
    answers = {reanalysis.name: analyse_files(reanalysis.request(folder)) for reanalysis in study.reanalyses}
    readings = []
    for claim in study.claims:
        if claim.reanalysis not in answers:
            raise SpecError(f"{place}/{CLAIMS_FILE}: no reanalysis {claim.reanalysis!r}")
        answer = answers[claim.reanalysis]
        readings.append(read_claim(claim, answer.findings, answer.confidence))
    return StudyReading(name, study, answers, readings)
