"""Reports on models say when a processor is the bottleneck, and not the disk."""

from __future__ import annotations

from blklab.report.documents.processors import ProcessorPart, processor_parts
from blklab.report.summary.processors import FULL, processor_sentences
from blklab.testing.experiments import make_experiment, make_spec, make_workload

READS = make_workload("reads", source="reads.fio")


def _part(scheduler: str, busiest: float, own: float | None) -> ProcessorPart:
    return ProcessorPart(workload="reads", scheduler=scheduler, busiest_share=busiest, scheduler_share=own)


def test_shares_are_medians_over_runs_with_a_cost_table() -> None:
    record = make_experiment(make_spec(["none", "bfq"], [READS], blocks=3))
    assert processor_parts(record) == []
    engines = {
        "none": {"simulated_ns": 1000, "processors": {"busy_ns": [900, 100], "scheduler_ns": 0}},
        "bfq": {"simulated_ns": 1000, "processors": {"busy_ns": [400, 100]}},
    }
    samples = [
        sample.model_copy(update={"engine": engines[sample.cell.scheduler]}) for sample in record.samples
    ]
    parts = {part.scheduler: part for part in processor_parts(record.model_copy(update={"samples": samples}))}
    assert parts == {"none": _part("none", 0.9, 0.0), "bfq": _part("bfq", 0.4, None)}


def test_a_full_processor_is_told() -> None:
    parts = [_part("none", 0.99, 0.0), _part("mq-deadline", 0.8, 0.16), _part("bfq", 0.83, 0.342)]
    (sentence,) = processor_sentences(parts)
    assert sentence == (
        "Under reads a processor is the bottleneck (busy 99 % with none, 80 % with mq-deadline and 83 % with "
        "bfq), so a scheduler's own computing counts (16 % with mq-deadline and 34 % with bfq of all "
        "computing)."
    )


def test_an_idle_processor_is_not_told() -> None:
    assert processor_sentences([_part("none", FULL - 0.01, 0.1)]) == []
    assert processor_sentences([]) == []
