"""Tables of `blklab fidelity` for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pydantic import BaseModel, ConfigDict, Field

from blklab.labs.fidelity.measured import (
    ERROR_METRICS,
    CellResult,
    ErrorMetric,
    Spread,
    beyond_limits,
    exceeds,
    limit_of,
    spread,
)

METRIC_TITLES: Mapping[ErrorMetric, str] = {
    "throughput": "throughput of a job",
    "share": "share between jobs",
    "mean_latency": "mean latency",
    "p99_latency": "99th percentile of latency",
}


class FidelityDocument(BaseModel):
    """The stored result of `blklab fidelity`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_: str = Field(default="blklab/fidelity-1", alias="schema")
    kernel: str
    """Name and version of the kernel."""
    simulator: str
    """Version of the simulator."""
    spreads: list[Spread]
    results: list[CellResult]

    @staticmethod
    def of(results: Sequence[CellResult], *, kernel: str, simulator: str) -> FidelityDocument:
        """Computes the spreads of the results."""
        spreads = [found for quantity in ERROR_METRICS if (found := spread(quantity, results))]
        return FidelityDocument(kernel=kernel, simulator=simulator, spreads=spreads, results=list(results))

    @property
    def failures(self) -> list[CellResult]:
        """Cells without a comparison."""
        return [result for result in self.results if result.failure is not None]

    @property
    def holds(self) -> bool:
        """Whether every cell was compared and every limit kept."""
        return not self.failures and not any(exceeds(found) for found in self.spreads)


def error_text(quantity: ErrorMetric, error: float, *, signed: bool = False) -> str:
    """An error with its unit: percent, or percentage points for a share."""
    number = f"{error * 100:+.1f}" if signed else f"{error * 100:.1f}"
    return f"{number} points" if quantity == "share" else f"{number} %"


def spread_rows(document: FidelityDocument) -> list[tuple[str, ...]]:
    """One row per metric: name, observations, median, 95th percentile, worst, its cell, and the limits."""
    rows: list[tuple[str, ...]] = []
    for found in document.spreads:
        limit = limit_of(found.quantity)
        of_median = "" if limit.median is None else f" (≤ {limit.median * 100:g})"
        rows.append(
            (
                METRIC_TITLES[found.quantity],
                str(found.observations),
                error_text(found.quantity, found.median) + of_median,
                f"{error_text(found.quantity, found.percentile_95)} (≤ {limit.percentile_95 * 100:g})",
                error_text(found.quantity, found.worst),
                found.worst_cell,
                "beyond" if exceeds(found) else "kept",
            )
        )
    return rows


def outside_rows(results: Iterable[CellResult]) -> list[tuple[str, str]]:
    """Cells outside the 95th-percentile limits, the farthest first: name and signed errors."""
    found = []
    for result in results:
        beyond = beyond_limits(result)
        if beyond:
            errors = [(quantity, result.worst(quantity) or 0.0) for quantity in beyond]
            farthest = max(abs(error) / limit_of(quantity).percentile_95 for quantity, error in errors)
            text = ", ".join(f"{METRIC_TITLES[q]} {error_text(q, error, signed=True)}" for q, error in errors)
            found.append((farthest, result.cell, text))
    return [(cell, text) for _, cell, text in sorted(found, key=lambda row: (-row[0], row[1]))]


def changed_rows(document: FidelityDocument, earlier: FidelityDocument) -> list[tuple[str, ...]]:
    """Changes since an earlier result: metric, median, 95th percentile and worst as before → now."""
    before = {found.quantity: found for found in earlier.spreads}
    return [
        (
            METRIC_TITLES[found.quantity],
            *(
                f"{error_text(found.quantity, getattr(old, name))} → "
                f"{error_text(found.quantity, getattr(found, name))}"
                for name in ("median", "percentile_95", "worst")
            ),
        )
        for found in document.spreads
        if (old := before.get(found.quantity))
    ]


def moved_cells(
    document: FidelityDocument, earlier: FidelityDocument, quantity: ErrorMetric
) -> list[tuple[str, float, float]]:
    """Cells in both results by the change of the error's size, the largest first: name, before, now."""
    before = {result.cell: result.worst(quantity) for result in earlier.results}
    moved = [
        (result.cell, old, now)
        for result in document.results
        if (old := before.get(result.cell)) is not None and (now := result.worst(quantity)) is not None
    ]
    return sorted(moved, key=lambda row: -abs(abs(row[2]) - abs(row[1])))
