"""Analyses files: reads them, settles the design of each kind of values, compares within every stratum."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from blklab.errors import DesignError, FormatError
from blklab.labs.reanalysis.design import (
    FILE,
    GIVEN_ORDER,
    LABEL,
    RUN,
    DataDesign,
    DesignRequest,
    infer_design,
)
from blklab.labs.reanalysis.file_names import (
    NamesPattern,
    factors_of_paths,
    files_below,
    is_nameless,
    proposed_pattern,
)
from blklab.labs.reanalysis.findings import StratumFindings, analyse_stratum
from blklab.labs.reanalysis.readers import load_source, read_source
from blklab.labs.reanalysis.readers.protocol import Measurement, Problem, ReaderOptions, Reading, Role, Source
from blklab.labs.reanalysis.strata import arrange_strata, with_shares
from blklab.quantities.formatting import count_of, join_names


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
    """Files, and folders whose files are read as far as they are in a known format."""
    design: DesignRequest = field(default_factory=DesignRequest)
    options: ReaderOptions = field(default_factory=ReaderOptions)
    reader: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    names: NamesPattern | None = None
    """Factors in the files' paths."""
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
    files: list[tuple[int, Sequence[float]]] = field(default_factory=list)
    """The first measurement of each file, and when its runs were made."""

    def settle_positions(self) -> None:
        """Numbers the measurements of several files in the order of their making, if times tell it."""
        if (
            len(self.files) < 2
            or not self.files_chronological
            or not all(times_s for _, times_s in self.files)
        ):
            return
        ends = [first for first, _ in self.files[1:]] + [len(self.measurements)]
        spans = sorted(
            (min(times_s), max(times_s), first, end)
            for (first, times_s), end in zip(self.files, ends, strict=True)
        )
        if any(one[1] >= after[0] for one, after in itertools.pairwise(spans)):
            return
        in_order = [index for _, _, first, end in spans for index in range(first, end)]
        for position, index in enumerate(in_order):
            self.measurements[index] = replace(self.measurements[index], position=position)


def analyse_files(request: AnalysisRequest) -> FileAnalysis:
    """Reads and analyses files.

    Raises:
        FormatError: if a file cannot be read or is in no known format, or no file has a value.
        DesignError: if the design is ambiguous or names something that does not exist.
        UnknownNameError: for an unknown reader.
    """
    result = FileAnalysis(request.confidence, request.margin)
    read = _read_files(request, result)
    pattern = request.names or _pattern_of_names(request, [name for name, _, _ in read], result)
    kinds = _kinds(request, read, pattern)
    if kinds:
        _check_names(request, kinds)
    for (reader, _), kind in kinds.items():
        chosen = _selected(kind.measurements, request)
        if chosen:
            try:
                _examine_kind(reader, chosen, kind, request, result)
            except DesignError as error:
                names = [name for name, _, _ in read]
                if proposal := None if pattern else _proposal(request, names):
                    raise _with_proposal(error, proposal, names) from error
                raise
    _check_file_factor(request, result, [name for name, _, _ in read])
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


_Read = tuple[str, str, Reading]
"""A file's name, its reader's name and its values."""


def _read_files(request: AnalysisRequest, result: FileAnalysis) -> list[_Read]:
    """The values of all files; a file with the content of an earlier one is left out and reported."""
    files, found = files_below(request.paths)
    _check_labels(request, files)
    if request.names is not None:
        _, unfit = factors_of_paths(request.names, files, found)
        files = [path for path in files if path not in set(unfit)]
        if unfit:
            result.notes.append(_left_out(unfit, "do not fit --names", "does not fit --names"))
    read: list[_Read] = []
    seen: dict[str, str] = {}
    unknown: dict[str, FormatError] = {}
    for path in files:
        try:
            source, notes = load_source(path)
            digest = hashlib.sha256(source.text.strip().encode()).hexdigest()
            if digest in seen:
                result.problems.append(
                    Problem(source.at(None), f"has the same content as {seen[digest]}; its values count once")
                )
                continue
            reader, reading = read_source(source, request.options, request.reader)
        except FormatError as error:
            if path not in found:
                raise
            unknown[path] = error
            continue
        seen[digest] = path
        result.problems += reading.problems
        result.notes += [*notes, *reading.notes, *_unended(source, reading)]
        result.files.append(
            FileSummary(
                name=source.name,
                reader=reader.NAME,
                nr_values=len(reading.measurements),
                lines=len(source.text.rstrip("\n").split("\n")),
                skipped_lines=tuple(reading.skipped_lines),
            )
        )
        read.append((source.name, reader.NAME, reading))
    if unknown and not read:
        first = next(iter(unknown.values()))
        more = f" (and {count_of(len(unknown) - 1, 'more file')})" if len(unknown) > 1 else ""
        raise FormatError(f"{first.message}{more}", hint=first.hint)
    if unknown:
        result.notes.append(_left_out(list(unknown), "are in no known format", "is in no known format"))
    return read


def _left_out(paths: Sequence[str], several: str, one: str) -> str:
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{paths[0]}{more}: {several if more else one}; left out"


def _check_file_factor(request: AnalysisRequest, result: FileAnalysis, names: Sequence[str]) -> None:
    """Files are not taken for levels where their names tell several factors apart."""
    if not any(section.design.factor == FILE for section in result.sections):
        return
    if proposal := _proposal(request, names):
        error = DesignError(
            f"the names of the {len(names)} files tell several factors apart: {join_names(proposal.fields)}",
            hint="--factor file compares the files all the same",
        )
        raise _with_proposal(error, proposal, names)


def _pattern_of_names(
    request: AnalysisRequest, names: Sequence[str], result: FileAnalysis
) -> NamesPattern | None:
    """The pattern that the names of all files follow, if it names several factors."""
    pattern = _proposal(request, names)
    if pattern is None or any(is_nameless(name) for name in pattern.fields):
        return None
    if any(pattern.factors(name) is None for name in names):
        return None
    result.notes.append(f"factors in the files' names: --names {pattern.text!r} (another pattern changes it)")
    return pattern


def _proposal(request: AnalysisRequest, names: Sequence[str]) -> NamesPattern | None:
    """A pattern that most names follow, if words in them name several of its factors."""
    if request.names or request.labels or FILE in request.design.named:
        return None
    pattern = proposed_pattern(names)
    named = 0 if pattern is None else sum(not is_nameless(name) for name in pattern.fields)
    return pattern if named > 1 else None


def _with_proposal(error: DesignError, pattern: NamesPattern, names: Sequence[str]) -> DesignError:
    """The error, with the pattern that the files' names follow in its hint."""
    hint = f"factors in the files' names: --names {pattern.text!r}"
    fitting = sum(pattern.factors(name) is not None for name in names)
    if fitting < len(names):
        hint += f" fits {fitting} of {len(names)} files"
    return DesignError(error.message, hint=f"{error.hint}; {hint}" if error.hint else hint)


def _kinds(
    request: AnalysisRequest, read: Sequence[_Read], pattern: NamesPattern | None
) -> dict[tuple[str, str], _Kind]:
    kinds: dict[tuple[str, str], _Kind] = {}
    of_path = {} if pattern is None else factors_of_paths(pattern, [name for name, _, _ in read], set())[0]
    for name, reader, reading in read:
        extra: dict[str, str] = {}
        roles: dict[str, Role] = {}
        if request.labels:
            extra, roles = {LABEL: request.labels[name]}, {LABEL: "level"}
        elif pattern is None and len(read) > 1:
            extra, roles = {FILE: name}, {FILE: "level"}
        if pattern is not None:
            extra, roles = extra | of_path[name], roles | pattern.roles(request.design.factor)
        _add(kinds, reader, reading, extra, roles)
    for kind in kinds.values():
        kind.settle_positions()
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
    kinds: dict[tuple[str, str], _Kind],
    reader: str,
    reading: Reading,
    extra: Mapping[str, str],
    roles: Mapping[str, Role],
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
            kind.files.append((len(kind.measurements), reading.times_s))
            # The order between files follows from their times at most, even if a tool writes its own lines in
            # order.
            kind.chronological = reading.chronological and not kind.measurements
            kind.files_chronological &= reading.chronological
            kind.roles |= dict.fromkeys(counted, "description")
            kind.roles |= roles
        kind.measurements.append(replace(one, factors={**one.factors, **counted, **extra}))


def _check_labels(request: AnalysisRequest, files: Sequence[str]) -> None:
    if not request.labels:
        return
    names = set(files)
    if unknown := [name for name in request.labels if name not in names]:
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
