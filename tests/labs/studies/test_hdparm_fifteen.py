"""The fixed order and randomised blocks, scatter, tuning in pairs: statements that can fail."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

import pytest

from blklab.errors import DataError
from blklab.labs.studies import replicable_study
from blklab.labs.studies.described.decisions import compare_scatter
from blklab.labs.studies.described.experiments import description_of
from blklab.labs.studies.described.runs import published_runs, replay_in_blocks, session_values
from blklab.labs.studies.replication.options import StudyOptions
from blklab.labs.studies.replication.pages import quick_finding
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import RunSample
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.plan import Plan

NAME = "hdparm-fifteen"
PRINTED, RANDOMISED = "as-printed", "randomised"
CACHED, BUFFERED = "cached-reads", "buffered-reads"
BFQ, TUNED = "bfq", "bfq-tuned"
DEFAULTS = ("mq-deadline", BFQ, "kyber", "none")


@pytest.fixture(scope="module")
def folder() -> StudyFolder:
    return StudyFolder(NAME)


def spec_of(experiment: str, options: StudyOptions | None = None) -> ExperimentSpec:
    """The specification of an experiment of the study."""
    study = replicable_study(NAME)
    found = study.experiments(options or StudyOptions(), study.files())
    return next(one.spec for one in found if one.name == experiment)


def published_rates(folder: StudyFolder, test: str) -> Mapping[str, list[float]]:
    """MiB/s as printed, by label, in the order of the runs."""
    return published_runs(folder, description_of(folder).published[test])


def test_the_published_order_is_that_of_the_experiment() -> None:
    cells = [cell for piece in Plan(spec_of(PRINTED)).blocks() for cell in piece]
    labels = [cell.key.scheduler for cell in cells]
    assert list(dict.fromkeys(labels)) == [*DEFAULTS, TUNED]
    assert labels == sorted(labels, key=list(dict.fromkeys(labels)).index), "one stretch each"
    assert labels.count(TUNED) == 2 * 15
    assert [cell.key.workload for cell in cells[:2]] == [CACHED, BUFFERED]


def test_the_tuned_bfq_is_as_printed(folder: StudyFolder) -> None:
    printed = {row["tunable"]: row["tuned_ms"] for row in folder.rows("bfq_settings.csv")}
    for experiment in (PRINTED, RANDOMISED, "busy-disk"):
        tuned = spec_of(experiment).schedulers[-1]
        assert (tuned.label, tuned.name) == (TUNED, BFQ)
        assert tuned.tunables == printed


def test_rates_are_the_published_ones(folder: StudyFolder) -> None:
    rates = published_rates(folder, "cached reads")
    assert [len(runs) for runs in rates.values()] == [15] * 5
    for label, runs in rates.items():
        setting = "tuned" if label == TUNED else "default"
        name = BFQ if label == TUNED else label
        mean, deviation = (
            folder.values(
                "hdparm_summary.csv",
                "throughput_MBps",
                scheduler=name,
                setting=setting,
                test="cached reads",
                statistic=statistic,
            )[0]
            for statistic in ("mean", "standard deviation")
        )
        assert statistics.fmean(runs) == pytest.approx(mean, abs=0.006)
        assert statistics.stdev(runs) == pytest.approx(deviation, abs=0.006)


def test_a_steady_disk_has_the_mean_speed_and_no_stalls(folder: StudyFolder) -> None:
    steady, stalling = (spec_of(RANDOMISED, StudyOptions(one)).target for one in ("uml", "sim"))
    assert "stall" not in steady
    latency_s = float(steady.split("latency=")[1].split("ns")[0]) / 1e9
    rates = published_rates(folder, "buffered reads")
    mean = statistics.fmean(rate for label in DEFAULTS for rate in rates[label])
    assert 1 / latency_s == pytest.approx(mean, rel=1e-3)
    assert stalling.startswith("sim:fixed,latency=") and ",stall=50ms,stall_every=" in stalling


def test_the_disk_scatters_as_published(folder: StudyFolder) -> None:
    """Over many blocks, within the error of a sample of that size."""
    record = quick_finding(NAME).records[RANDOMISED]
    rates = [one.jobs[0].directions[0].bytes for one in record.successes("none", BUFFERED)]
    ours = statistics.stdev(rates) / statistics.fmean(rates)
    theirs = statistics.fmean(
        statistics.stdev(runs) / statistics.fmean(runs)
        for runs in published_rates(folder, "buffered reads").values()
    )
    assert 0.4 < ours / theirs < 2.2


def test_a_replayed_session_falls_on_all_schedulers_alike() -> None:
    spec = spec_of(RANDOMISED)
    values = [float(number) for number in range(75)]
    found = replay_in_blocks(values, spec, CACHED)
    assert sorted(rate for by_block in found.values() for rate in by_block.values()) == values
    for by_block in found.values():
        # One run in each block of five.
        assert [int(rate) // 5 for _, rate in sorted(by_block.items())] == list(range(15))
    assert session_values({"a": [1.0, 2.0], "b": [3.0]}) == [1.0, 2.0, 3.0]
    with pytest.raises(DataError, match="whole number of blocks"):
        replay_in_blocks([1.0] * 7, spec, CACHED)


def test_scatter_needs_the_whole_interval() -> None:
    wide = dict(enumerate([1.0, 9.0, 2.0, 8.0, 1.5, 9.5, 2.5, 8.5, 1.2, 9.2, 2.2, 8.2]))
    narrow = dict(enumerate([5.0, 5.1, 4.9, 5.05, 4.95, 5.02, 5.1, 4.9, 5.0, 5.03, 4.97, 5.0]))
    other = {block: rate + (0.3 if block % 3 else -0.4) for block, rate in wide.items()}
    few = dict(enumerate([1.0, 2.0, 3.0]))
    rates = {"wide": wide, "narrow": narrow, "other": other, "same": wide, "few": few}
    assert compare_scatter(rates, "wide", "narrow")[0] == "holds"
    assert compare_scatter(rates, "narrow", "wide")[0] == "fails"
    assert compare_scatter(rates, "wide", "other")[0] == "undecided"
    assert compare_scatter(rates, "wide", "same") == ("fails", "wide and same: the same in every block")
    assert compare_scatter(rates, "wide", "few") == ("undecided", "wide and few: too few runs")


def _faster(record: ExperimentRecord, label: str, factor: float) -> ExperimentRecord:
    """As if the runs of a scheduler had read that much more in the same time."""

    def faster(sample: RunSample) -> RunSample:
        if sample.cell.scheduler != label:
            return sample
        jobs = [
            job.model_copy(
                update={
                    "directions": [
                        one.model_copy(update={"bytes": round(one.bytes * factor)}) for one in job.directions
                    ]
                }
            )
            for job in sample.jobs
        ]
        return sample.model_copy(update={"jobs": jobs})

    return record.model_copy(update={"samples": [faster(sample) for sample in record.samples]})


def test_statements_follow_the_runs() -> None:
    finding = quick_finding(NAME)
    study = replicable_study(NAME)

    def outcomes(label: str, factor: float) -> dict[str, str]:
        records = dict(finding.records)
        records[RANDOMISED] = _faster(records[RANDOMISED], label, factor)
        result = study.read(finding.options, finding.folder, records)
        return {one.name: one.outcome for one in result.statements}

    kyber = outcomes("kyber", 1.05)
    assert (kyber["kyber-fastest"], kyber["kyber-over-mq-deadline"]) == ("holds", "holds")
    assert (kyber["cached-reads-equal"], kyber["kyber-as-good"]) == ("fails", "fails")
    tuned = outcomes(TUNED, 1.05)
    assert (tuned["tuning-raises-cached-reads"], tuned["tuning-raises-buffered-reads"]) == ("holds", "holds")
    assert tuned["tuning-without-effect-buffered-reads"] == "fails"
    assert tuned["kyber-fastest"] == "fails"
