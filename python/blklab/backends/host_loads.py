"""The loads of a session on this machine, by kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blklab.backends.host_commands import CommandLoad
from blklab.backends.host_fio import FioLoad, HdparmLoad
from blklab.backends.host_load import HostLoad, LoadContext
from blklab.backends.host_replays import ReplayLoad
from blklab.linux.load.fio import Fio
from blklab.linux.load.hdparm import Hdparm
from blklab.linux.scratch.command_space import loads_beside
from blklab.spec.loads import Load
from blklab.spec.permits import Beside, require
from blklab.spec.workloads import Workload


class HostLoads:
    """Finds for each workload what makes its load."""

    def __init__(self, context: LoadContext, fio: Fio, hdparm: Hdparm | None) -> None:
        self._context = context
        self.fio = FioLoad(context, fio)
        self._of_kind: dict[Load, HostLoad] = {
            Load.FIO: self.fio,
            Load.HDPARM: HdparmLoad(context, fio, hdparm),
            Load.COMMAND: CommandLoad(context, fio),
            Load.REPLAY: ReplayLoad(context),
        }

    def of(self, workload: Workload) -> HostLoad:
        """The maker of a workload's load."""
        return self._of_kind[workload.load]

    def by_kind(self, workloads: Sequence[Workload]) -> Iterator[tuple[HostLoad, list[Workload]]]:
        """The loads that are needed, each with its workloads."""
        for kind, load in self._of_kind.items():
            if own := [workload for workload in workloads if workload.load is kind]:
                yield load, own

    def check(self, workloads: Sequence[Workload]) -> list[str]:
        """Makes sure that all workloads can run here, also together.

        Returns:
            Warnings for the user.

        Raises:
            BlklabError: for the first thing that is missing or wrong.
        """
        device = self._context.space.device
        commands = [workload for workload in workloads if not workload.jobs]
        if device is not None and 0 < len(commands) < len(workloads):
            require(commands[0], "host", beside=Beside.JOBS_ON_DEVICE, device=device)
        return [warning for load, own in self.by_kind(workloads) for warning in load.check(own)]

    def with_jobs(self, workloads: Sequence[Workload]) -> list[Workload]:
        """All job files: the workloads themselves, and the loads beside commands."""
        return [*(workload for workload in workloads if workload.jobs), *loads_beside(workloads)]

    def on_space(self, workloads: Sequence[Workload]) -> list[Workload]:
        """The job files that work on scratch space itself: on a device, commands have a file system."""
        alone = self._context.space.folder is None
        return [workload for workload in workloads if workload.jobs] if alone else self.with_jobs(workloads)
