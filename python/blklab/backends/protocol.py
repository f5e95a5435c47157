"""The interface of backends, which are the only code that touches a kernel or the simulator.

A backend opens a target as a session. The session runs cells. It is a context manager, and on exit restores
everything that it changed, whatever the cause.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from pydantic import ConfigDict, SkipValidation

from blklab.backends.workers import THIS_MACHINE, Workers
from blklab.linux.scratch.space import Announce
from blklab.records.samples import RunSample, TargetDescription
from blklab.spec.experiment import Conditions
from blklab.spec.plan import Cell
from blklab.spec.schedulers import SchedulerChoice
from blklab.spec.stretches import Stretch
from blklab.spec.targets import Target
from blklab.spec.workloads import Workload


class SessionOptions(Conditions):
    """Options of all runs of a session."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    run_id: str
    """Names journals, scratch directories and control groups, so that leftovers can be attributed."""
    kernels: tuple[str | None, ...] = ()
    """Guest kernels that runs will name, on backends with `GUESTS`; None is the backend's default kernel."""
    timeline_file: str | None = None
    """File for the run's timeline, on backends with `TIMELINES`."""
    workers: SkipValidation[Workers] = THIS_MACHINE
    """Run the simulations and guests of models."""
    dry_run: bool = False
    """Only `Session.target` and `Session.commands` will be used: nothing is locked, created or changed."""


class Session(Protocol):
    """An opened target."""

    @property
    def target(self) -> TargetDescription:
        """The target as found, before any change."""

    def tunable_defaults(self, choice: SchedulerChoice) -> Mapping[str, str] | None:
        """The tunables of a scheduler and the attributes of the queue on this target, with their defaults.

        Leaves no change behind. A dry run, which must not switch, may return None.

        Raises:
            BlklabError: if the target does not offer the scheduler.
        """

    def group_attributes(self) -> frozenset[str]:
        """Attributes of control groups that choices may set on this target, such as ``io.max``.

        Raises:
            RequirementError: if there are no control groups with the I/O controller.
        """

    @property
    def parallel(self) -> int:
        """How many runs may be under way at once without affecting each other's results; 1 on real disks.

        Up to that many threads may call `run` at the same time.
        """

    def check(self, choices: Sequence[SchedulerChoice], workloads: Sequence[Workload]) -> list[str]:
        """Makes sure that every scheduler, tunable, queue attribute and job will work.

        Leaves no change behind.

        Returns:
            Warnings for the user.

        Raises:
            BlklabError: for the first one that will not work.
        """

    def prepare(self, workloads: Sequence[Workload], announce: Announce) -> None:
        """Prepares once for all runs: lays out test files, checks free space."""

    def run(self, cell: Cell) -> RunSample:
        """Makes one run.

        If the load fails, the sample has the status ``failed``. An exception means that further runs are
        pointless (the device vanished, a setting failed).
        """

    def unswitchable(self, workload: Workload) -> str | None:
        """The reason why schedulers cannot take turns within this load, for people; None if they can."""

    def run_stretch(self, stretch: Stretch) -> list[RunSample]:
        """Runs one continuous load and switches the scheduler at the beginning of each slot.

        Returns:
            One sample per slot, in order, each with its `RunSample.slot`; all of them failed if the load
            failed.

        Raises:
            BlklabError: if further runs are pointless, as for `run`.
        """

    def stop(self) -> None:
        """Aborts the runs of other threads, and lets no new run begin."""

    def commands(self, cell: Cell) -> list[str]:
        """The steps of `run` as shell commands that a person can read and repeat; changes nothing."""

    def stretch_commands(self, stretch: Stretch) -> list[str]:
        """The steps of `run_stretch`, likewise."""


class Backend(Protocol):
    """A way to run experiments."""

    NAME: str
    TIMELINES: bool
    """Whether its sessions can record a timeline."""
    COMMANDS: bool
    """Whether it runs commands, which need this machine's programs."""
    GUESTS: bool
    """Whether it runs guest kernels, so that kernels can be named and `SessionOptions.guest` applies."""

    HISTORY: bool
    """Whether it offers schedulers of older kernels too, which are compared only if they are named."""
    SWITCHBACK: bool
    """Whether the design ``auto`` takes switchbacks: on machines whose speed wanders."""

    MODULES: bool
    """Whether ``SCHEDULER@NAME`` is a module of the running kernel instead of a guest kernel's scheduler."""

    def default_machine(self, options: Conditions, kernels: Sequence[str | None]) -> str | None:
        """The cost table of its runs unless another is named.

        Args:
            options: Of the runs.
            kernels: Guest kernels that runs will name; None is the backend's own.

        Returns:
            The table's name; None if computing takes the time that it takes, so that no table applies.
        """

    def describe(self, target: Target) -> TargetDescription:
        """Describes a target; changes nothing.

        Raises:
            BlklabError: if there is no such target.
        """

    def open(self, target: Target, options: SessionOptions) -> AbstractContextManager[Session]:
        """Opens a target for runs.

        Raises:
            BlklabError: if a requirement is not met (root, tools, a free device); then nothing has changed.
        """
