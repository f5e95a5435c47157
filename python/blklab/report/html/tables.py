"""Tables of the HTML report, as plain rows for its template."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from blklab.analysis.designs.fixed import FEWEST_BLOCKS
from blklab.analysis.metrics import METRICS
from blklab.quantities.formatting import count_of, metric_title, ratio_text, scale_for
from blklab.quantities.sample_units import SampleUnit
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import DiskDescription
from blklab.report.documents.comparison import CompareDocument, ComparisonPart
from blklab.report.summary.designs import unit_of
from blklab.report.summary.standing import labels_of, metrics_of, results_of, reversed_pair


@dataclass(frozen=True)
class Pair:
    """One cell of the matrix of pairs: the row's scheduler against the column's."""

    effect: str
    outcome: str
    """``better``, ``worse``, ``equal``, ``undecided``, or ``none`` if the two have no block in common."""
    tip: str


@dataclass(frozen=True)
class MatrixRow:
    """A scheduler against all others."""

    name: str
    cells: list[Pair | None]
    """None on the diagonal."""


@dataclass(frozen=True)
class FigureTable:
    """Every metric of every scheduler of a workload."""

    headings: list[str]
    rows: list[tuple[str, list[str]]]


@dataclass(frozen=True)
class SettingRow:
    """A setting of a disk: before the experiment, and as read back under each scheduler."""

    name: str
    found: str
    in_force: list[str]
    changed: bool
    """Whether it differed from its former value, or between schedulers."""
    unsteady: bool
    """Whether it differed between runs of the same scheduler, which must not happen."""


@dataclass(frozen=True)
class SettingTable:
    """Settings of one disk."""

    disk: str
    rows: list[SettingRow]

    @property
    def changed(self) -> list[SettingRow]:
        """The settings that differ somewhere."""
        return [row for row in self.rows if row.changed]

    @property
    def unchanged(self) -> list[SettingRow]:
        """The settings that never changed."""
        return [row for row in self.rows if not row.changed]


def pair_matrix(
    document: CompareDocument, workload: str, metric: str, order: Sequence[str]
) -> list[MatrixRow]:
    """All pairs of a workload and metric, in the given order of schedulers."""
    unit = unit_of(document, workload)
    pairs: dict[tuple[str, str], Pair] = {}
    for part in document.comparisons:
        if (part.workload, part.metric) == (workload, metric):
            pairs[part.first, part.second] = _pair(part, unit, len(order))
            pairs[part.second, part.first] = _pair(reversed_pair(part), unit, len(order))
    missing = Pair(f"no common {unit.name}", "none", f"no {unit.name} has figures for both")
    return [
        MatrixRow(name, [None if name == other else pairs.get((name, other), missing) for other in order])
        for name in order
    ]


def _pair(part: ComparisonPart, unit: SampleUnit, nr_schedulers: int) -> Pair:
    common = count_of(part.n * part.samples_per_value, f"common {unit.name}")
    tip = f"{part.first} against {part.second}: {common}, p = {part.p_adjusted:.2g} after Holm's correction"
    if part.outcome == "undecided" and part.n < FEWEST_BLOCKS:
        # After one sample the estimate is of those without which nothing may be decided.
        fewest = 1 + part.more_blocks if part.n == 1 and part.more_blocks else FEWEST_BLOCKS
        tip += f"; at least {unit.count(fewest)} are needed to decide"
    elif part.more_blocks is not None and unit.within_reach(part.more_blocks, nr_schedulers):
        tip += f"; about {unit.more(part.more_blocks, nr_schedulers)} would probably decide"
    return Pair(ratio_text(part.ratio, part.ci_low, part.ci_high), part.outcome, tip)


def figure_table(document: CompareDocument, workload: str, decide_by: str) -> FigureTable:
    """All metrics with their intervals, each column in one unit."""
    metrics = metrics_of(document, workload, decide_by)
    headings, columns = [], []
    for metric in metrics:
        results = results_of(document, workload, metric)
        scale = scale_for(METRICS[metric].unit, [part.mean for part in results.values()])
        headings.append(f"{metric_title(metric)}, {scale.unit}")
        columns.append(
            {name: scale.interval(part.mean, part.ci_low, part.ci_high) for name, part in results.items()}
        )
    rows = [(name, [column.get(name, "-") for column in columns]) for name in labels_of(document)]
    return FigureTable(headings, rows)


def setting_tables(record: ExperimentRecord) -> list[SettingTable]:
    """Settings of every disk, before the experiment and as read back during the runs."""
    labels = [choice.label for choice in record.spec.schedulers]
    seen: dict[str, dict[str, dict[str, set[str]]]] = {}
    for sample in record.samples:
        for key, value in sample.settings.items():
            disk, _, attribute = key.partition("/")
            per_label = seen.setdefault(disk, {}).setdefault(attribute, {})
            per_label.setdefault(sample.cell.scheduler, set()).add(value)
    found = {disk.name: _found(disk) for disk in record.target.disks}
    tables = []
    for disk in dict.fromkeys([*found, *seen]):
        before, during = found.get(disk, {}), seen.get(disk, {})
        attributes = sorted(before.keys() | during.keys(), key=_settings_order)
        rows = [_setting_row(name, before.get(name), during.get(name, {}), labels) for name in attributes]
        tables.append(SettingTable(disk, rows))
    return tables


def _found(disk: DiskDescription) -> dict[str, str]:
    return disk.queue if disk.scheduler is None else {"scheduler": disk.scheduler, **disk.queue}


def _settings_order(name: str) -> tuple[int, str]:
    """The scheduler, then attributes of the queue, then tunables."""
    return (0 if name == "scheduler" else 2 if name.startswith("iosched/") else 1, name)


def _setting_row(
    name: str, found: str | None, during: dict[str, set[str]], labels: Iterable[str]
) -> SettingRow:
    in_force = [" / ".join(sorted(during[label])) if label in during else "" for label in labels]
    present = {value for values in during.values() for value in values}
    return SettingRow(
        name=name,
        found="" if found is None else found,
        in_force=in_force,
        changed=bool(present) and present != {found},
        unsteady=any(len(values) > 1 for values in during.values()),
    )
