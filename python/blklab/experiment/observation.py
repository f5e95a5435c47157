"""Observes one more run of each scheduler whose difference is to be explained.

These runs give counters, not figures: the verdict rests on the experiment's own runs alone.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from blklab.analysis.verdict import Analysis
from blklab.analysis.why import Explained, differences_to_explain
from blklab.errors import BlklabError
from blklab.experiment.behaviours import behaviour_of_timeline
from blklab.experiment.blocks import Observer
from blklab.experiment.pipeline import run_once
from blklab.linux.load.fio import expected_runtime_ns
from blklab.records.behaviour import Behaviour
from blklab.records.experiment import ExperimentRecord
from blklab.records.store import Store
from blklab.simulator.timeline import Timeline
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.workloads import Workload

MOST_IOS = 400_000
"""Longer runs are cut to about so many I/Os: counters are means, which more of them do not change."""
SHORTEST_NS = 200_000_000
LONGEST_NS = 3_000_000_000


def with_observed_runs(
    record: ExperimentRecord, analysis: Analysis, store: Store, observer: Observer
) -> ExperimentRecord:
    """The record with what its schedulers did, where a difference is shown and the target can be observed.

    Args:
        record: A finished experiment.
        analysis: Its analysis.
        store: Keeps the counters.
        observer: Receives progress, and why a run could not be observed.
    """
    if record.target.backend != "sim":
        return record
    behaviours = [
        behaviour
        for one in differences_to_explain(record, analysis)
        for behaviour in _observed(record, one, observer)
    ]
    if not behaviours:
        return record
    store.note_behaviours(record.run_id, behaviours)
    return record.model_copy(update={"behaviours": behaviours})


def _observed(record: ExperimentRecord, asked: Explained, observer: Observer) -> list[Behaviour]:
    try:
        return [
            _observe_model(record, asked.workload, label, observer) for label in (asked.better, *asked.worse)
        ]
    except BlklabError as error:
        observer.announce(f"no cause of {asked.workload}: {error.message}")
        return []


def _observe_model(record: ExperimentRecord, workload: str, label: str, observer: Observer) -> Behaviour:
    with tempfile.TemporaryDirectory(prefix="blklab-") as folder:
        file = Path(folder) / "observed.timeline"
        run_once(_single_run(record, workload, label), observer, timeline_file=str(file))
        return behaviour_of_timeline(Timeline.load(file), workload, label)


def _single_run(record: ExperimentRecord, name: str, label: str) -> ExperimentSpec:
    spec = record.spec
    workload = next(one for one in spec.workloads if one.name == name)
    choice = next(one for one in spec.schedulers if one.label == label)
    return spec.model_copy(
        update={
            "workloads": [workload],
            "schedulers": [choice],
            "sweeps": [],
            "goal": None,
            "slots": {},
            "rate_window_ns": None,
            "runtime_ns": _runtime_ns(record, workload),
        }
    )


def _runtime_ns(record: ExperimentRecord, workload: Workload) -> int | None:
    """The runtime in which the fastest scheduler makes about `MOST_IOS`."""
    rates = [
        entry.ios / job.runtime_ns
        for sample in record.successes(workload=workload.name)[: len(record.spec.schedulers)]
        for job in sample.jobs
        for entry in job.data_directions()
        if job.runtime_ns
    ]
    most_ns = max(SHORTEST_NS, min(LONGEST_NS, int(MOST_IOS / max(rates, default=1e-9))))
    asked_ns = record.spec.runtime_ns
    length_ns = expected_runtime_ns(workload, asked_ns)
    return asked_ns if length_ns is not None and length_ns <= most_ns else most_ns
