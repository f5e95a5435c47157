"""Loads published studies and analyses their printed values again.

A study is a folder of `studies/`: ``published/*.csv`` holds the values as printed, ``claims.toml`` describes
the study, the analyses of these values, and the conclusions that the study printed.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from blklab.errors import SpecError, UnknownNameError
from blklab.labs.reanalysis.analysis import AnalysisRequest, FileAnalysis, analyse_files
from blklab.labs.reanalysis.design import DesignRequest
from blklab.labs.reanalysis.readers.protocol import ReaderOptions
from blklab.labs.studies.published.claims import Claim, ClaimReading, read_claim
from blklab.shipped import shipped_folder
from blklab.spec.mistakes import first_mistake

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CLAIMS_FILE = "claims.toml"
PUBLISHED = "published"


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
    set_up: str
    concludes: str
    """The document's conclusion, in our words."""
    reanalyses: list[Reanalysis]
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


_FOLDERS: dict[str, Path] = {}
"""Folders of the studies of other packages."""


def add_study_folder(name: str, folder: Path) -> None:
    """Adds the folder of another package's study."""
    _FOLDERS[name] = folder


def load_published_study(name: str) -> tuple[PublishedStudy, Path]:
    """Loads a study; returns it with its folder.

    Raises:
        UnknownNameError: if there is no study with this name.
        SpecError: if ``claims.toml`` has a mistake.
    """
    names = published_study_names()
    if name not in names and name not in _FOLDERS:
        raise UnknownNameError(f"no study {name!r}", hint=f"there are: {', '.join(names)}")
    folder = _FOLDERS.get(name, shipped_folder("studies") / name)
    file = folder / CLAIMS_FILE
    try:
        return PublishedStudy.model_validate(tomllib.loads(file.read_text(encoding="utf-8"))), folder
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"studies/{name}/{CLAIMS_FILE}: {error}") from error
    except ValidationError as error:
        raise SpecError(f"studies/{name}/{CLAIMS_FILE}: {first_mistake(error)}") from error


def read_published_study(name: str) -> StudyReading:
    """Analyses a study's values and compares its claims with them.

    Raises:
        UnknownNameError: if there is no study with this name.
        SpecError: if ``claims.toml`` has a mistake.
    """
    study, folder = load_published_study(name)
    answers = {reanalysis.name: analyse_files(reanalysis.request(folder)) for reanalysis in study.reanalyses}
    readings = []
    for claim in study.claims:
        if claim.reanalysis not in answers:
            raise SpecError(f"studies/{name}/{CLAIMS_FILE}: no reanalysis {claim.reanalysis!r}")
        answer = answers[claim.reanalysis]
        readings.append(read_claim(claim, answer.findings, answer.confidence))
    return StudyReading(name, study, answers, readings)
