"""Reads the runs of mq-deadline's tunables, on one reader and on a busy disk."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from blklab.analysis.designs import design_of
from blklab.analysis.sweep_effects import Effect, sweep_findings
from blklab.analysis.values import experiment_values
from blklab.labs.studies.described.runs import paired_ratios
from blklab.labs.studies.hdparm.experiments import (
    TUNABLES_BUSY,
    TUNABLES_PRINTED,
    TUNABLES_REPEATED,
)
from blklab.labs.studies.hdparm.findings import interval_row, rows_of
from blklab.labs.studies.hdparm.jobs import BUFFERED, BUSY, BUSY_JOBS, TESTS
from blklab.labs.studies.hdparm.set_up import Tunables
from blklab.labs.studies.hdparm.timing_tests import inverse, job_ios, mebibyte_rates, rates_of
from blklab.labs.studies.replication.pictures import IntervalPicture
from blklab.labs.studies.replication.result import ComparedValue, IntervalEstimate, Statement, StudyResult
from blklab.labs.studies.replication.statements import equal, greater, matters, mean_of
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.records.experiment import ExperimentRecord

_JOB_TITLES = {"readers": "the readers", "writers": "the writers", "idle": "the idle class"}
NO_IO_ENDED = "no I/O ended"
_TABLE_FILE = "mqdeadline_tunables.csv"
_EXPECTED_TO_COST = ("read_expire", "write_expire")
"""The tunables that the document expected to cost most."""


def read_tunables(
    folder: StudyFolder, tunables: Tunables, records: Mapping[str, ExperimentRecord]
) -> StudyResult:
    """Compares the document's workload, as printed and repeated, then the busy disk."""
    printed = [
        value for test in TESTS for value in _printed(test, folder, tunables, records[TUNABLES_PRINTED])
    ]
    reads = _effects(records[TUNABLES_REPEATED], tunables, None)
    one_reader = StudyResult(printed, [*_reader_statements(tunables, reads, records[TUNABLES_REPEATED])])
    one_reader.pictures.append(
        IntervalPicture(
            "tunables",
            "Buffered reads with a tunable changed, relative to the baseline",
            "Published: one run each. Ours: randomised blocks, 95 % intervals.",
            "times",
            tuple(
                row
                for value in printed
                if value.table.startswith(TESTS[BUFFERED].capitalize())
                for row in (
                    *rows_of(replace(value, ours=None)),
                    interval_row(f"{value.name}, ours", reads[value.name.split(" ")[0]]),
                )
            ),
            marks=((1.0, "no effect"),),
        )
    )
    busy = _read_busy(tunables, records[TUNABLES_BUSY])
    return StudyResult(
        one_reader.values + busy.values,
        one_reader.statements + busy.statements,
        one_reader.pictures + busy.pictures,
    )


def _printed(
    test: str, folder: StudyFolder, tunables: Tunables, record: ExperimentRecord
) -> Iterator[ComparedValue]:
    """One run each, relative to the run without a change."""
    column = "throughput_MBps"
    before = folder.values(_TABLE_FILE, column, tunable="baseline", test=TESTS[test])[0]
    ours_before = rates_of(record, test, tunables.before.label)[0]
    for name, choice in tunables.choices.items():
        theirs = folder.values(_TABLE_FILE, column, tunable=name, test=TESTS[test])[0]
        yield ComparedValue(
            f"{name} = {tunables.values[name]}",
            f"{TESTS[test].capitalize()} with a tunable changed, relative to the baseline, one run each",
            "",
            IntervalEstimate(theirs / before),
            IntervalEstimate(rates_of(record, test, choice.label)[0] / ours_before),
        )


def _reader_statements(
    tunables: Tunables, effects: Mapping[str, IntervalEstimate], record: ExperimentRecord
) -> Iterator[Statement]:
    for name, ratio in effects.items():
        yield equal(
            f"{name}-without-effect",
            f"{name} at {tunables.values[name]} changes nothing in buffered reads",
            ratio,
            why="with one reader the scheduler has no choice to make",
        )
    for name in _EXPECTED_TO_COST:
        yield greater(
            f"{name}-costs",
            f"A larger {name} costs buffered reads",
            inverse(effects[name]),
            why="baseline over changed",
        )
    together = _interactions(record)
    if together:
        farthest = max(together, key=lambda one: abs(math.log(one.ratio)))
        yield equal(
            "tunables-together",
            f"No two tunables interact in buffered reads ({farthest.name})",
            _quantity(farthest),
            why=f"the largest of {len(together)} two-way interactions",
        )


def _read_busy(tunables: Tunables, record: ExperimentRecord) -> StudyResult:
    found = StudyResult()
    by_job = {job: _effects(record, tunables, job) for job in BUSY_JOBS}
    for job, effects in by_job.items():
        table = f"A busy disk: I/Os of {_JOB_TITLES[job]}, relative to the baseline"
        found.values += [
            ComparedValue(f"{name} = {tunables.values[name]}", table, "", None, ratio)
            for name, ratio in effects.items()
        ]
        counts = job_ios(record, job)
        for name, choice in tunables.variants.items():
            ratios = paired_ratios(counts, choice.label, tunables.before.label)
            found.values.append(
                ComparedValue(
                    name, table, "", None, mean_of(ratios) if ratios else None, "" if ratios else NO_IO_ENDED
                )
            )
    found.statements += [
        matters(
            f"{name}-matters",
            f"On a busy disk {name} at {value} changes what readers, writers or the idle class get",
            {job: effects.get(name) for job, effects in by_job.items()},
        )
        for name, value in tunables.values.items()
    ]
    found.pictures.append(
        IntervalPicture(
            "busy-disk",
            "A busy disk: I/Os with a tunable changed, relative to the baseline",
            "Readers, writers and a reader in the idle class on a hard disk without command queueing. "
            "95 % intervals.",
            "times",
            tuple(
                interval_row(f"{name}: {job}", effects[name])
                for name in tunables.values
                for job, effects in by_job.items()
                if name in effects
            ),
            marks=((1.0, "no effect"),),
        )
    )
    return found


def _effects(record: ExperimentRecord, tunables: Tunables, job: str | None) -> dict[str, IntervalEstimate]:
    """The effect of each value, by tunable; averaged over the others' combinations if they were crossed.

    Args:
        record: Has one workload, and a sweep if the tunables were crossed.
        tunables: The values.
        job: Count the I/Os of this job; None: use the workload's metric.
    """
    if record.spec.sweeps:
        mains = [one for one in _sweep_effects(record, job) if one.kind == "main"]
        return {name: _quantity(one) for one in mains for name in one.levels}
    workload = record.spec.workloads[0].name
    values = mebibyte_rates(record, workload) if job is None else job_ios(record, job)
    pairs = {
        name: paired_ratios(values, choice.label, tunables.before.label)
        for name, choice in tunables.choices.items()
    }
    return {name: mean_of(ratios) for name, ratios in pairs.items() if ratios}


def _interactions(record: ExperimentRecord) -> list[Effect]:
    """Two-way interactions, if the tunables were crossed."""
    if not record.spec.sweeps:
        return []
    return [one for one in _sweep_effects(record, None) if one.kind == "interaction"]


def _sweep_effects(record: ExperimentRecord, job: str | None) -> Sequence[Effect]:
    if job is not None:
        workload = record.spec.workload(BUSY).model_copy(update={"focus": [job]})
        record = record.model_copy(update={"spec": record.spec.model_copy(update={"workloads": [workload]})})
    (sweep,) = record.spec.sweeps
    return sweep_findings(sweep, experiment_values(record), design_of(record.spec)).effects


def _quantity(effect: Effect) -> IntervalEstimate:
    return IntervalEstimate(effect.ratio, effect.ci_low, effect.ci_high)
