"""Jobs and processes that waited for one I/O for most of a run while others were served."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blklab.quantities.formatting import count_of
from blklab.records.samples import JobSample
from blklab.spec.workloads import Job, Workload

_ENOUGH_IOS = 50
"""I/Os for each process, in the mean. In a shorter run one that waits its turn may have done none either."""
_LONG_PART = 0.5
"""A process that waits for so much of the run for one I/O starves."""


_WAITED = "waited for one I/O for more than half of the run while others were served"
_UNSEEN = "mean and p99 barely show it, because that wait counts as one of many"


@dataclass(frozen=True)
class Starved:
    """Processes of a job that were not served."""

    job: str
    processes: int
    of: int
    """All of the job."""

    @property
    def subject(self) -> str:
        """The processes, in words."""
        if self.processes < self.of:
            return f"{self.processes} of {self.of} processes of job {self.job}"
        return f"job {self.job}" if self.of == 1 else f"all {self.of} processes of job {self.job}"


def starved(workload: Workload, samples: Sequence[JobSample]) -> list[Starved]:
    """The jobs of a run with processes that starved."""
    ios = sum(entry.ios for sample in samples for entry in sample.data_directions())
    if ios < _ENOUGH_IOS * sum(sample.clones for sample in samples):
        return []
    pairs = zip(workload.jobs, samples, strict=False)
    found = [
        Starved(job.name, min(_not_served(job, sample), sample.clones), sample.clones)
        for job, sample in pairs
        if job.name == sample.name and sample.command is None
    ]
    return [one for one in found if one.processes > 0]


def starvation_in(workload: Workload, samples: Sequence[JobSample]) -> list[str]:
    """A sentence on each of a run's."""
    return [f"{found.subject} {_WAITED}; {_UNSEEN}" for found in starved(workload, samples)]


def starvation_text(found: Starved, runs: int, of_runs: int, *, virtual_time: bool) -> str:
    """A sentence on several runs, which says what virtual time cannot show."""
    text = f"{found.subject} {_WAITED} in {runs} of {count_of(of_runs, 'run')}; {_UNSEEN}"
    if not virtual_time:
        return text
    return (
        f"{text}. In virtual time nothing disturbs the turns that leave it out; a real disk may serve it "
        "sooner"
    )


def _not_served(job: Job, sample: JobSample) -> int:
    """The I/Os for which a process waited for most of the run; all processes if there are no I/Os at all."""
    entries = sample.data_directions()
    if not any(entry.ios for entry in entries):
        return sample.clones if _wants_io_throughout(job) else 0
    long_ns = _LONG_PART * sample.runtime_ns
    bins = [entry.latency.bins for entry in entries if entry.latency.max_ns > long_ns]
    waits = sum(count for each in bins for value_ns, count in each.items() if value_ns > long_ns)
    return -(-waits // max(job.iodepth, 1))


def _wants_io_throughout(job: Job) -> bool:
    """Jobs that begin late, wait for others or may end within their ramp time do not."""
    may_end_in_ramp = job.ramp_time_ns > 0 and not job.time_based
    return not (may_end_in_ramp or job.startdelay_ns or job.stonewall or job.wait_for)
