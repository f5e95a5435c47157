"""Tables of the comparison: cells, errors by figure and scheduler, and the study's findings."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from alone import Alone
from cells import LOADS, SCHEDULERS, Cell, Figures, Results

CellT = TypeVar("CellT", Cell, Alone)
ResultsT = TypeVar("ResultsT")
Quantity = Callable[[Figures], float | None]
QUANTITIES: dict[str, Quantity] = {
    "mean": lambda figures: figures.mean_us,
    "p99": lambda figures: figures.p99_us,
    "batch": lambda figures: figures.batch_iops,
}


def cell_rows(figure: str, real: Results, model: Results) -> list[str]:
    """Mean and p99 of the measured job in microseconds, and a batch job's rate, as measured → predicted."""
    lines = ["| Jobs | Scheduler | Mean, µs | p99, µs | A batch job, I/Os a second |", "|---" * 5 + "|"]
    cells = sorted(
        (cell for cell in real if cell.figure == figure),
        key=lambda cell: (cell.jobs, SCHEDULERS.index(cell.scheduler)),
    )
    for cell in cells:
        texts = [pair_text(of(real[cell]), of(model[cell])) for of in QUANTITIES.values()]
        mark = "\\*" if cell.is_fitted else ""
        lines.append(f"| {cell.jobs} | {cell.scheduler}{mark} | {' | '.join(texts)} |")
    return lines


def pair_text(real: float | None, model: float | None) -> str:
    """Measured → predicted, and their ratio."""
    if real is None or model is None:
        return "-"
    return f"{real:,.0f} → {model:,.0f} ({model / real:.2f})"


def error_rows(real: Results, model: Results) -> list[str]:
    """By how many times predictions are off, by figure and scheduler: median, then 95th percentile."""
    lines = [
        "| Cells | Mean | p99 | Batch rate | Mean as a part of none | p99 as a part of none |",
        "|---" * 6 + "|",
    ]
    groups: list[tuple[str, Sequence[str], Sequence[str]]]
    groups = [(f"{figure}, {name}", (figure,), (name,)) for figure in LOADS for name in SCHEDULERS]
    groups += [(f"all, {name}", tuple(LOADS), (name,)) for name in SCHEDULERS]
    groups.append(("all but none", tuple(LOADS), SCHEDULERS[1:]))
    for text, figures, names in groups:
        cells = [cell for cell in real if cell.figure in figures and cell.scheduler in names]
        if not cells:
            continue
        columns = [_counted(factors_of(cells, real, model, of)) for of in QUANTITIES.values()]
        if names == ("none",):
            columns += ["", ""]
        else:
            columns += [_counted(parts_of(cells, real, model, QUANTITIES[of])) for of in ("mean", "p99")]
        lines.append(f"| {text} | {' | '.join(columns)} |")
    return lines


def factors_of(
    cells: Iterable[CellT], real: Mapping[CellT, Figures], model: Mapping[CellT, Figures], of: Quantity
) -> list[float]:
    """Model over measured."""
    pairs = [(of(model[cell]), of(real[cell])) for cell in cells]
    return [got / truth for got, truth in pairs if got and truth]


def parts_of(
    cells: Iterable[CellT], real: Mapping[CellT, Figures], model: Mapping[CellT, Figures], of: Quantity
) -> list[float]:
    """The same of the ratio to `none`."""
    factors = []
    for cell in cells:
        none = replace(cell, scheduler="none")
        if none in real:
            own, base = factors_of([cell], real, model, of), factors_of([none], real, model, of)
            factors += [mine / theirs for mine, theirs in zip(own, base, strict=False)]
    return factors


def error_text(factors: list[float]) -> str:
    """Median and 95th percentile of the times by which factors are off."""
    if not factors:
        return "-"
    errors = sorted(max(factor, 1 / factor) for factor in factors)
    high = errors[min(len(errors) - 1, int(0.95 * len(errors)))]
    return f"{statistics.median(errors):.2f}, {high:.2f}"


def _counted(factors: list[float]) -> str:
    return f"{error_text(factors)} ({len(factors)})" if factors else "-"


@dataclass(frozen=True)
class Finding(Generic[ResultsT]):
    """A statement of the study, and whether it is true of given figures."""

    text: str
    holds: Callable[[ResultsT], bool]


def _mean_ratio(results: Results, figure: str, jobs: int, scheduler: str) -> float:
    one, none = (results[Cell(figure, jobs, name)].mean_us or 0.0 for name in (scheduler, "none"))
    return one / none


FINDINGS: tuple[Finding[Results], ...] = (
    Finding(
        "Beside 32 jobs of 64 KiB writes bfq and kyber cut a reader's latency to a fifth or less.",
        lambda r: max(_mean_ratio(r, "11-d", 32, name) for name in ("bfq", "kyber")) <= 0.2,
    ),
    Finding(
        "Under mq-deadline it waits at least a third as long.",
        lambda r: _mean_ratio(r, "11-d", 32, "mq-deadline") >= 1 / 3,
    ),
    Finding(
        "Beside 16 jobs of 4 KiB writes it waits less than half as long under bfq and kyber.",
        lambda r: max(_mean_ratio(r, "11-c", 16, name) for name in ("bfq", "kyber")) < 0.5,
    ),
    Finding(
        "Beside 16 jobs of 64 KiB reads no scheduler halves its latency.",
        lambda r: min(_mean_ratio(r, "11-b", 16, name) for name in SCHEDULERS) > 0.5,
    ),
    Finding(
        "Beside 8 jobs of 64 KiB writes a job of depth 128 does eight times as much under kyber and bfq.",
        lambda r: max(_mean_ratio(r, "12-b", 8, name) for name in ("bfq", "kyber")) < 0.12,
    ),
)


def finding_rows(
    findings: Iterable[Finding[ResultsT]], columns: Mapping[str, ResultsT], *, heading: str = "Finding"
) -> list[str]:
    """Whether each finding holds in each column's results: in the data, and in the simulator."""
    lines = [f"| {' | '.join([heading, *columns])} |", "|---" * (1 + len(columns)) + "|"]
    for finding in findings:
        try:
            texts = ["yes" if finding.holds(results) else "**no**" for results in columns.values()]
        except (KeyError, ValueError, ZeroDivisionError):
            continue  # Not among the cells asked for.
        lines.append(f"| {finding.text} | {' | '.join(texts)} |")
    return lines
