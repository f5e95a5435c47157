"""What `blklab fidelity` prints, and the page that records it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pydantic import BaseModel, ConfigDict, Field

from blklab.execution.fidelity.measured import (
    QUANTITIES,
    CellResult,
    Quantity,
    Spread,
    exceeds,
    limit_of,
    outside,
    spread,
)

TITLES: Mapping[Quantity, str] = {
    "throughput": "throughput of a job",
    "share": "share between jobs",
    "mean_latency": "mean latency",
    "p99_latency": "99th percentile of latency",
}


class FidelityDocument(BaseModel):
    """A result of `blklab fidelity` as it is stored."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_: str = Field(default="blklab/fidelity-1", alias="schema")
    kernel: str
    """The kernel and guest, by content."""
    simulator: str
    """Version of the simulator."""
    spreads: list[Spread]
    results: list[CellResult]

    @staticmethod
    def of(results: Sequence[CellResult], *, kernel: str, simulator: str) -> FidelityDocument:
        """Adds the spreads to results."""
        spreads = [found for quantity in QUANTITIES if (found := spread(quantity, results))]
        return FidelityDocument(kernel=kernel, simulator=simulator, spreads=spreads, results=list(results))

    @property
    def failures(self) -> list[CellResult]:
        """Cells without a comparison."""
        return [result for result in self.results if result.failure is not None]

    @property
    def holds(self) -> bool:
        """Whether every cell was compared and every limit kept."""
        return not self.failures and not any(exceeds(found) for found in self.spreads)


def shown(quantity: Quantity, error: float, *, signed: bool = False) -> str:
    """An error as people read it."""
    number = f"{error * 100:+.1f}" if signed else f"{error * 100:.1f}"
    return f"{number} points" if quantity == "share" else f"{number} %"


def spread_rows(document: FidelityDocument) -> list[tuple[str, ...]]:
    """One row a quantity: name, observations, median, 95th percentile, worst, its cell, and the limits."""
    rows: list[tuple[str, ...]] = []
    for found in document.spreads:
        limit = limit_of(found.quantity)
        of_median = "" if limit.median is None else f" (≤ {limit.median * 100:g})"
        rows.append(
            (
                TITLES[found.quantity],
                str(found.observations),
                shown(found.quantity, found.median) + of_median,
                f"{shown(found.quantity, found.percentile_95)} (≤ {limit.percentile_95 * 100:g})",
                shown(found.quantity, found.worst),
                found.worst_cell,
                "beyond" if exceeds(found) else "kept",
            )
        )
    return rows


def outside_rows(results: Iterable[CellResult]) -> list[tuple[str, str]]:
    """Cells beyond what 95 of 100 may be, the farthest first: name and signed errors."""
    found = []
    for result in results:
        beyond = outside(result)
        if beyond:
            errors = [(quantity, result.worst(quantity) or 0.0) for quantity in beyond]
            farthest = max(abs(error) / limit_of(quantity).percentile_95 for quantity, error in errors)
            text = ", ".join(f"{TITLES[q]} {shown(q, error, signed=True)}" for q, error in errors)
            found.append((farthest, result.cell, text))
    return [(cell, text) for _, cell, text in sorted(found, key=lambda row: (-row[0], row[1]))]


def changed_rows(document: FidelityDocument, earlier: FidelityDocument) -> list[tuple[str, ...]]:
    """What changed since an earlier result: quantity, median, 95th percentile and worst as before → now."""
    before = {found.quantity: found for found in earlier.spreads}
    return [
        (
            TITLES[found.quantity],
            *(
                f"{shown(found.quantity, getattr(old, name))} → {shown(found.quantity, getattr(found, name))}"
                for name in ("median", "percentile_95", "worst")
            ),
        )
        for found in document.spreads
        if (old := before.get(found.quantity))
    ]


def moved_cells(
    document: FidelityDocument, earlier: FidelityDocument, quantity: Quantity
) -> list[tuple[str, float, float]]:
    """Cells in both results by how far the error's size moved, the farthest first: name, before, now."""
    before = {result.cell: result.worst(quantity) for result in earlier.results}
    moved = [
        (result.cell, old, now)
        for result in document.results
        if (old := before.get(result.cell)) is not None and (now := result.worst(quantity)) is not None
    ]
    return sorted(moved, key=lambda row: -abs(abs(row[2]) - abs(row[1])))
