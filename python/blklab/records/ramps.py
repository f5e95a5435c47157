"""Jobs that ended before their ramp time was over, of which there is nothing to measure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from blklab.quantities.units import format_duration
from blklab.records.samples import JobSample
from blklab.spec.workloads import Job, Workload


@dataclass(frozen=True)
class EmptyJob:
    """A job of a run that did I/O within its ramp time only."""

    name: str
    ramp_time_ns: int

    @property
    def sentence(self) -> str:
        """The warning that a run carries, without a full stop."""
        return (
            f"job {self.name} ended within its ramp_time of {format_duration(self.ramp_time_ns)}, so nothing "
            "of it was measured; shorten ramp_time, or let it run longer (a larger size, or time_based with "
            "a runtime)"
        )


def ended_in_ramp(workload: Workload, samples: Sequence[JobSample]) -> list[str]:
    """A warning for each job of a run that did I/O within its ramp time only."""
    return [job.sentence for job in empty_jobs(workload, samples)]


def empty_jobs(workload: Workload, samples: Sequence[JobSample]) -> list[EmptyJob]:
    """The jobs of a run that did I/O within their ramp time only."""
    jobs: Iterable[tuple[Job, JobSample]] = zip(workload.jobs, samples, strict=False)
    return [
        EmptyJob(job.name, job.ramp_time_ns)
        for job, sample in jobs
        if job.ramp_time_ns > 0 and job.name == sample.name and _is_empty(sample)
    ]


def _is_empty(sample: JobSample) -> bool:
    """Whether no I/O was measured. fio then counts those of the ramp, of which it has no latencies."""
    return sample.command is None and not any(entry.latency.count for entry in sample.directions)
