"""From files to findings: reads them, settles the design of each kind of figures, examines every cell."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from blklab.errors import DesignError, FormatError
from blklab.reanalysis.cells import arrange, with_shares
from blklab.reanalysis.design import FILE, GIVEN_ORDER, LABEL, RUN, DesignRequest, FactorRoles, infer
from blklab.reanalysis.findings import ConditionFindings, examine
from blklab.reanalysis.readers import load_source, read_source
from blklab.reanalysis.readers.protocol import Measurement, Problem, ReaderOptions, Reading, Role, Source


@dataclass(frozen=True)
class FileUnderstood:
    """What became of one file."""

    name: str
    reader: str
    figures: int
    lines: int
    skipped_lines: tuple[int, ...]


@dataclass
class Section:
    """Figures of one kind: those of one reader's metrics that share a design."""

    reader: str
    design: FactorRoles
    findings: list[ConditionFindings] = field(default_factory=list)


@dataclass
class FileAnalysis:
    """Everything that some files say."""

    confidence: float
    margin: float
    files: list[FileUnderstood] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether everything that should be a figure was one, and was used."""
        return not self.problems

    @property
    def findings(self) -> list[ConditionFindings]:
        """Of all sections."""
        return [found for section in self.sections for found in section.findings]


@dataclass(frozen=True)
class AnalysisRequest:
    """What a person asks of some files."""

    paths: Sequence[str]
    design: DesignRequest = field(default_factory=DesignRequest)
    options: ReaderOptions = field(default_factory=ReaderOptions)
    reader: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    metrics: tuple[str, ...] = ()
    confidence: float = 0.95
    margin: float = 0.02


@dataclass
class _Kind:
    """Measurements of one reader and metric, of all files."""

    roles: dict[str, Role]
    measurements: list[Measurement] = field(default_factory=list)
    chronological: bool = True
    files_chronological: bool = True


def analyse_files(request: AnalysisRequest) -> FileAnalysis:
    """Reads and analyses files.

    Raises:
        FormatError: for a file that cannot be read or is in no known format, and where no file has a figure.
        DesignError: where the design is ambiguous or names what does not exist.
        UnknownNameError: for an unknown reader.
    """
    result = FileAnalysis(request.confidence, request.margin)
    sources = _sources(request, result)
    kinds = _kinds(request, sources, result)
    if kinds:
        _check_names(request, kinds)
    for (reader, _), kind in kinds.items():
        chosen = _selected(kind.measurements, request)
        if chosen:
            _examine_kind(reader, chosen, kind, request, result)
    if not result.sections:
        where = "; ".join(f"{name} {' or '.join(values)}" for name, values in request.design.where.items())
        first = "; ".join(f"{one.place}: {one.message}" for one in result.problems[:3])
        raise FormatError(
            "not one figure could be used" + (f" ({first})" if first else ""),
            hint=f"--where leaves nothing: {where}" if where and not first else None,
        )
    return result


def _sources(request: AnalysisRequest, result: FileAnalysis) -> list[Source]:
    """The files' texts; a file whose content was given before is left out and said."""
    sources: list[Source] = []
    seen: dict[str, str] = {}
    for path in request.paths:
        source, notes = load_source(path)
        digest = hashlib.sha256(source.text.strip().encode()).hexdigest()
        if digest in seen:
            result.problems.append(
                Problem(
                    source.at(None), f"has the same content as {seen[digest]}; its figures are counted once"
                )
            )
            continue
        seen[digest] = path
        sources.append(source)
        result.notes += notes
    return sources


def _kinds(
    request: AnalysisRequest, sources: Sequence[Source], result: FileAnalysis
) -> dict[tuple[str, str], _Kind]:
    _check_labels(request, sources)
    kinds: dict[tuple[str, str], _Kind] = {}
    for source in sources:
        reader, reading = read_source(source, request.options, request.reader)
        result.problems += reading.problems
        result.notes += reading.notes
        result.notes += _unended(source, reading)
        result.files.append(
            FileUnderstood(
                name=source.name,
                reader=reader.NAME,
                figures=len(reading.measurements),
                lines=len(source.text.rstrip("\n").split("\n")),
                skipped_lines=tuple(reading.skipped_lines),
            )
        )
        extra = {LABEL: request.labels[source.name]} if request.labels else {}
        if len(sources) > 1 and not request.labels:
            extra = {FILE: source.name}
        _add(kinds, reader.NAME, reading, extra)
    return kinds


def _unended(source: Source, reading: Reading) -> list[str]:
    """A remark where the last figures may be cut: a cut number cannot be told from a whole one."""
    if source.text.endswith("\n"):
        return []
    last = len(source.lines)
    if not any(one.place.line == last for one in reading.measurements):
        return []
    return [f"{source.at(last)}: the line has no end; if the file was cut off, its figures may be cut too"]


def _add(
    kinds: dict[tuple[str, str], _Kind], reader: str, reading: Reading, extra: Mapping[str, str]
) -> None:
    metrics = set()
    repetitions: dict[tuple[object, ...], int] = {}
    for one in reading.measurements:
        counted = {}
        if reading.chronological and RUN not in one.factors:
            key = (one.metric, *sorted(one.factors.items()))
            repetitions[key] = repetitions.get(key, 0) + 1
            counted = {RUN: str(repetitions[key])}
        kind = kinds.setdefault((reader, one.metric), _Kind(dict(reading.roles)))
        if one.metric not in metrics:
            metrics.add(one.metric)
            # A second file's place in time is not known, whatever its tool says of its own lines.
            kind.chronological = reading.chronological and not kind.measurements
            kind.files_chronological &= reading.chronological
            kind.roles |= dict.fromkeys(extra, "level")
            kind.roles |= dict.fromkeys(counted, "description")
        kind.measurements.append(replace(one, factors={**one.factors, **counted, **extra}))


def _check_labels(request: AnalysisRequest, sources: Sequence[Source]) -> None:
    if not request.labels:
        return
    names = {source.name for source in sources}
    if unknown := [name for name in request.labels if name not in request.paths]:
        raise DesignError(f"--label {unknown[0]}: no such file is given")
    if lacking := sorted(names - request.labels.keys()):
        raise DesignError(f"{lacking[0]} has no label", hint="label all files, or none")


def _check_names(request: AnalysisRequest, kinds: Mapping[tuple[str, str], _Kind]) -> None:
    known = {name for kind in kinds.values() for one in kind.measurements for name in one.factors}
    for name in request.design.named:
        if name not in known and name not in ("none", GIVEN_ORDER):
            raise DesignError(
                f"there is no factor {name!r}", hint=f"there are: {', '.join(sorted(known)) or 'none'}"
            )
    metrics = {metric for _, metric in kinds}
    for name in request.metrics:
        if name not in metrics:
            raise DesignError(f"there is no metric {name!r}", hint=f"there are: {', '.join(sorted(metrics))}")


def _selected(measurements: Sequence[Measurement], request: AnalysisRequest) -> list[Measurement]:
    """Those that ``--metric`` and ``--where`` leave."""
    if request.metrics and measurements[0].metric not in request.metrics:
        return []
    return [
        one
        for one in measurements
        if all(one.factors.get(name, "") in values for name, values in request.design.where.items())
    ]


def _examine_kind(
    reader: str, chosen: Sequence[Measurement], kind: _Kind, request: AnalysisRequest, result: FileAnalysis
) -> None:
    design = infer(
        chosen,
        kind.roles,
        request.design,
        chronological=kind.chronological,
        files_chronological=kind.files_chronological,
    )
    cells, problems, notes = arrange(chosen, design)
    result.problems += problems
    result.notes += notes
    if design.share:
        cells = [with_shares(cell, result.problems) for cell in cells]
    section = next((one for one in result.sections if (one.reader, one.design) == (reader, design)), None)
    if section is None:
        section = Section(reader, design)
        result.sections.append(section)
    section.findings += [
        examine(cell, design, confidence=request.confidence, margin=request.margin)
        for cell in cells
        if cell.series
    ]
