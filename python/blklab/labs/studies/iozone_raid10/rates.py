"""Rates of iozone's tests from samples and from the published table."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from blklab.analysis.statistics.intervals import geometric_mean_interval
from blklab.labs.studies.iozone_raid10.experiments import kind_of, workload_name
from blklab.labs.studies.replication.result import IntervalEstimate
from blklab.labs.studies.replication.statements import CONFIDENCE, mean_of
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.quantities.units import NS_PER_SECOND
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import RunSample
from blklab.simulator.benchmark_emulation import IOZONE_TESTS

TABLE = "iozone.csv"

PRINTED_NAMES: Mapping[str, str] = {
    "random-read": "random read",
    "random-write": "random write",
    "backward-read": "bkwd read",
    "record-rewrite": "record rewrite",
    "stride-read": "stride read",
}
"""iozone's column headings where they differ from our test names."""

Rates = Mapping[tuple[str, str, int], float]
"""MB/s (10^6 bytes) by scheduler, test and record size in KiB."""


def published_rates(folder: StudyFolder) -> Rates:
    """The rates as printed. iozone's kB are 1024 bytes."""
    tests = {PRINTED_NAMES.get(test, test): test for test in IOZONE_TESTS}
    return {
        (line["scheduler"], tests[line["test"]], int(line["record_size_kB"])): float(line["rate_kBps"])
        * 1024e-6
        for line in folder.rows(TABLE)
    }


def measured_rates(record: ExperimentRecord) -> Rates:
    """Geometric means over the blocks of an experiment."""
    found: dict[tuple[str, str, int], list[float]] = {}
    for sample in record.samples:
        if sample.status != "ok":
            continue
        record_kib = int(sample.cell.workload.rpartition("-")[2].removesuffix("k"))
        for test in IOZONE_TESTS:
            if sample.cell.workload == workload_name(kind_of(test), record_kib):
                found.setdefault((sample.cell.scheduler, test, record_kib), []).append(_rate(sample, test))
    return {key: geometric_mean_interval(values, CONFIDENCE).mean for key, values in found.items()}


def mean_rates(rates: Rates) -> dict[tuple[str, int], float]:
    """Geometric means over the schedulers, by test and record size."""
    found: dict[tuple[str, int], list[float]] = {}
    for (_, test, record_kib), rate in rates.items():
        found.setdefault((test, record_kib), []).append(rate)
    return {key: mean_of(values).value for key, values in found.items()}


def test_ratio(rates: Rates, one: str, other: str, test: str, records_kib: Sequence[int]) -> float:
    """One scheduler over another in a test: geometric mean over the record sizes."""
    return mean_of([rates[one, test, size] / rates[other, test, size] for size in records_kib]).value


def overall_ratio(rates: Rates, one: str, other: str, records_kib: Sequence[int]) -> IntervalEstimate:
    """One scheduler over another over all tests.

    A test's record sizes are averaged first, because they resemble one another and are not independent runs.
    The interval describes the variation between tests.
    """
    return mean_of([test_ratio(rates, one, other, test, records_kib) for test in IOZONE_TESTS])


def rises(row: Sequence[float], slack: float) -> bool:
    """Whether no step along a row falls by more than the slack, a fraction."""
    return all(after >= before * (1 - slack) for before, after in itertools.pairwise(row))


def _rate(sample: RunSample, test: str) -> float:
    """MB/s of a test. The stride read has a section for each of its passes; all other tests have one."""
    sections = [job for job in sample.jobs if job.name == test or job.name.startswith(f"{test}-")]
    moved = sum(entry.bytes for job in sections for entry in job.data_directions())
    return moved / sum(job.runtime_ns for job in sections) * NS_PER_SECOND / 1e6
