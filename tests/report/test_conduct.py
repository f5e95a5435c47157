"""The course of an experiment in words: stopping and noise."""

from __future__ import annotations

import math

from blklab.analysis.verdict import analyse
from blklab.records.experiment import ExperimentRecord
from blklab.report.documents.conduct import DeparturePart, StoppingPart, noise_parts, stopping_part
from blklab.report.summary.conduct import noise_sentences, stopping_sentence
from blklab.testing.experiments import SchedulerBehaviour, WorkloadBehaviour, make_experiment, make_spec

WORKLOAD = "random-read-4k-qd32"


def _sentences(record: ExperimentRecord) -> str:
    return "\n".join(noise_sentences(noise_parts(analyse(record).noise), WORKLOAD))


def _quiet() -> dict[str, WorkloadBehaviour]:
    labels = ("none", "bfq")
    return {
        WORKLOAD: WorkloadBehaviour(schedulers={label: SchedulerBehaviour(noise=0.004) for label in labels})
    }


def test_a_fixed_number_of_blocks_needs_no_words() -> None:
    part = stopping_part(make_experiment(make_spec(("none", "bfq"), blocks=5)))
    assert (part.rule, part.departures) == ("fixed", [])
    assert stopping_sentence(part, still_open=True) is None


def test_who_left_and_when_is_told() -> None:
    spec = make_spec(("none", "bfq"), blocks=9)
    record = make_experiment(spec)
    kept = [s for s in record.samples if s.cell.scheduler == "none" or s.cell.block < 4]
    racing = spec.model_copy(update={"stopping": "settled", "blocks": None, "budget_blocks": 18})
    part = stopping_part(record.model_copy(update={"spec": racing, "samples": kept}))
    assert [(one.scheduler, one.blocks) for one in part.departures] == [("bfq", 4)]
    assert part.budget_blocks == 18
    sentence = stopping_sentence(part, still_open=False)
    assert sentence == f"Blocks were added until everything was settled; bfq left {WORKLOAD} after 4 blocks."
    assert "budget was used up" in (stopping_sentence(part, still_open=True) or "")


def test_those_that_left_together_are_told_together() -> None:
    left = [("reads", "a", 4), ("reads", "b", 4), ("writes", "a", 4), ("writes", "b", 4), ("writes", "c", 1)]
    part = StoppingPart(
        rule="settled",
        budget_blocks=18,
        budget_seconds=None,
        departures=[DeparturePart(workload=w, scheduler=s, blocks=n) for w, s, n in left],
    )
    assert stopping_sentence(part, still_open=False) == (
        "Blocks were added until everything was settled; a and b left reads and writes after 4 blocks; "
        "c left writes after 1 block."
    )


def test_a_block_that_was_broken_off_is_no_departure() -> None:
    spec = make_spec(("none", "bfq"), blocks=9)
    record = make_experiment(spec, state="interrupted")
    racing = spec.model_copy(update={"stopping": "settled", "blocks": None, "budget_blocks": 18})
    broken = record.model_copy(update={"spec": racing, "samples": record.samples[:-1]})
    assert stopping_part(broken).departures == []


def test_quiet_noise_needs_no_words() -> None:
    spec = make_spec(("none", "bfq"), blocks=10)
    assert _sentences(make_experiment(spec, workloads=_quiet(), block_noise=0.002)) == ""


def test_drift_is_told() -> None:
    spec = make_spec(("none", "bfq"), blocks=10)
    text = _sentences(make_experiment(spec, workloads=_quiet(), block_noise=0.002, drift=-0.3))
    percent = 100 * math.expm1(-0.3)
    assert "drift: " in text
    assert abs(float(text.split("drift: ")[1].split(" %")[0]) - percent) < 4


def test_outliers_are_named_and_kept() -> None:
    spec = make_spec(("none", "bfq"), blocks=10)
    record = make_experiment(spec, workloads=_quiet(), block_noise=0.002)
    index = next(i for i, s in enumerate(record.samples) if s.cell.block == 6 and s.cell.scheduler == "bfq")
    sample = record.samples[index]
    job = sample.jobs[0]
    slow = job.model_copy(
        update={
            "runtime_ns": 3 * job.runtime_ns,
            "directions": [d.model_copy(update={"runtime_ns": 3 * d.runtime_ns}) for d in job.directions],
        }
    )
    samples = list(record.samples)
    samples[index] = sample.model_copy(update={"jobs": [slow]})
    spoiled = record.model_copy(update={"samples": samples})
    assert "block 7 bfq (0.33 of its median)" in _sentences(spoiled)
    assert next(part for part in noise_parts(analyse(spoiled).noise)).outliers[0].block == 6
