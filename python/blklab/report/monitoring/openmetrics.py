"""Comparisons and runs as OpenMetrics text: what `--openmetrics` writes.

Values are in base units (seconds, bytes, ratios), as Prometheus' naming conventions ask.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import get_args

from blklab.analysis.metrics import METRICS
from blklab.report.documents.comparison import CompareDocument, DirectionPart, JobPart, RunDocument
from blklab.report.documents.parts import Outcome, PairPart
from blklab.report.monitoring.families import Families
from blklab.report.summary.standing import deciding_verdict, is_in_force, labels_of

STATUSES = ("best", "equal", "undecided", "withheld")
OUTCOMES: tuple[str, ...] = get_args(Outcome)

_BASE_UNITS: dict[str, tuple[str, float]] = {
    "us": ("seconds", 1e-6),
    "B": ("bytes", 1.0),
    "B/s": ("bytes_per_second", 1.0),
    "IO/s": ("", 1.0),
    "of 1": ("ratio", 1.0),
    "factor": ("ratio", 1.0),
}
"""Base unit and factor by unit of a metric."""


def compare_metrics(documents: Sequence[CompareDocument]) -> str:
    """Comparisons of one or several targets as OpenMetrics text."""
    families = Families()
    for document in documents:
        _add_comparison(families, document)
    return families.text()


def run_metrics(document: RunDocument) -> str:
    """A single run as OpenMetrics text."""
    families = Families()
    place = {"target": document.target, "workload": document.workload, "scheduler": document.scheduler}
    for job in document.jobs:
        _add_job(families, job, place | {"job": job.name})
    return families.text()


def _add_comparison(families: Families, document: CompareDocument) -> None:
    target = document.target
    families.add(
        "comparison_info",
        1,
        "The comparison that the other samples of its target come from",
        target=target,
        run=document.run,
        state=document.state,
        backend=document.target_description.backend,
        kernel=document.machine.kernel,
        version=document.blklab_version,
    )
    started = datetime.fromisoformat(document.created_at).timestamp()
    families.add(
        "comparison_start", started, "Time of its beginning", unit="timestamp_seconds", target=target
    )
    families.add("comparison_blocks", document.blocks, "Complete blocks or rounds", target=target)
    families.add("comparison_failed_runs", len(document.failed_runs), "Runs that failed", target=target)
    families.add(
        "comparison_confidence",
        document.confidence,
        "Confidence of all intervals",
        unit="ratio",
        target=target,
    )
    families.add(
        "comparison_margin",
        document.margin,
        "Relative difference within which schedulers count as equal",
        unit="ratio",
        target=target,
    )
    _add_verdicts(families, document)
    for result in document.results:
        unit, factor = _BASE_UNITS[result.unit]
        families.add_mean(
            result.metric,
            result,
            METRICS[result.metric].description,
            unit=unit,
            factor=factor,
            target=target,
            workload=result.workload,
            scheduler=result.scheduler,
        )
    decides = {(one.workload, one.metric) for one in document.verdicts if one.decides}
    for pair in document.comparisons:
        if (pair.workload, pair.metric) in decides:
            _add_pair(families, "pair", pair, target=target, workload=pair.workload, metric=pair.metric)
    if document.goal is not None:
        for score in document.goal.scores:
            families.add_mean(
                "goal_score",
                score,
                "Score of the goal, or of one of its metrics, relative to the reference scheduler's",
                unit="ratio",
                target=target,
                goal=document.goal.goal,
                metric=score.metric,
                scheduler=score.scheduler,
            )
        for whole in document.goal.comparisons:
            goal = document.goal.goal
            _add_pair(families, "goal_pair", whole, target=target, goal=goal, metric=whole.metric)


def _add_verdicts(families: Families, document: CompareDocument) -> None:
    target, verdict = document.target, document.verdict
    meaning = "Status of the answer: 1 for the present one"
    families.add_states("verdict", "status", STATUSES, verdict.status, meaning, target=target)
    for workload in (str(one["name"]) for one in document.workloads):
        own = deciding_verdict(document, workload)
        if own is not None:
            families.add_states(
                "workload_verdict",
                "status",
                STATUSES[:3],
                own.status,
                "Status of a workload's verdict by the metric that decides it: 1 for the present one",
                target=target,
                workload=workload,
                metric=own.metric,
            )
    for label in labels_of(document):
        for name, is_so, help_text in (
            ("verdict_best", label in verdict.best, "1 for the best scheduler, or several equals"),
            ("verdict_candidate", label in verdict.candidates, "1 for schedulers that are not ruled out"),
            ("verdict_choice", label == verdict.choice, "1 for the scheduler to take"),
            ("scheduler_in_force", is_in_force(document, label), "1 for the target's own scheduler"),
        ):
            families.add(name, float(is_so), help_text, target=target, scheduler=label)
    for regret in verdict.regret:
        families.add(
            "regret_bound",
            regret.bound,
            "At most this fraction is lost by taking the scheduler",
            unit="ratio",
            target=target,
            scheduler=regret.label,
        )


def _add_pair(families: Families, name: str, pair: PairPart, **labels: str) -> None:
    labels |= {"first": pair.first, "second": pair.second}
    families.add_ratio(name, pair, "First scheduler over the second, within blocks", **labels)
    meaning = "How the first scheduler compares with the second: 1 for the present outcome"
    families.add_states(f"{name}_outcome", "outcome", OUTCOMES, pair.outcome, meaning, **labels)


def _add_job(families: Families, job: JobPart, place: dict[str, str]) -> None:
    families.add("job_runtime", job.runtime_seconds, "Time that the section ran", unit="seconds", **place)
    for name, part in (("read", job.read), ("write", job.write), ("trim", job.trim), ("sync", job.sync)):
        if part is not None:
            _add_direction(families, part, place | {"direction": name})
    command = job.command
    if command is None:
        return
    for name, value, unit, help_text in (
        ("wall", command.wall_seconds, "seconds", "Time from the command's start to its end"),
        ("cpu_user", command.cpu_user_seconds, "seconds", "User CPU time of its processes"),
        ("cpu_system", command.cpu_system_seconds, "seconds", "System CPU time of its processes"),
        ("io_wait", command.io_wait_seconds, "seconds", "Waits of its tasks for block I/O, added up"),
        ("read", command.bytes_read, "bytes", "Bytes that its processes had fetched from disks"),
        ("written", command.bytes_written, "bytes", "Bytes that its processes dirtied or wrote directly"),
    ):
        families.add(f"command_{name}", value, help_text, unit=unit, **place)


def _add_direction(families: Families, part: DirectionPart, place: dict[str, str]) -> None:
    families.add("job_ios", part.ios, "I/Os that completed", **place)
    families.add("job_iops", part.iops, "I/Os that completed per second", **place)
    families.add("job", part.bytes, "Bytes moved", unit="bytes", **place)
    families.add(
        "job_throughput", part.bytes_per_second, "Bytes moved per second", unit="bytes_per_second", **place
    )
    latency = part.latency_us
    for name, value_us in (
        ("mean", latency.mean),
        ("p50", latency.p50),
        ("p99", latency.p99),
        ("p99_9", latency.p99_9),
        ("max", latency.max),
    ):
        value = None if value_us is None else value_us / 1e6
        what = "Time from submission to completion"
        families.add(f"job_latency_{name}", value, f"{what}: {name}", unit="seconds", **place)
