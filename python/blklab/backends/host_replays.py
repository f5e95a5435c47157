"""Replays of recordings on this machine: the program's own time, its request, its runs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from blklab.backends.host_changes import HostChanges
from blklab.backends.host_load import JobLoad, LoadContext, Measured
from blklab.errors import BlklabError
from blklab.linux.journal.journal import Journal
from blklab.linux.load.replay import (
    REQUEST_FILE,
    OwnPaths,
    check_replay,
    find_replay_program,
    replay_request,
    run_replay,
)
from blklab.linux.load.replay_path import measured_own_paths
from blklab.linux.queue.hardware import segment_limits
from blklab.linux.scratch.space import Announce
from blklab.spec.plan import Cell
from blklab.spec.workloads import Workload


class ReplayLoad(JobLoad):
    """The replays of one session."""

    def __init__(self, context: LoadContext) -> None:
        super().__init__(context)
        self._own_paths: OwnPaths | None = None
        """Zeros if they cannot be measured; None before."""

    def check(self, workloads: Sequence[Workload]) -> list[str]:
        """Looks for the program, and for sections that do not replay."""
        for workload in workloads:
            check_replay(workload)
        return []

    def prepare(self, workloads: Sequence[Workload], journal: Journal, announce: Announce) -> None:  # noqa: ARG002 - for others
        """Measures once what replays take themselves between a completion and the next I/O.

        The first one's files are overwritten if it writes.
        """
        if self._own_paths is not None:
            return
        workload, space = workloads[0], self._context.space
        of_jobs = zip(workload.jobs, space.regions(workload), strict=True)
        job, (region, *_) = max(of_jobs, key=lambda of_job: of_job[0].writes)
        try:
            self._own_paths = measured_own_paths(
                find_replay_program(),
                region,
                self._context.leaves,
                self._context.run_folder.ready(),
                data=space.folder,
                writes=job.writes,
                home=max(workload.jobs, key=lambda job: job.replayed_ios or 0).replayed_home,
            )
        except BlklabError as error:
            self._own_paths = OwnPaths()
            announce(
                "recorded think times are kept whole, so a replay of short ones is slower than the program: "
                f"its own time from I/O to I/O is not known ({error.message})"
            )
        else:
            announce(
                f"recorded think times are cut by a replay's own time from I/O to I/O: {self._own_paths}"
            )

    def _make(self, cell: Cell, folder: Path, changes: HostChanges | None) -> Measured:  # noqa: ARG002 - refused
        program = find_replay_program()
        report = run_replay(program, self._request(cell.workload), folder)
        engine = {"name": "blkguest replay", "version": program.version}
        if self._own_paths not in (None, OwnPaths()):
            engine["own_path"] = str(self._own_paths)
        return report, engine

    def commands(self, cell: Cell, changes: HostChanges | None) -> list[str]:  # noqa: ARG002 - refused
        """The request, and the program."""
        return [
            f"cat > {REQUEST_FILE} <<'END'\n{self._request(cell.workload)}\nEND",
            shlex.join(find_replay_program().command(self._context.run_folder.path)),
        ]

    def _request(self, workload: Workload) -> str:
        return replay_request(
            workload,
            self._context.space.regions(workload),
            folder=self._context.space.folder,
            group_files=self._context.groups.files(workload),
            own_paths=self._own_paths or OwnPaths(),
            segment_limits=segment_limits(leaf.name for leaf in self._context.leaves),
        )
