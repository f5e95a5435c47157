"""Replays of recordings on the host: the program's own time, its request, its runs."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from blklab.errors import BlklabError
from blklab.linux.disks.disk import Disk
from blklab.linux.load.fio_output import FioReport
from blklab.linux.load.replay import (
    REQUEST_FILE,
    OwnPaths,
    find_replay_program,
    replay_request,
    run_replay,
)
from blklab.linux.load.replay_path import measured_own_paths
from blklab.linux.queue.hardware import segment_limits
from blklab.linux.scratch.space import Announce, ScratchSpace
from blklab.spec.workloads import Workload

GroupFiles = Callable[[Workload], Mapping[str, str]]


class HostReplays:
    """The replays of one session."""

    def __init__(self, space: ScratchSpace, leaves: Sequence[Disk], group_files: GroupFiles) -> None:
        """Changes nothing.

        Args:
            space: Where they work.
            leaves: The disks beneath.
            group_files: For a load, the file of each control group that takes processes.
        """
        self._space = space
        self._leaves = leaves
        self._group_files = group_files
        self._own_paths: OwnPaths | None = None
        """Zeros if they cannot be measured; None before."""

    def prepare(self, workload: Workload, folder: Path, announce: Announce) -> None:
        """Measures once what replays take themselves between a completion and the next I/O.

        Args:
            workload: Laid out; its files are overwritten if it writes.
            folder: The working directory.
            announce: Is told the result.
        """
        if self._own_paths is not None:
            return
        of_jobs = zip(workload.jobs, self._space.regions(workload), strict=True)
        job, (region, *_) = max(of_jobs, key=lambda of_job: of_job[0].writes)
        try:
            self._own_paths = measured_own_paths(
                find_replay_program(),
                region,
                self._leaves,
                folder,
                data=self._space.folder,
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

    def run(self, workload: Workload, folder: Path) -> tuple[FioReport, dict[str, str]]:
        """Replays in a working directory; returns the report, and the program's name."""
        program = find_replay_program()
        report = run_replay(program, self._request(workload), folder)
        engine = {"name": "blkguest replay", "version": program.version}
        if self._own_paths not in (None, OwnPaths()):
            engine["own_path"] = str(self._own_paths)
        return report, engine

    def commands(self, workload: Workload, folder: Path) -> list[str]:
        """The steps of `run` as shell commands."""
        return [
            f"cat > {REQUEST_FILE} <<'END'\n{self._request(workload)}\nEND",
            shlex.join(find_replay_program().command(folder)),
        ]

    def _request(self, workload: Workload) -> str:
        return replay_request(
            workload,
            self._space.regions(workload),
            folder=self._space.folder,
            group_files=self._group_files(workload),
            own_paths=self._own_paths or OwnPaths(),
            segment_limits=segment_limits(leaf.name for leaf in self._leaves),
        )
