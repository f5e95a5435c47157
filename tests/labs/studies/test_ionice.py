"""The ionice study: the laws it rests on, and that its statements can fail."""

from __future__ import annotations

import dataclasses
from statistics import fmean

import numpy as np
import pytest

from blklab.labs.studies import replicable_study
from blklab.labs.studies.ionice.distance import irregular_ratio, regular_ratio
from blklab.labs.studies.ionice.experiments import REPEATED, entry_priority, pairs_of
from blklab.labs.studies.ionice.reading import published_ratio
from blklab.labs.studies.ionice.set_up import IoniceSetUp, PublishedDisk, disk_target, published_disk
from blklab.labs.studies.ionice.shares import first_share, seconds_of
from blklab.labs.studies.replication.pages import quick_finding
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.quantities.formatting import rounded
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import JobSample, RunSample
from plain_simulation import simulate


def test_the_published_ratio_is_that_of_the_analysis() -> None:
    folder = StudyFolder("ionice")
    ratio = published_ratio(folder)
    pair = folder.readings.answers["priorities"].findings[0].pairs[0]
    found = sorted([pair.estimate, 1 / pair.estimate])[1]
    assert ratio.value == pytest.approx(found)
    assert (round(ratio.low or 0, 2), round(ratio.high or 0, 2)) == (2.22, 3.86)


def test_the_published_disk() -> None:
    disk = published_disk(StudyFolder("ionice"))
    assert disk.bytes_per_second == pytest.approx(2 * 2147483648 / 5.39265)
    assert disk.irregularity == pytest.approx(0.2213, abs=1e-3)
    low, high = disk.irregularity_interval
    # The standard deviation of four figures: chi-squared quantiles with three degrees of freedom.
    assert low / disk.irregularity == pytest.approx(0.5665, abs=1e-3)
    assert high / disk.irregularity == pytest.approx(3.7286, abs=1e-3)


def test_counted_turns() -> None:
    assert regular_ratio(20.0) == 5 / 2
    assert regular_ratio(4.0) == 23 / 6
    assert regular_ratio(0.01) == pytest.approx(4.5, abs=0.01)
    assert irregular_ratio(0.0, 0.0) == 4.5
    assert irregular_ratio(0.0, 0.2) == pytest.approx((180 + 20) / (40 + 20))


def test_a_disk_that_stalls_is_as_irregular_as_was_asked() -> None:
    """The share of stalls from the wanted irregularity, checked on the device alone."""
    set_up = StudyFolder("ionice").set_up(IoniceSetUp)
    wanted = PublishedDisk(bytes_per_second=400e6, irregularity=0.2, nr_totals=4)
    share = wanted.stalled_share(100_000_000)
    assert share == pytest.approx(0.4)
    text = disk_target("sim", set_up, command_ns=1_000_000, stalled_share=share, stall="100ms")
    jobs: dict[str, dict[str, str | int]] = {
        "w": {"rw": "write", "bs": "256k", "direct": 1, "time_based": 1, "runtime": "200s", "size": "32g"}
    }
    result = simulate(text, jobs, scheduler="noop", timeline=True)
    assert result.timeline is not None
    ends = result.timeline.columns("ios")["end_ns"].astype(np.int64)
    totals = np.bincount(ends // 1_000_000_000)[:200]
    assert totals.mean() == pytest.approx(1000, rel=0.05)
    assert totals.std(ddof=1) / totals.mean() == pytest.approx(0.2, rel=0.15)


def test_entries_and_pairs() -> None:
    assert [entry_priority(entry) for entry in ("rt", "be0", "be7", "idle")] == [
        (1, 4),
        (2, 0),
        (2, 7),
        (3, 4),
    ]
    assert list(pairs_of(["a", "b"])) == [("a", "a"), ("a", "b"), ("b", "b")]


def test_seconds_need_both_processes() -> None:
    finding = quick_finding("ionice")
    sample = finding.records["writers"].samples[0]
    seconds = seconds_of(sample)
    assert sample.jobs[0].rates is not None and sample.jobs[1].rates is not None
    # The process at level 7 continues alone for longer than a second.
    assert len(sample.jobs[1].rates.bytes_per_second) > len(seconds.first)
    assert len(seconds.ratios) == len(seconds.first) >= 3


def _with_levels_swapped(record: ExperimentRecord) -> ExperimentRecord:
    """As if level 7 had had what level 0 had."""

    def swapped(jobs: list[JobSample]) -> list[JobSample]:
        first, second = jobs
        return [
            first.model_copy(update={"directions": second.directions, "rates": second.rates}),
            second.model_copy(update={"directions": first.directions, "rates": first.rates}),
        ]

    samples = [one.model_copy(update={"jobs": swapped(one.jobs)}) for one in record.samples]
    return record.model_copy(update={"samples": samples})


def test_statements_fail_for_results_that_say_the_opposite() -> None:
    finding = quick_finding("ionice")
    records = dict(finding.records)
    records[REPEATED] = _with_levels_swapped(records[REPEATED])
    result = replicable_study("ionice").read(finding.options, finding.folder, records)
    for name in ("level-0-faster", "cfq-ratio", "distance-irregular", "bfq-level-0-faster"):
        assert finding.result.statement(name).outcome == "holds"
        assert result.statement(name).outcome == "fails"
    assert result.statement("noop-no-effect").outcome == "holds"
    assert dataclasses.replace(finding.result, remarks=[]) != result


def _with_more_for_the_first(record: ExperimentRecord, *, equals_too: bool) -> ExperimentRecord:
    """As if both had written as much, or the first a tenth more, in pairs of equals or not."""
    mib = 1 << 20

    def wrote(job: JobSample, written: int) -> JobSample:
        directions = [
            one.model_copy(update={"bytes": written}) if one.direction == "write" else one
            for one in job.directions
        ]
        return job.model_copy(update={"directions": directions})

    def changed(sample: RunSample) -> RunSample:
        one, other = sample.cell.workload.split("-")
        first, second = sample.jobs
        more = 100 if one == other and not equals_too else 110
        return sample.model_copy(update={"jobs": [wrote(first, more * mib), wrote(second, 100 * mib)]})

    return record.model_copy(update={"samples": [changed(sample) for sample in record.samples]})


def test_the_order_of_two_buffered_writers_is_not_taken_for_their_classes() -> None:
    finding = quick_finding("ionice")
    whole = finding.records["matrix-buffered"]
    for equals_too, outcome in ((True, "holds"), (False, "fails")):
        changed = _with_more_for_the_first(whole, equals_too=equals_too)
        records = {**finding.records, "matrix-buffered": changed}
        result = replicable_study("ionice").read(finding.options, finding.folder, records)
        assert result.statement("bfq-buffered").outcome == outcome
        pairs = {sample.cell.workload for sample in changed.samples}
        equals = [pair for pair in pairs if len(set(pair.split("-"))) == 1]
        between_equals = fmean(first_share(changed, "bfq", pair) or 0 for pair in equals)
        assert f"equals, {rounded(100 * between_equals)} %" in result.statement("bfq-buffered").why
        assert (between_equals > 0.52) == equals_too


def test_buffered_writes_are_the_flushers_at_every_level() -> None:
    record = quick_finding("ionice").records["matrix-buffered"]
    assert record.samples
    for sample in record.samples:
        assert sample.engine["background_requests"] == sample.engine["requests_recorded"] > 0
        assert sample.engine["background_priorities"] == ["be4"]
    direct = quick_finding("ionice").records["matrix-write"]
    assert {sample.engine["background_requests"] for sample in direct.samples} == {0}


def test_as_its_author_ran_it() -> None:
    record = quick_finding("ionice").records["writers"]
    assert record.spec.order == "by-scheduler"
    assert [one.cell.scheduler for one in record.samples] == [one.label for one in record.spec.schedulers]
    moved = [entry.bytes for job in record.samples[0].jobs for entry in job.directions]
    assert moved == [2 << 30, 2 << 30]
