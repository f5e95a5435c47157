"""What a backend is: the only place that touches a kernel or the simulator.

A backend opens a target, giving a session; the session runs cells and, as a context manager, puts back
everything it changed, whatever happens in between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from blklab.linux.scratch.space import Announce
from blklab.records.samples import RunSample, TargetDescription
from blklab.spec.experiment import Conditions
from blklab.spec.plan import Cell
from blklab.spec.schedulers import SchedulerChoice
from blklab.spec.targets import Target
from blklab.spec.workloads import Workload


class SessionOptions(Conditions):
    """What holds for all runs of a session."""

    run_id: str
    """Names journals, scratch folders and control groups, so that leftovers can be told apart."""
    kernels: tuple[str | None, ...] = ()
    """Guest kernels that runs will name, on backends with `GUESTS`; None is the backend's own."""
    timeline_file: str | None = None
    """Where the run leaves its inside view, on backends that have one (`TIMELINES`)."""
    dry_run: bool = False
    """Only `Session.target` and `Session.commands` will be used: nothing is locked, created or changed."""


class Session(Protocol):
    """An opened target."""

    @property
    def target(self) -> TargetDescription:
        """What was found, before anything was changed."""

    def tunable_defaults(self, choice: SchedulerChoice) -> Mapping[str, str] | None:
        """The tunables of a scheduler on this target, as they are without being changed.

        Nothing stays changed. A dry run, which may not switch, may answer nothing.

        Raises:
            BlklabError: if the target does not offer the scheduler.
        """

    @property
    def parallel(self) -> int:
        """How many runs may go on at once without touching one another's results; 1 on real disks.

        Where it is more, `run` may be called from that many threads.
        """

    def check(self, choices: Sequence[SchedulerChoice], workloads: Sequence[Workload]) -> list[str]:
        """Makes sure that every scheduler, tunable, queue attribute and job will work.

        Returns:
            Warnings for the person.

        Raises:
            BlklabError: for the first thing that will not work. Nothing stays changed.
        """

    def prepare(self, workloads: Sequence[Workload], announce: Announce) -> None:
        """Does once what all runs need: lays out test files, checks space."""

    def run(self, cell: Cell) -> RunSample:
        """Makes one run.

        A load that fails gives a sample with status ``failed``. An exception means that going on is
        pointless (the device vanished, a setting could not be made).
        """

    def stop(self) -> None:
        """Breaks off runs that other threads have under way, and lets none begin."""

    def commands(self, cell: Cell) -> list[str]:
        """What `run` would do, as shell commands a person can read and repeat; nothing is changed."""


class Backend(Protocol):
    """A way to carry out experiments."""

    NAME: str
    TIMELINES: bool
    """Whether its sessions can leave a timeline."""
    GUESTS: bool
    """Whether its runs happen in a guest kernel: kernels can be named, and `SessionOptions.guest` counts."""

    def describe(self, target: Target) -> TargetDescription:
        """Finds out what a target is, without changing anything.

        Raises:
            BlklabError: if there is no such target.
        """

    def open(self, target: Target, options: SessionOptions) -> AbstractContextManager[Session]:
        """Opens a target for runs.

        Raises:
            BlklabError: if a requirement is not met (root, tools, a free device); nothing is changed then.
        """
