"""The loads, designs and backends that go together, and the reason for each combination that is refused.

All refusals come from `RULES`, and from `STEADY`, which says under which jobs schedulers can take turns. The
table in the docs and `blklab doctor --matrix` show them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from blklab.errors import BlklabError, JobFileError, RefusedError, SpecError, UsageError
from blklab.spec.loads import Load, TurnDesign
from blklab.spec.schedulers import SchedulerChoice
from blklab.spec.workloads import Job, Workload

if TYPE_CHECKING:
    from blklab.spec.experiment import Conditions

_FIO_IN_GUESTS = "uml with fio"
COLUMNS = ("host", "sim", "uml", _FIO_IN_GUESTS)
"""The backends, and guests in which fio makes the load (``--generator fio``)."""
FIO, HDPARM, COMMAND, REPLAY = ANY_LOAD = tuple(Load)
RUNS, SWITCHBACK, CHANGES = ANY_DESIGN = tuple(TurnDesign)
_NO = ("", "0", "none")
_ADAPTIVE_CONTROLLERS = ("io.cost", "io.latency", "ioband.")


class Beside(Enum):
    """A circumstance that makes a combination impossible."""

    PRECONDITION = "with --precondition"
    HOST_MANAGED = "on a host-managed zoned disk"
    JOBS_ON_DEVICE = "with job files on the same block device"
    ANOTHER_JOB = "with a section that replays nothing"
    A_COMMAND = "beside a command (--beside)"


@dataclass(frozen=True)
class Refused:
    """A combination that is refused."""

    reason: str
    """The message, with fields such as ``{workload}``."""
    loads: Sequence[Load] = ANY_LOAD
    designs: Sequence[TurnDesign] = ANY_DESIGN
    columns: Sequence[str] = COLUMNS
    hint: str | None = None
    beside: Beside | None = None
    raised: Callable[..., BlklabError] = UsageError

    def error(self, workload: Workload, *, line: int | None = None, **fields: object) -> BlklabError:
        """The error for a workload; a message may have fields of its own."""
        text = self.reason.format(workload=workload.name, tool=workload.tool, **fields)
        place = {"source": workload.source, "line": line} if self.raised is JobFileError else {}
        return self.raised(text, hint=self.hint, **place)


_UNCHANGED = "{workload}: settings cannot change while it runs: "
_OWN = "makes its own load, which starts anew each time"
_TAKE = "take a job file"
SLOTS_UNLIKE = "settings change while its load runs, so that its slots would not be alike"
"""Why a workload whose design is open has runs if changes are planned."""
SWITCHBACK_WITH_CHANGES = (
    "the design switchback compares slots of one load, and changes would make the slots before "
    "and after them unlike: take the design runs"
)
"""Why an experiment cannot have both."""

RULES = (
    Refused(
        "{workload} is a command, and {target} has none of this machine's programs",
        (COMMAND,),
        columns=("sim",),
        hint="`blklab compare` runs it on a directory, a block device, loop:4g, or uml:DEVICE, which copies "
        "programs",
    ),
    Refused(
        "{workload} is a command, and fio makes the load only of job files",
        (COMMAND,),
        columns=(_FIO_IN_GUESTS,),
        hint="leave out --generator fio: blklab's own generator makes the load beside a command",
    ),
    Refused(
        "fio cannot replay a recording with what its I/Os wait for",
        (REPLAY,),
        columns=(_FIO_IN_GUESTS,),
        hint="leave out --generator fio: blklab's own generator replays it",
        raised=JobFileError,
    ),
    Refused(f"a command {_OWN}", (COMMAND,), (SWITCHBACK,)),
    Refused(f"{{tool}} {_OWN}", (HDPARM,), (SWITCHBACK,)),
    Refused("it replays a recording from its beginning to its end", (REPLAY,), (SWITCHBACK,)),
    Refused("fio in a guest does not record its I/O by slot", ANY_LOAD, (SWITCHBACK,), (_FIO_IN_GUESTS,)),
    Refused(
        f"{_UNCHANGED}a command makes its own load, whose start and processes blklab does not see",
        (COMMAND,),
        (CHANGES,),
        hint=_TAKE,
    ),
    Refused(
        f"{_UNCHANGED}{{tool}} may make the load itself, for a time of its own",
        (HDPARM,),
        (CHANGES,),
        hint=_TAKE,
    ),
    Refused(
        f"{_UNCHANGED}a recording replays what its programs did under one setting",
        (REPLAY,),
        (CHANGES,),
        hint=_TAKE,
    ),
    Refused(
        "changes in a guest come beneath its own load, not beneath fio",
        ANY_LOAD,
        (CHANGES,),
        (_FIO_IN_GUESTS,),
        hint="leave out --generator fio",
    ),
    Refused(
        "precondition overwrites the files of jobs, and {workload} is a command",
        (COMMAND,),
        columns=("host",),
        hint="leave it out",
        beside=Beside.PRECONDITION,
    ),
    Refused(
        "{workload}: {device} is a host-managed zoned disk: it takes writes only at its zones' "
        "write pointers",
        (COMMAND, REPLAY),
        columns=("host",),
        hint="test it with jobs that have zonemode=zbd, or through a directory on a file system for zoned "
        "disks (btrfs, f2fs, xfs)",
        beside=Beside.HOST_MANAGED,
        raised=RefusedError,
    ),
    Refused(
        "job files work on the blocks of {device}, and commands on a file system there",
        (COMMAND,),
        columns=("host",),
        hint="compare them one after the other, or on a directory",
        beside=Beside.JOBS_ON_DEVICE,
    ),
    Refused(
        "section [{job}] replays nothing: on a host, fio's jobs cannot run beside a replay",
        (REPLAY,),
        columns=("host",),
        hint="the simulator and guests run both: sim:, uml:",
        beside=Beside.ANOTHER_JOB,
        raised=JobFileError,
    ),
    Refused(
        "beside takes a job file, and {name} is a command",
        (COMMAND,),
        beside=Beside.A_COMMAND,
        raised=SpecError,
    ),
    Refused(
        "beside takes a job file, and {name} is a recording, which ends by itself",
        (REPLAY,),
        hint="give a job file or a shipped workload that does the same kind of I/O",
        beside=Beside.A_COMMAND,
        raised=SpecError,
    ),
)
"""The first one that applies is the reason."""

_OF_CHOICES: Sequence[tuple[str, Sequence[str], Callable[[SchedulerChoice], object]]] = (
    ("models change attributes of the queue only between runs", COLUMNS[1:], lambda one: one.queue),
    (
        "settings of control groups change between runs only: io.cost and limits need time to settle",
        COLUMNS,
        lambda one: one.of_groups,
    ),
    (
        "settings of writeback change between runs only: data that is dirty stays so for seconds",
        COLUMNS,
        lambda one: one.of_writeback,
    ),
)
"""Settings that a scheduler must not bring if it is to take turns within a load, and where."""

STEADY: Sequence[tuple[str, Callable[[Job], object]]] = (
    ("waits for the jobs before it (stonewall)", lambda job: job.stonewall),
    ("waits for the job {job.wait_for} (wait_for)", lambda job: job.wait_for is not None),
    ("starts later than the load (startdelay)", lambda job: job.startdelay_ns),
    ("ends after a number of bytes or I/Os (it is not time_based)", lambda job: not job.time_based),
    ("syncs ({synced}), and a sync waits for writes of the slots before", lambda job: any(_synced(job))),
    ("uses the page cache, which keeps what earlier slots have read and written", lambda job: not job.direct),
    ("reads back what it has written in slots before (verify)", lambda job: job.verifies),
    (
        "adapts its depth to the latency (latency_target)",
        lambda job: job.options.get("latency_target", "") not in _NO,
    ),
)
"""Properties of jobs that keep schedulers from taking turns: the load differs from slot to slot."""


def rule_for(
    load: Load, column: str, design: TurnDesign = RUNS, *, beside: Beside | None = None
) -> Refused | None:
    """The rule that refuses a combination; None if there is none."""
    for rule in RULES:
        # A backend of another package has no column: what holds for all of them holds for it, too.
        known = column in rule.columns or rule.columns is COLUMNS
        if load in rule.loads and design in rule.designs and known and rule.beside in (None, beside):
            return rule
    return None


def column_of(backend: str, conditions: Conditions) -> str:
    """The column of a backend's runs."""
    return _FIO_IN_GUESTS if backend == "uml" and conditions.guest.generator == "fio" else backend


def require(
    workload: Workload,
    column: str,
    *,
    design: TurnDesign = RUNS,
    beside: Beside | None = None,
    line: int | None = None,
    **fields: object,
) -> None:
    """Makes sure that a combination is possible; a line of the job file and fields go into the message.

    Raises:
        BlklabError: of the kind that the rule names.
    """
    if rule := rule_for(workload.load, column, design, beside=beside):
        raise rule.error(workload, line=line, **fields)


def require_runs(backend: str, conditions: Conditions, workloads: Sequence[Workload], target: str) -> None:
    """Makes sure that a backend can run all workloads, with the planned changes if there are any.

    Raises:
        BlklabError: for the first one that it cannot, with the reason.
    """
    column = column_of(backend, conditions)
    for workload in workloads:
        require(workload, column, target=target)
        if conditions.changes:
            require(workload, column, design=CHANGES)


def why_not_switched(
    workload: Workload, backend: str, conditions: Conditions, choices: Sequence[SchedulerChoice] = ()
) -> str | None:
    """The reason why schedulers cannot take turns within a load, as one line; None if they can.

    Args:
        workload: The load.
        backend: Runs it.
        conditions: Of the experiment: the runtime of time-based jobs, and settings of control groups.
        choices: The schedulers.
    """
    column = column_of(backend, conditions)
    rule = rule_for(workload.load, column, SWITCHBACK)
    if rule is not None:
        return rule.error(workload).message
    for reason, columns, brings in _OF_CHOICES:
        if column in columns and any(brings(choice) for choice in choices):
            return reason
    return next(_unsteady(workload, conditions), None)


def _unsteady(workload: Workload, conditions: Conditions) -> Iterator[str]:
    if conditions.changes:
        yield SLOTS_UNLIKE
    if workload.decide_by.startswith("sync_latency"):
        yield "it is decided by the latency of syncs, which wait for writes of the slots before"
    for job in workload.jobs:
        for reason, holds in STEADY:
            if holds(job):
                yield f"job {job.name} {reason.format(job=job, synced=', '.join(_synced(job)))}"
    if conditions.runtime_ns is None and len({job.runtime_ns for job in workload.jobs}) > 1:
        yield "its jobs have different runtimes, so the load changes when one ends"
    for group, settings in conditions.cgroups.items():
        for name in settings:
            if name.startswith(_ADAPTIVE_CONTROLLERS):
                yield f"{name} of {group} adapts over seconds, whichever scheduler is in force"


def _synced(job: Job) -> list[str]:
    return [option for option in ("fsync", "fdatasync", "sync") if job.options.get(option, "") not in _NO]
