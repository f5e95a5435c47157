"""A btrfs over several loop devices: an array for machines without disks to spare."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from blklab.linux.machine.host_change import HostChange, ProgramRun, shell_of
from blklab.linux.scratch.changes import HeldFolder, LaidOutFiles, LoopOverFile, OwnMount, PlainFolder
from blklab.linux.scratch.data_files import check_space
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
        folder, loops = self._devices(journal)
        for change in (folder, *loops):
            change.make()
        disks = [loop.disk for loop in loops]
        self._nodes = [str(disk.dev_path) for disk in disks]
        self._mkfs.make()
        self._run_folder.ready()
        for change in self._filesystem(journal):
            change.make()
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
        folder, loops = self._devices(None)
        changes: list[HostChange] = [
            folder,
            *loops,
            self._mkfs,
            self._run_folder.change,
            *self._filesystem(None),
        ]
        return [*shell_of(changes), *self._files.commands(files_in_directory(workloads))]

    def let_others_pass(self) -> None:
        """Lets other users pass through the directory."""
        self.folder.chmod(PASSABLE)

    def close(self) -> None:
        """Holds nothing; the journal removes it."""

    def _devices(self, journal: Journal | None) -> tuple[HeldFolder, list[LoopOverFile]]:
        folder = HeldFolder(self._scratch, journal)
        files = [self._scratch / f"member-{number}.img" for number in range(self._members)]
        return folder, [
            LoopOverFile(file, self._member_bytes, folder.opened, journal, node)
            for file, node in zip(files, self._nodes, strict=True)
        ]

    @property
    def _mkfs(self) -> ProgramRun:
        words = ("mkfs.btrfs", "-q", "-f", "-d", self._profile, "-m", self._profile, *self._nodes)
        return ProgramRun(words, "btrfs-progs")

    def _filesystem(self, journal: Journal | None) -> list[HostChange]:
        mount = OwnMount(ProgramRun(tuple(self._mount()), "mount"), self.mount_point, journal)
        return [PlainFolder(self.mount_point), mount, PlainFolder(self.folder)]

    def _mount(self) -> list[str]:
        options = ",".join([MOUNT_OPTIONS, *(f"device={node}" for node in self._nodes)])
        return ["mount", "-t", FILESYSTEM, "-o", options, self._nodes[0], str(self.mount_point)]
