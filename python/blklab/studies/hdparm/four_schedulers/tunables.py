"""mq-deadline's tunables: without effect on one reader, with effect on a busy disk."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from blklab.analysis.designs import design_of
from blklab.analysis.sweep_effects import Effect, sweep_findings
from blklab.analysis.values import experiment_values
from blklab.records.experiment import ExperimentRecord
from blklab.studies.hdparm.findings import interval_row, matters, rows_of
from blklab.studies.hdparm.four_schedulers.experiments import (
    TUNABLES_BUSY,
    TUNABLES_PRINTED,
    TUNABLES_REPEATED,
)
from blklab.studies.hdparm.four_schedulers.set_up import Tunables
from blklab.studies.hdparm.jobs import BUFFERED, BUSY, PARTIES, TESTS
from blklab.studies.hdparm.timing_tests import inverse, mebibyte_rates, paired_ratios, party_ios, rates_of
from blklab.studies.replication.pictures import IntervalPicture
from blklab.studies.replication.result import Figure, Quantity, Statement, StudyResult
from blklab.studies.replication.statements import equal, greater, mean_of
from blklab.studies.replication.study_folder import Published

NOTHING = "no I/O ended"
_TABLE_FILE = "mqdeadline_tunables.csv"
_EXPECTED_TO_COST = ("read_expire", "write_expire")
"""What the document expected to cost most."""


def read_tunables(
    published: Published, tunables: Tunables, records: Mapping[str, ExperimentRecord]
) -> StudyResult:
    """The workload used, as printed and repeated; then the busy disk."""
    printed = [
        figure for test in TESTS for figure in _printed(test, published, tunables, records[TUNABLES_PRINTED])
    ]
    reads = _effects(records[TUNABLES_REPEATED], tunables, None)
    one_reader = StudyResult(printed, [*_reader_statements(tunables, reads, records[TUNABLES_REPEATED])])
    one_reader.pictures.append(
        IntervalPicture(
            "tunables",
            "Buffered reads with a tunable changed, over those before",
            "Published: one run each. Ours: randomised blocks, intervals of 95 %.",
            "times",
            tuple(
                row
                for figure in printed
                if figure.table.startswith(TESTS[BUFFERED].capitalize())
                for row in (
                    *rows_of(replace(figure, ours=None)),
                    interval_row(f"{figure.name}, ours", reads[figure.name.split(" ")[0]]),
                )
            ),
            marks=((1.0, "no effect"),),
        )
    )
    busy = _read_busy(tunables, records[TUNABLES_BUSY])
    return StudyResult(
        one_reader.figures + busy.figures,
        one_reader.statements + busy.statements,
        one_reader.pictures + busy.pictures,
    )


def _printed(
    test: str, published: Published, tunables: Tunables, record: ExperimentRecord
) -> Iterator[Figure]:
    """One run each, over the one with nothing changed."""
    column = "throughput_MBps"
    before = published.figures(_TABLE_FILE, column, tunable="baseline", test=TESTS[test])[0]
    ours_before = rates_of(record, test, tunables.before.label)[0]
    for name, choice in tunables.choices.items():
        theirs = published.figures(_TABLE_FILE, column, tunable=name, test=TESTS[test])[0]
        yield Figure(
            f"{name} = {tunables.values[name]}",
            f"{TESTS[test].capitalize()} with a tunable changed over those before, one run each",
            "",
            Quantity(theirs / before),
            Quantity(rates_of(record, test, choice.label)[0] / ours_before),
        )


def _reader_statements(
    tunables: Tunables, effects: Mapping[str, Quantity], record: ExperimentRecord
) -> Iterator[Statement]:
    for name, ratio in effects.items():
        yield equal(
            f"{name}-without-effect",
            f"{name} at {tunables.values[name]} changes nothing in buffered reads",
            ratio,
            why="one reader leaves nothing to choose from",
        )
    for name in _EXPECTED_TO_COST:
        yield greater(
            f"{name}-costs",
            f"A larger {name} costs buffered reads",
            inverse(effects[name]),
            why="before over after",
        )
    together = _interactions(record)
    if together:
        farthest = max(together, key=lambda one: abs(math.log(one.ratio)))
        yield equal(
            "tunables-together",
            f"No two tunables do together what neither does alone in buffered reads ({farthest.name})",
            _quantity(farthest),
            why=f"the farthest of {len(together)} interactions of two",
        )


def _read_busy(tunables: Tunables, record: ExperimentRecord) -> StudyResult:
    found = StudyResult()
    by_party = {party: _effects(record, tunables, party) for party in PARTIES}
    for party, effects in by_party.items():
        table = f"A busy disk: I/Os of the {party} over those before"
        found.figures += [
            Figure(f"{name} = {tunables.values[name]}", table, "", None, ratio)
            for name, ratio in effects.items()
        ]
        counts = party_ios(record, party)
        for name, choice in tunables.beside.items():
            ratios = paired_ratios(counts, choice.label, tunables.before.label)
            found.figures.append(
                Figure(name, table, "", None, mean_of(ratios) if ratios else None, "" if ratios else NOTHING)
            )
    found.statements += [
        matters(
            f"{name}-matters",
            f"On a busy disk {name} at {value} changes what readers, writers or the idle class get",
            {party: effects.get(name) for party, effects in by_party.items()},
        )
        for name, value in tunables.values.items()
    ]
    found.pictures.append(
        IntervalPicture(
            "busy-disk",
            "A busy disk: I/Os with a tunable changed, over those before",
            "Readers, writers and a reader in the idle class on a hard disk without command queueing. "
            "Intervals of 95 %.",
            "times",
            tuple(
                interval_row(f"{name}: {party}", effects[name])
                for name in tunables.values
                for party, effects in by_party.items()
                if name in effects
            ),
            marks=((1.0, "no effect"),),
        )
    )
    return found


def _effects(record: ExperimentRecord, tunables: Tunables, party: str | None) -> dict[str, Quantity]:
    """What each value changes, by tunable; averaged over all combinations of the others where crossed.

    Args:
        record: Its workload, and a sweep if all were crossed.
        tunables: The values.
        party: Whose I/Os are counted; nothing: the workload's own figure.
    """
    if record.spec.sweeps:
        mains = [one for one in _sweep_effects(record, party) if one.kind == "main"]
        return {name: _quantity(one) for one in mains for name in one.levels}
    workload = record.spec.workloads[0].name
    values = mebibyte_rates(record, workload) if party is None else party_ios(record, party)
    pairs = {
        name: paired_ratios(values, choice.label, tunables.before.label)
        for name, choice in tunables.choices.items()
    }
    return {name: mean_of(ratios) for name, ratios in pairs.items() if ratios}


def _interactions(record: ExperimentRecord) -> list[Effect]:
    """Of each two values, where tunables were crossed."""
    if not record.spec.sweeps:
        return []
    return [one for one in _sweep_effects(record, None) if one.kind == "interaction"]


def _sweep_effects(record: ExperimentRecord, party: str | None) -> Sequence[Effect]:
    if party is not None:
        workload = record.spec.workload(BUSY).model_copy(update={"focus": [party]})
        record = record.model_copy(update={"spec": record.spec.model_copy(update={"workloads": [workload]})})
    (sweep,) = record.spec.sweeps
    return sweep_findings(sweep, experiment_values(record), design_of(record.spec)).effects


def _quantity(effect: Effect) -> Quantity:
    return Quantity(effect.ratio, effect.ci_low, effect.ci_high)
