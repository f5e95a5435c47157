"""A btrfs over several loop devices: an array for machines without disks to spare."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from blklab.linux.disks.loop import create_over
from blklab.linux.processes.programs import run_program
from blklab.linux.scratch.data_files import LaidOutFiles, check_space, reserved
from blklab.linux.scratch.layout import JobRegions, files_in_directory, regions_in_directory
from blklab.linux.scratch.run_folder import PASSABLE, RunFolder
from blklab.linux.scratch.space import Announce
from blklab.quantities.units import format_bytes
from blklab.spec.workloads import Workload

if TYPE_CHECKING:
    from blklab.linux.disks.disk import Disk
    from blklab.linux.journal.journal import Journal
    from blklab.spec.targets import LoopTarget

FILESYSTEM = "btrfs"
MOUNT_OPTIONS = "noatime,nosuid,nodev"
MOUNT_NAME = "array"


class ScratchLoopArray:
    """Files on a btrfs over loop devices; the journal removes all of it."""

    read_only = False
    device = None

    def __init__(
        self, target: LoopTarget, directory: Path, run_folder: RunFolder, run_id: str, names: Sequence[str]
    ) -> None:
        self._member_bytes = target.size_bytes
        self._members = target.members
        self._profile = target.btrfs or ""
        self._directory = directory
        self._scratch = directory.resolve() / f".blklab-{run_id}"
        self._run_folder = run_folder
        self.mount_point = run_folder.path / MOUNT_NAME
        self.place = self.mount_point
        self.folder: Path = self.mount_point / "files"
        self._nodes = [f"/dev/{name}" for name in names]
        self._files = LaidOutFiles(self.folder)

    def create(self, journal: Journal) -> list[Disk]:
        """Creates scratch files, loop devices over them, and the mounted file system.

        Raises:
            SpaceError: if there is too little space.
            RequirementError: if loop devices, direct I/O or btrfs are unavailable.
            MissingToolError: if losetup or mkfs.btrfs is missing.
        """
        check_space(self._directory, self._member_bytes * self._members)
        held = journal.hold_directory(self._scratch)
        disks = []
        for backing in self._backing_files():
            with reserved(held.fileno(), backing, self._member_bytes) as descriptor:
                disks.append(create_over(journal, descriptor, backing))
        self._nodes = [str(disk.dev_path) for disk in disks]
        run_program(self._mkfs(), package="btrfs-progs")
        self._run_folder.ready()
        self.mount_point.mkdir(mode=0o700)
        journal.own_mount(self.mount_point)
        run_program(self._mount(), package="mount")
        self.folder.mkdir(mode=0o700)
        return disks

    def check(self, workloads: Sequence[Workload]) -> None:
        """Checks sizes, and free space once the file system exists."""
        if self.mount_point.is_dir():
            check_space(self.mount_point, sum(self._missing(workloads).values()))

    def prepare(self, workloads: Sequence[Workload], announce: Announce) -> None:
        """Lays out the files that all workloads share, as far as they are not there."""
        lengths = self._missing(workloads)
        if not lengths:
            return
        check_space(self.mount_point, sum(lengths.values()))
        announce(f"laying out {format_bytes(sum(lengths.values()))} of test files in {self.folder}")
        self._files.lay_out(lengths)

    def _missing(self, workloads: Sequence[Workload]) -> dict[str, int]:
        return self._files.missing(files_in_directory(workloads))

    def regions(self, workload: Workload) -> list[JobRegions]:
        """Regions in files on the array."""
        return regions_in_directory(workload)

    def commands(self, workloads: Sequence[Workload]) -> list[str]:
        """Creation of the devices, the file system and the files."""
        lines = [f"mkdir -m 700 {shlex.quote(str(self._scratch))}"]
        for node, backing in zip(self._nodes, self._backing_files(), strict=True):
            lines.append(f"fallocate -l {self._member_bytes} {shlex.quote(str(backing))}")
            lines.append(f"losetup --direct-io=on {node} {shlex.quote(str(backing))}")
        lines.append(shlex.join(self._mkfs()))
        folders = [str(self._run_folder.path), str(self.mount_point)]
        lines.append(shlex.join(["mkdir", "-m", "700", *folders]))
        lines.append(shlex.join(self._mount()))
        lines.append(f"mkdir -m 700 {shlex.quote(str(self.folder))}")
        for name, length in files_in_directory(workloads).items():
            lines.append(f"head -c {length} /dev/urandom > {shlex.quote(str(self.folder / name))}")
        return [*lines, f"sync -f {shlex.quote(str(self.folder))}"]

    def let_others_pass(self) -> None:
        """Lets other users pass through the directory."""
        self.folder.chmod(PASSABLE)

    def close(self) -> None:
        """Holds nothing; the journal removes it."""

    def _backing_files(self) -> list[Path]:
        return [self._scratch / f"member-{number}.img" for number in range(self._members)]

    def _mkfs(self) -> list[str]:
        return ["mkfs.btrfs", "-q", "-f", "-d", self._profile, "-m", self._profile, *self._nodes]

    def _mount(self) -> list[str]:
        options = ",".join([MOUNT_OPTIONS, *(f"device={node}" for node in self._nodes)])
        return ["mount", "-t", FILESYSTEM, "-o", options, self._nodes[0], str(self.mount_point)]
