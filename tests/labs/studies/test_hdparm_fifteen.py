"""The fixed order and randomised blocks, scatter, tuning in pairs: statements that can fail."""

from __future__ import annotations

import statistics

import pytest

from blklab.labs.studies import replicable_study
from blklab.labs.studies.hdparm.fifteen.claims import scatter
from blklab.labs.studies.hdparm.fifteen.experiments import PRINTED, RANDOMISED, experiments
from blklab.labs.studies.hdparm.fifteen.session_replay import replay_in_blocks, session_values
from blklab.labs.studies.hdparm.fifteen.set_up import (
    BFQ,
    TUNED,
    FifteenSetUp,
    choices,
    device_text,
    published_rates,
)
from blklab.labs.studies.hdparm.jobs import BUFFERED, CACHED
from blklab.labs.studies.replication.options import StudyOptions
from blklab.labs.studies.replication.pages import quick_finding
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import RunSample
from blklab.spec.plan import Plan


@pytest.fixture(scope="module")
def folder() -> StudyFolder:
    return StudyFolder("hdparm-fifteen")


@pytest.fixture(scope="module")
def set_up(folder: StudyFolder) -> FifteenSetUp:
    return folder.set_up(FifteenSetUp)


def test_the_published_order_is_that_of_the_experiment(folder: StudyFolder) -> None:
    spec = next(one.spec for one in experiments(StudyOptions(), folder) if one.name == PRINTED)
    cells = [cell for piece in Plan(spec).blocks() for cell in piece]
    labels = [cell.key.scheduler for cell in cells]
    assert list(dict.fromkeys(labels)) == ["mq-deadline", "bfq", "kyber", "none", TUNED]
    assert labels == sorted(labels, key=list(dict.fromkeys(labels)).index), "one stretch each"
    assert labels.count(TUNED) == 2 * 15
    assert [cell.key.workload for cell in cells[:2]] == [CACHED, BUFFERED]


def test_the_tuned_bfq_is_as_printed(folder: StudyFolder, set_up: FifteenSetUp) -> None:
    tuned = choices(folder, set_up)[-1]
    assert tuned.name == BFQ
    assert tuned.tunables == {
        "slice_idle": "20",
        "fifo_expire_async": "150",
        "fifo_expire_sync": "200",
        "timeout_sync": "160",
    }


def test_rates_are_the_published_ones(folder: StudyFolder, set_up: FifteenSetUp) -> None:
    rates = published_rates(folder, set_up, CACHED)
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


def test_a_steady_disk_has_the_mean_speed_and_no_stalls(folder: StudyFolder, set_up: FifteenSetUp) -> None:
    steady, stalling = (device_text(folder, set_up, steady=steady) for steady in (True, False))
    assert "stall" not in steady
    latency_s = float(steady.split("latency=")[1].split("ns")[0]) / 1e9
    rates = published_rates(folder, set_up, BUFFERED)
    mean = statistics.fmean(rate for label in set_up.schedulers for rate in rates[label])
    assert 1 / latency_s == pytest.approx(mean, rel=1e-3)
    assert stalling.startswith("fixed,latency=") and ",stall=50ms,stall_every=" in stalling


def test_the_disk_scatters_as_published(folder: StudyFolder, set_up: FifteenSetUp) -> None:
    """Over many blocks, within the error of a sample of that size."""
    record = quick_finding("hdparm-fifteen").records[RANDOMISED]
    rates = [one.jobs[0].directions[0].bytes for one in record.successes("none", BUFFERED)]
    ours = statistics.stdev(rates) / statistics.fmean(rates)
    theirs = statistics.fmean(
        statistics.stdev(runs) / statistics.fmean(runs)
        for label, runs in published_rates(folder, set_up, BUFFERED).items()
    )
    assert 0.4 < ours / theirs < 2.2


def test_a_replayed_session_falls_on_all_schedulers_alike(folder: StudyFolder) -> None:
    spec = next(one.spec for one in experiments(StudyOptions(), folder) if one.name == RANDOMISED)
    values = [float(number) for number in range(75)]
    found = replay_in_blocks(values, spec, CACHED)
    assert sorted(rate for by_block in found.values() for rate in by_block.values()) == values
    for by_block in found.values():
        # One run in each block of five.
        assert [int(rate) // 5 for _, rate in sorted(by_block.items())] == list(range(15))
    assert session_values({"a": [1.0, 2.0], "b": [3.0]}) == [1.0, 2.0, 3.0]
    with pytest.raises(ValueError, match="whole number of blocks"):
        replay_in_blocks([1.0] * 7, spec, CACHED)


def test_scatter_needs_the_whole_interval() -> None:
    wide = dict(enumerate([1.0, 9.0, 2.0, 8.0, 1.5, 9.5, 2.5, 8.5, 1.2, 9.2, 2.2, 8.2]))
    narrow = dict(enumerate([5.0, 5.1, 4.9, 5.05, 4.95, 5.02, 5.1, 4.9, 5.0, 5.03, 4.97, 5.0]))
    other = {block: rate + (0.3 if block % 3 else -0.4) for block, rate in wide.items()}
    rates = {"wide": wide, "narrow": narrow, "other": other, "same": wide}
    assert scatter("x", "x", rates, [("wide", "narrow")]).outcome == "holds"
    assert scatter("x", "x", rates, [("narrow", "wide")]).outcome == "fails"
    assert scatter("x", "x", rates, [("wide", "other")]).outcome == "undecided"
    assert scatter("x", "x", rates, [("wide", "same")]).outcome == "fails"
    assert scatter("x", "x", rates, [("wide", "narrow"), ("wide", "other")]).outcome == "undecided"


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
    finding = quick_finding("hdparm-fifteen")
    study = replicable_study("hdparm-fifteen")

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
