"""Analyses files: reads them, settles the design of each kind of values, compares within every stratum."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from blklab.errors import DesignError, FormatError
from blklab.quantities.formatting import join_names
from blklab.reanalysis.design import FILE, GIVEN_ORDER, LABEL, RUN, DataDesign, DesignRequest, infer_design
from blklab.reanalysis.findings import StratumFindings, analyse_stratum
from blklab.reanalysis.readers import load_source, read_source
from blklab.reanalysis.readers.protocol import Measurement, Problem, ReaderOptions, Reading, Role, Source
from blklab.reanalysis.strata import arrange_strata, with_shares


@dataclass(frozen=True)
class FileSummary:
    """How much of a file was read."""

    name: str
    reader: str
    nr_values: int
    lines: int
    skipped_lines: tuple[int, ...]


@dataclass
class DesignSection:
    """The metrics of one reader that share a design."""

    reader: str
    design: DataDesign
    findings: list[StratumFindings] = field(default_factory=list)


@dataclass
class FileAnalysis:
    """The analysis of some files."""

    confidence: float
    margin: float
    files: list[FileSummary] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    sections: list[DesignSection] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether every expected value was read and used."""
        return not self.problems

    @property
    def findings(self) -> list[StratumFindings]:
        """Findings of all sections."""
        return [found for section in self.sections for found in section.findings]


@dataclass(frozen=True)
class AnalysisRequest:
    """A request to analyse some files."""

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
    """Measurements of one reader and metric from all files."""

    roles: dict[str, Role]
    measurements: list[Measurement] = field(default_factory=list)
    chronological: bool = True
    files_chronological: bool = True


def analyse_files(request: AnalysisRequest) -> FileAnalysis:
    """Reads and analyses files.

    Raises:
        FormatError: if a file cannot be read or is in no known format, or no file has a value.
        DesignError: if the design is ambiguous or names something that does not exist.
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
        first = "; ".join(f"{one.location}: {one.message}" for one in result.problems[:3])
        named = result.files[0].name if len(result.files) == 1 else f"{len(result.files)} files"
        readers = join_names(list(dict.fromkeys(one.reader for one in result.files)))
        what = f"({first})" if first else f"(read as {readers})"
        raise FormatError(
            f"{named}: no value could be used {what}",
            hint=f"no value matches --where {where}"
            if where and not first
            else "without --reader the format is recognised"
            if request.reader
            else None,
        )
    return result


def _sources(request: AnalysisRequest, result: FileAnalysis) -> list[Source]:
    """The files' texts; a file with the content of an earlier one is left out and reported."""
    sources: list[Source] = []
    seen: dict[str, str] = {}
    for path in request.paths:
        source, notes = load_source(path)
        digest = hashlib.sha256(source.text.strip().encode()).hexdigest()
        if digest in seen:
            result.problems.append(
                Problem(source.at(None), f"has the same content as {seen[digest]}; its values count once")
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
            FileSummary(
                name=source.name,
                reader=reader.NAME,
                nr_values=len(reading.measurements),
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
    """A note if the last values may be truncated; a truncated number still looks like a number."""
    if source.text.endswith("\n"):
        return []
    last = len(source.lines)
    if not any(one.location.line == last for one in reading.measurements):
        return []
    return [f"{source.at(last)}: the line has no line feed; if the file was truncated, its values may be too"]


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
            # The order between files is unknown, even if a tool writes its own lines in order.
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
        raise DesignError(f"--label {unknown[0]}: this file is not among the files to analyse")
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
    """The measurements that ``--metric`` and ``--where`` select."""
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
    design = infer_design(
        chosen,
        kind.roles,
        request.design,
        chronological=kind.chronological,
        files_chronological=kind.files_chronological,
    )
    strata, problems, notes = arrange_strata(chosen, design)
    result.problems += problems
    result.notes += notes
    if design.share:
        strata = [with_shares(stratum, result.problems) for stratum in strata]
    section = next((one for one in result.sections if (one.reader, one.design) == (reader, design)), None)
    if section is None:
        section = DesignSection(reader, design)
        result.sections.append(section)
    section.findings += [
        analyse_stratum(stratum, design, confidence=request.confidence, margin=request.margin)
        for stratum in strata
        if stratum.series
    ]
