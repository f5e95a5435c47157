"""The result of a comparison as a document for machines: what `blklab compare --json` prints.

The models below are the schema: `make golden` generates docs/reference/schema/compare-1.json from them, and a
test holds the two together. Fields are only ever added within a schema's number; a change of meaning gets
a new number.
"""

from __future__ import annotations

from typing import Any, Literal, TypeVar

from pydantic import Field

from blklab.analysis.overall import Verdict
from blklab.analysis.ranking import MetricVerdict
from blklab.analysis.recommendation import Action, Reason, Recommendation, Subject
from blklab.analysis.verdict import Analysis
from blklab.analysis.why import causes_of
from blklab.quantities.notes import split
from blklab.quantities.units import NS_PER_SECOND, NS_PER_US, format_duration
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import (
    DirectionSample,
    JobSample,
    LatencyHistogram,
    MachineDescription,
    RunSample,
    TargetDescription,
)
from blklab.report.documents.causes import CausePart, cause_parts
from blklab.report.documents.conduct import NoisePart, StoppingPart, noise_parts, stopping_part
from blklab.report.documents.designs import DesignPart, design_parts
from blklab.report.documents.findings import (
    GoalPart,
    MachinePart,
    SteadinessPart,
    SweepPart,
    goal_part,
    machine_part,
    steadiness_parts,
    sweep_parts,
)
from blklab.report.documents.job_shares import JobSharesPart, job_shares_parts
from blklab.report.documents.parts import MeanPart, PairPart, Part
from blklab.report.documents.phases import ChangePart, ChangesPart, change_part, changes_part
from blklab.report.documents.processors import ProcessorPart, processor_parts
from blklab.report.sentences.answer import basis_text, choice_reason_text
from blklab.report.sentences.commands import command_sentence
from blklab.report.sentences.doubts import doubt_text
from blklab.report.sentences.first_place import first_place_text
from blklab.spec.targets import PathTarget

COMPARE_SCHEMA: Literal["blklab.compare/1"] = "blklab.compare/1"
RUN_SCHEMA: Literal["blklab.run/1"] = "blklab.run/1"


class ResultPart(MeanPart):
    """A scheduler's figure under a workload."""

    workload: str
    unit: str


class ComparisonPart(PairPart):
    """Two schedulers under a workload."""

    workload: str


class RegretPart(Part):
    """At most this much is lost by taking a scheduler; all three are None while nothing can be said."""

    label: str
    bound: float | None
    """The best one is better by at most this fraction."""
    against: str | None
    workload: str | None


class MoreRangePart(Part):
    """Blocks or rounds that an open question would take in addition, from the interval of the variance."""

    least: int
    most: int | None
    """None for more than ten times those that were run."""
    is_worth_it: bool
    """False if even the least is more than that."""


class MetricVerdictPart(Part):
    """The verdict of one workload and metric."""

    workload: str
    metric: str
    decides: bool
    control: bool
    status: Literal["best", "equal", "undecided"]
    best: list[str]
    candidates: list[str]
    text: str
    more_blocks: int | None
    more_range: MoreRangePart | None = None
    """The range of this estimate."""
    regret: list[RegretPart] = Field(default_factory=list)
    """Under this workload alone, while it is open and other workloads are judged too."""

    @classmethod
    def of_verdict(cls, found: MetricVerdict) -> MetricVerdictPart:
        """The verdict with its sentence."""
        return cls.of(found, text=first_place_text(found.place))


class RecommendationPart(Part):
    """The advice, or the finding: the same rule for reports, this document and `blklab apply`."""

    action: Action
    """`use` another scheduler than the one in force, `keep` that one, or `choose` where it was not compared
    (models, kernels); else `unknown`, `depends` on the work, or `withheld`."""
    reason: Reason
    subject: Subject
    scheduler: str | None
    in_force: str | None
    loss: float | None
    """At most this fraction is lost by following it; None if that is not known."""
    against: str | None
    limit: float
    """Losses up to this fraction are good enough."""

    @property
    def is_shown(self) -> bool:
        """Whether the scheduler is one to set, as `blklab.analysis.recommendation` has it."""
        return Recommendation(**dict(self)).is_shown


AnyVerdict = TypeVar("AnyVerdict", bound="VerdictPart")


class VerdictPart(Part):
    """The answer: `best` is empty while undecided or withheld; `candidates` are not ruled out."""

    status: Literal["best", "equal", "undecided", "withheld"]
    best: list[str]
    candidates: list[str]
    text: str
    more_blocks: int | None
    more_range: MoreRangePart | None = None
    """The range of this estimate."""
    choice: str | None
    """The one to take: the best; of several equals the default, else the cheaper in CPU; while undecided one
    that is good enough or better than the one in force."""
    choice_reason: str
    regret: list[RegretPart]
    """Schedulers in force first, then by their bounds, which hold together at the experiment's confidence."""

    @classmethod
    def of_verdict(cls: type[AnyVerdict], found: Verdict) -> AnyVerdict:
        """The verdict with its sentences."""
        return cls.of(
            found, text=basis_text(found.basis), choice_reason=choice_reason_text(found.choice_reason)
        )


class ExperimentVerdictPart(VerdictPart):
    """The answer of an experiment, with the advice that follows."""

    recommendation: RecommendationPart


class CompareDocument(Part):
    """The document that `blklab compare --json -` prints."""

    schema_: Literal["blklab.compare/1"] = Field(default=COMPARE_SCHEMA, alias="schema")
    run: str
    created_at: str
    state: Literal["running", "complete", "interrupted", "failed"]
    blklab_version: str
    target: str
    target_description: TargetDescription
    machine: MachineDescription
    schedulers: list[dict[str, Any]]
    workloads: list[dict[str, Any]]
    blocks: int
    """Complete blocks or rounds; if schedulers may leave early, those of the scheduler that ran longest."""
    stopping: StoppingPart
    designs: list[DesignPart] = Field(default_factory=list)
    """Of workloads for which slots were considered; empty where all have runs."""
    seed: int
    confidence: float
    margin: float
    results: list[ResultPart]
    comparisons: list[ComparisonPart]
    verdicts: list[MetricVerdictPart]
    verdict: ExperimentVerdictPart
    goal: GoalPart | None
    sweeps: list[SweepPart]
    during_runs: MachinePart | None
    """None in a simulation, where there is no machine to watch."""
    steadiness: list[SteadinessPart]
    """Empty where runs have no record over time."""
    noise: list[NoisePart]
    changes: ChangesPart | None = None
    """None if nothing changed while the load ran."""
    processors: list[ProcessorPart] = Field(default_factory=list)
    """Of models that run on a cost table; empty elsewhere."""
    jobs: list[JobSharesPart] = Field(default_factory=list)
    """Of workloads with two jobs or more."""
    causes: list[CausePart] = Field(default_factory=list)
    """Of the differences that are shown, where a run of both schedulers was observed."""
    warnings: list[str]
    """Of all that can make the answer wrong."""
    notes: list[str] = Field(default_factory=list)
    """On properties of the experiment, such as its virtual time."""
    failed_runs: list[dict[str, Any]]
    apply_command: str | None
    """Command that makes the recommended scheduler that of a real disk, also if it is in force; else None."""


class LatencyPart(Part):
    """Latencies in microseconds."""

    mean: float | None
    p50: float | None
    p99: float | None
    p99_9: float | None
    max: float | None


class DirectionPart(Part):
    """One direction of a job."""

    ios: int
    bytes: int
    iops: float
    bytes_per_second: float
    latency_us: LatencyPart


class CommandPart(Part):
    """A measured command, all of its processes together."""

    wall_seconds: float
    cpu_user_seconds: float | None
    cpu_system_seconds: float | None
    io_wait_seconds: float | None
    """Waits of its tasks for block I/O, added up; None if the kernel did not account them."""
    bytes_read: int | None
    bytes_written: int | None
    """None in a guest with a load beside the command, which cannot tell their I/O apart."""
    major_faults: int
    context_switches: int | None


class JobPart(Part):
    """One section of the job file, its clones merged; or a command.

    `read`, `write`, `sync` where they occurred.
    """

    name: str
    clones: int
    runtime_seconds: float
    ios: int
    bytes: int
    iops: float
    bytes_per_second: float
    latency_us: LatencyPart
    read: DirectionPart | None = None
    write: DirectionPart | None = None
    trim: DirectionPart | None = None
    sync: DirectionPart | None = None
    cpu_us_per_io: float | None = None
    command: CommandPart | None = None
    """None for a section of a job file. The I/O of a command is in here, not in the fields above."""


class RunPhasePart(Part):
    """A part of one run between planned changes; seconds from the start of the load."""

    from_seconds: float
    to_seconds: float
    jobs: list[JobPart]


class RunDocument(Part):
    """The document that `blklab run --json -` prints."""

    schema_: Literal["blklab.run/1"] = Field(default=RUN_SCHEMA, alias="schema")
    target: str
    scheduler: str
    tunables: dict[str, str]
    queue: dict[str, str]
    seed: int
    workload: str
    jobs: list[JobPart]
    settings: dict[str, str]
    engine: dict[str, Any]
    warnings: list[str]
    changes: list[ChangePart] = Field(default_factory=list)
    """Planned changes, as they came about."""
    phases: list[RunPhasePart] = Field(default_factory=list)
    """The parts between them; empty without changes."""


def compare_document(record: ExperimentRecord, analysis: Analysis) -> CompareDocument:
    """Puts an analysed experiment into the documented form."""
    whole, record = record, record.without_uncounted_slots()
    return CompareDocument(
        run=record.run_id,
        created_at=record.created_at,
        state=record.state,
        blklab_version=record.blklab_version,
        target=record.spec.target,
        target_description=record.target,
        machine=record.machine,
        schedulers=[choice.model_dump() for choice in record.spec.schedulers],
        workloads=[
            {
                "name": workload.name,
                "purpose": workload.purpose,
                "control": workload.control,
                "decide_by": workload.decide_by,
                "focus": workload.focus,
                "command": command_sentence(workload),
            }
            for workload in record.spec.workloads
        ],
        blocks=record.complete_blocks,
        stopping=stopping_part(record),
        designs=design_parts(whole),
        seed=record.spec.seed,
        confidence=record.spec.confidence,
        margin=record.spec.margin,
        results=[ResultPart.of(result) for result in analysis.results],
        comparisons=[ComparisonPart.of(comparison) for comparison in analysis.comparisons],
        verdicts=[MetricVerdictPart.of_verdict(verdict) for verdict in analysis.metric_verdicts],
        verdict=ExperimentVerdictPart.of_verdict(analysis.verdict),
        goal=goal_part(analysis.goal),
        sweeps=sweep_parts(analysis),
        during_runs=machine_part(analysis, record.samples),
        steadiness=steadiness_parts(analysis),
        noise=noise_parts(analysis.noise, record.spec.slots),
        changes=changes_part(record),
        processors=processor_parts(record),
        jobs=job_shares_parts(record),
        causes=cause_parts(causes_of(record, analysis)),
        warnings=[*split(record.warnings)[0], *map(doubt_text, analysis.verdict.doubts)],
        notes=split(record.warnings)[1],
        failed_runs=[
            {**sample.cell.model_dump(), "error": sample.error}
            for sample in record.samples
            if sample.status == "failed"
        ],
        apply_command=apply_command(record, analysis),
    )


def apply_command(record: ExperimentRecord, analysis: Analysis) -> str | None:
    """The command that applies the recommendation, where there is one and a disk to apply it to."""
    advised = analysis.verdict.recommendation
    on_disk = record.target.backend == "host" and isinstance(record.spec.parsed_target, PathTarget)
    if advised is None or not advised.is_shown or not on_disk:
        return None
    return f"blklab apply {record.run_id}"


def run_document(
    record_target: str, sample: RunSample, *, scheduler: str, tunables: dict[str, str], queue: dict[str, str]
) -> RunDocument:
    """Puts one run into the documented form."""
    return RunDocument(
        target=record_target,
        scheduler=scheduler,
        tunables=tunables,
        queue=queue,
        seed=sample.cell.seed,
        workload=sample.cell.workload,
        jobs=[job_part(job) for job in sample.jobs],
        settings=sample.settings,
        engine=sample.engine,
        warnings=[*sample.warnings, *_disturbances(sample)],
        changes=[change_part(change) for change in sample.changes],
        phases=[
            RunPhasePart(
                from_seconds=phase.from_ns / NS_PER_SECOND,
                to_seconds=phase.to_ns / NS_PER_SECOND,
                jobs=[job_part(job) for job in phase.jobs],
            )
            for phase in sample.phases
        ],
    )


def _disturbances(sample: RunSample) -> list[str]:
    """The disturbances of a single run, which has no others to be compared with."""
    events = sample.events
    if events is None:
        return []
    found = [] if events.trouble is None else [f"the kernel's log: {events.trouble}"]
    if events.overrun_ns:
        asked, took = format_duration(events.asked_ns or 0), format_duration(events.duration_ns)
        found.append(f"the load was to take {asked} and took {took}: something held the disk up")
    return found


def job_part(job: JobSample) -> JobPart:
    """A job's sample in the documented form."""
    data = job.data_directions()
    ios, moved = sum(entry.ios for entry in data), sum(entry.bytes for entry in data)
    cpu_ns = (
        None if job.cpu_user_ns is None or job.cpu_system_ns is None else job.cpu_user_ns + job.cpu_system_ns
    )
    return JobPart(
        name=job.name,
        clones=job.clones,
        runtime_seconds=job.runtime_ns / NS_PER_SECOND,
        ios=ios,
        bytes=moved,
        iops=_rate(ios, job.runtime_ns),
        bytes_per_second=_rate(moved, job.runtime_ns),
        latency_us=latency_part(LatencyHistogram.merged(entry.latency for entry in data)),
        cpu_us_per_io=None if cpu_ns is None or not ios else cpu_ns / ios / NS_PER_US,
        command=_command_part(job),
        **{entry.direction: _direction_part(entry) for entry in job.directions},
    )


def _command_part(job: JobSample) -> CommandPart | None:
    if job.command is None:
        return None

    def seconds(value_ns: int | None) -> float | None:
        return None if value_ns is None else value_ns / NS_PER_SECOND

    return CommandPart(
        wall_seconds=job.runtime_ns / NS_PER_SECOND,
        cpu_user_seconds=seconds(job.cpu_user_ns),
        cpu_system_seconds=seconds(job.cpu_system_ns),
        io_wait_seconds=seconds(job.command.io_delay_ns),
        bytes_read=job.command.read_bytes,
        bytes_written=job.command.written_bytes,
        major_faults=job.command.major_faults,
        context_switches=job.context_switches,
    )


def _direction_part(entry: DirectionSample) -> DirectionPart:
    return DirectionPart(
        ios=entry.ios,
        bytes=entry.bytes,
        iops=_rate(entry.ios, entry.runtime_ns),
        bytes_per_second=_rate(entry.bytes, entry.runtime_ns),
        latency_us=latency_part(entry.latency),
    )


def latency_part(latencies: LatencyHistogram) -> LatencyPart:
    """Mean, percentiles and maximum of a histogram."""

    def microseconds(value_ns: float | None) -> float | None:
        return None if value_ns is None else value_ns / NS_PER_US

    return LatencyPart(
        mean=microseconds(latencies.mean_ns),
        p50=microseconds(latencies.percentile_ns(0.5)),
        p99=microseconds(latencies.percentile_ns(0.99)),
        p99_9=microseconds(latencies.percentile_ns(0.999)),
        max=microseconds(latencies.max_ns if latencies.count else None),
    )


def _rate(count: int, runtime_ns: int) -> float:
    return count * NS_PER_SECOND / runtime_ns if runtime_ns else 0.0
