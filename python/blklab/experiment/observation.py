"""Observes one more run of each scheduler whose difference is to be explained.

These runs give counters, not figures: the verdict rests on the experiment's own runs alone.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from blklab.analysis.two_runs import focus_of
from blklab.analysis.verdict import Analysis
from blklab.analysis.why import Explained, differences_to_explain
from blklab.errors import BlklabError, UsageError
from blklab.experiment.behaviours import behaviour_of_timeline
from blklab.experiment.blocks import Observer
from blklab.experiment.pipeline import run_once
from blklab.experiment.recorded_runs import behaviour_of_recording, job_parties, recorded
from blklab.guests.scratch import MEMORY_FOLDER
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


def is_observed_unasked(record: ExperimentRecord) -> bool:
    """Whether more runs cost next to nothing: those of the simulator."""
    return record.target.backend == "sim"


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
        observe = _WAYS[record.target.backend]
        return [observe(record, asked.workload, label, observer) for label in (asked.better, *asked.worse)]
    except BlklabError as error:
        observer.announce(f"no cause of {asked.workload}: {error.message}")
        return []


def _observe_model(record: ExperimentRecord, workload: str, label: str, observer: Observer) -> Behaviour:
    with tempfile.TemporaryDirectory(prefix="blklab-") as folder:
        file = Path(folder) / "observed.timeline"
        run_once(_single_run(record, workload, label), observer, timeline_file=str(file))
        return behaviour_of_timeline(Timeline.load(file), workload, label)


def _observe_model_of_guest(
    record: ExperimentRecord, workload: str, label: str, observer: Observer
) -> Behaviour:
    """The simulator's run of the same modelled disk: a guest keeps no account of single requests.

    Raises:
        UsageError: if the experiment is about kernels, whose schedulers the simulator does not have.
    """
    spec = record.spec
    if len({choice.kernel for choice in spec.schedulers}) > 1:
        raise UsageError("the simulator has no other kernels, and a guest keeps no account of requests")
    choices = [choice.model_copy(update={"kernel": None}) for choice in spec.schedulers]
    target = f"sim:{spec.target.partition(':')[2]}"
    told = spec.model_copy(update={"target": target, "schedulers": choices, "kernels": []})
    names = {choice.label: one.label for choice, one in zip(spec.schedulers, choices, strict=True)}
    found = _observe_model(record.model_copy(update={"spec": told}), workload, names[label], observer)
    return found.model_copy(update={"scheduler": label})


def _observe_disk(record: ExperimentRecord, workload: str, label: str, observer: Observer) -> Behaviour:
    """A run on the disk itself, recorded."""
    spec = _single_run(record, workload, label)
    asked = spec.workloads[0]
    if not _can_be_told_apart(asked):
        raise UsageError("a recording cannot tell its jobs apart, as they do the same operations")
    with tempfile.TemporaryDirectory(prefix="blklab-", dir=_memory_folder()) as folder:
        file = Path(folder) / "observed.blkrecord"
        run_once(spec, observer, meanwhile=lambda target: recorded(target, file))
        return behaviour_of_recording(file, asked, label, record.target.disks)


def _can_be_told_apart(workload: Workload) -> bool:
    """Whether the jobs in question are parties of their own in a recording."""
    focus = focus_of(workload)
    return not focus or any(party in focus for party in job_parties(workload))


def _memory_folder() -> str | None:
    """A folder that is on no disk, so that the recording does not record itself."""
    return str(MEMORY_FOLDER) if MEMORY_FOLDER.is_dir() else None


_WAYS = {"sim": _observe_model, "uml": _observe_model_of_guest, "host": _observe_disk}
"""By backend."""


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
