"""Samples of runs: counts, times and latency histograms, with their provenance.

All later stages (metrics, statistics, verdict, report) work from these records alone, so a stored run can be
analysed again at any time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from blklab.records.machine_events import MachineEvents
from blklab.records.sharing import share_bins, share_engine, share_names, share_settings
from blklab.spec.plan import CellKey

Direction = Literal["read", "write", "trim", "sync"]

HOST = "host"
"""Key of `MachineDescription.details` under which a machine's name is."""


class _Record(BaseModel):
    """A part of a sample. An experiment may have tens of thousands, so equal parts share their memory."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def model_post_init(self, context: Any, /) -> None:  # noqa: ARG002 - pydantic's
        """Shares the names of the given fields, which take more memory than their values."""
        object.__setattr__(self, "__pydantic_fields_set__", share_names(self.__pydantic_fields_set__))


class LatencyHistogram(_Record):
    """Latencies of one kind of I/O of one job, from submission call to completion.

    `bins` maps the representative value of a bin (ns) to its count; the bins are fio's log-linear ones
    (64 to a power of two, below 1 % wide), so histograms of jobs, runs and backends add up bin by bin.
    Percentiles are never averaged.
    """

    count: int = 0
    sum_ns: float = 0
    min_ns: int = 0
    max_ns: int = 0
    bins: Annotated[dict[int, int], AfterValidator(share_bins)] = Field({}, repr=False)

    @staticmethod
    def merged(histograms: Iterable[LatencyHistogram]) -> LatencyHistogram:
        """Adds histograms bin by bin."""
        present = [histogram for histogram in histograms if histogram.count]
        bins: Annotated[dict[int, int], AfterValidator(share_bins)] = {}
        for histogram in present:
            for value_ns, count in histogram.bins.items():
                bins[value_ns] = bins.get(value_ns, 0) + count
        return LatencyHistogram(
            count=sum(histogram.count for histogram in present),
            sum_ns=sum(histogram.sum_ns for histogram in present),
            min_ns=min((histogram.min_ns for histogram in present), default=0),
            max_ns=max((histogram.max_ns for histogram in present), default=0),
            bins=dict(sorted(bins.items())),
        )

    @property
    def mean_ns(self) -> float | None:
        """Mean latency, exact (not from bins); None if there was no I/O."""
        return self.sum_ns / self.count if self.count else None

    def percentile_ns(self, fraction: float) -> float | None:
        """The smallest latency that at least `fraction` (0 to 1) of the I/Os did not exceed.

        Exact to the width of a bin, and never outside the observed minimum and maximum; None if there was
        no I/O.
        """
        total = sum(self.bins.values())
        if not total:
            return None
        wanted = fraction * total
        seen = 0
        for value_ns, count in sorted(self.bins.items()):
            seen += count
            if seen >= wanted:
                return float(min(max(value_ns, self.min_ns), self.max_ns))
        return float(self.max_ns)


class DirectionSample(_Record):
    """The I/O of one job in one direction. `sync` counts fsync and fdatasync calls."""

    direction: Direction
    ios: int
    bytes: int
    runtime_ns: int
    """Length of the measured part (ramp time excluded)."""
    latency: LatencyHistogram


class RateWindows(_Record):
    """The speed of a job over its run: bytes per second in consecutive windows of equal length.

    Clones and directions are summed. The first window begins with the job's measured part; a last, shorter
    window is left out.
    """

    window_ns: int
    bytes_per_second: list[float]


class CommandSample(_Record):
    """One execution of a command, beside its times, which `JobSample` has: all of its processes together."""

    read_bytes: int | None
    """Bytes that its processes had fetched from disks (``ru_inblock``, getrusage(2)); in a guest, bytes that
    the disk read meanwhile. None in a guest with a load beside it."""
    written_bytes: int | None
    """Bytes that its processes dirtied in the page cache or wrote directly (``ru_oublock``). The kernel may
    write them after the command has ended. In a guest, bytes that the disk wrote meanwhile; None there with
    a load beside it."""
    major_faults: int
    """Page faults that needed a disk."""
    io_delay_ns: int | None = None
    """Time that its tasks waited for block I/O, added up (delay accounting, taskstats); None if the kernel
    does not account it."""


class JobSample(_Record):
    """One section of the job file, its clones (`numjobs`) merged into it; or a command."""

    name: str
    clones: int
    runtime_ns: int
    """The longest of the clones' measured parts."""
    directions: list[DirectionSample]
    cpu_user_ns: int | None = None
    cpu_system_ns: int | None = None
    """CPU time of the load's own tasks, summed over the clones; None if the backend does not account it."""
    context_switches: int | None = None
    clone_bytes: list[int] | None = None
    """Bytes that each clone moved; None if the backend does not distinguish clones."""
    promised_weight: float | None = None
    """The weight with which the clones competed (`blklab.experiment.entitlement`); None if undefined."""
    rates: RateWindows | None = None
    """None if the backend does not record it."""
    command: CommandSample | None = None
    """None for a section of a job file. A command has no directions, and its `runtime_ns` is the time from
    its start to its end."""

    def data_directions(self) -> list[DirectionSample]:
        """Directions that move data: all but `sync`."""
        return [entry for entry in self.directions if entry.direction != "sync"]


class SlotSample(_Record):
    """The part of a switchback that a sample was taken from. Times count from the stretch's first switch."""

    stretch: int
    """Number of the stretch, counted for each workload."""
    start_ns: int
    end_ns: int
    switch_ns: int
    """Time that setting the scheduler and its tunables took."""
    kept_from_ns: int
    kept_to_ns: int
    """The part that `RunSample.jobs` describes: settling is cut off."""
    window_ns: int
    ios: list[float]
    """I/Os of the jobs in the workload's focus, by windows from the beginning of the slot to its end."""
    long: bool = False
    """Whether the slot only shows how its scheduler does when left alone; no value rests on it."""


class ChangeSample(_Record):
    """A planned change as it came about. Times count from the start of the load."""

    change: str
    """In the grammar of `blklab.spec.changes`."""
    planned_ns: int
    begun_ns: int
    made_ns: int
    """When it was in force."""


class PhaseSample(_Record):
    """A part of a run between two planned changes. Times count from the start of the load."""

    from_ns: int
    to_ns: int
    jobs: list[JobSample]
    window_ns: int
    ios: list[float]
    """I/Os of the jobs in the workload's focus, by windows from `from_ns` on."""


SLOW_SWITCH = "the switch took nearly the whole slot"
"""The error of a slot that a busy machine left no time for; no figure is wrong by it."""


class RunSample(_Record):
    """One run: one scheduler under one workload, once; in a switchback one slot."""

    cell: CellKey
    status: Literal["ok", "failed"]
    error: str | None = None
    started_at: str
    """ISO 8601, UTC."""
    elapsed_ns: int
    """Real time the run took, set-up included."""
    jobs: list[JobSample]
    settings: Annotated[dict[str, str], AfterValidator(share_settings)] = {}
    """Settings in force, as read back: ``vda/scheduler``, ``vda/iosched/fifo_batch`` …"""
    engine: Annotated[dict[str, Any], AfterValidator(share_engine)] = {}
    """Name, version and counters of the load generator or simulator."""
    warnings: list[str] = []
    events: MachineEvents | None = None
    """Events on the machine during the run; None without a machine to watch."""
    slot: SlotSample | None = None
    """None for a run of its own."""
    changes: list[ChangeSample] = []
    """Planned changes, in their order."""
    phases: list[PhaseSample] = []
    """The parts between them; empty for a run without changes."""

    @property
    def is_long_slot(self) -> bool:
        """Whether it is a slot that only shows how its scheduler does when left alone."""
        return self.slot is not None and self.slot.long


class DiskDescription(_Record):
    """A disk as found, before any change."""

    name: str
    model: str = ""
    size_bytes: int = 0
    rotational: bool | None = None
    scheduler: str | None = None
    schedulers: list[str] = []
    queue: dict[str, str] = {}
    """Queue attributes and the active scheduler's tunables (``iosched/…``)."""
    identity: str = ""
    """Digest of the drive's world-wide name or serial number: tells drives of a model apart without naming
    them. Empty if the drive reports neither."""
    zoned: str = ""
    """``host-managed`` or ``host-aware``; empty for a disk without zones."""


class TargetDescription(_Record):
    """The target of an experiment."""

    target: str
    """The target as it was named, in the grammar of `blklab.spec.targets`."""
    backend: str
    summary: str
    """One line for people."""
    disks: list[DiskDescription]
    default_scheduler: str | None = None
    """The scheduler in force before the experiment."""
    schedulers: list[str] = []
    """Schedulers that every disk of the target offers."""
    details: dict[str, str] = {}
    """File system, mount options, stack of devices, parameters of a model …"""


class MachineDescription(_Record):
    """The machine that the experiment ran on."""

    kernel: str
    cpu: str
    cpus: int
    memory_bytes: int
    details: dict[str, str] = {}

    @property
    def host(self) -> str:
        """The machine's name; empty if it is not known."""
        return self.details.get(HOST, "")
