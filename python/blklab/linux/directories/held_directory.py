"""A directory that blklab made and holds open, so that it stays the same one whatever is renamed around it.

The owner of the directory above may rename ours and put another one, or a symbolic link, in its place: for
root, a path there can lead anywhere at any moment. Nobody but root can write within ours, whose mode is 700.
So everything is done within the open directory, or below a bind mount of it that others cannot rename.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from blklab.errors import RefusedError, RequirementError, RestoreError, reason_of
from blklab.linux.directories.kernel_calls import (
    bind_mount,
    mount_id,
    open_without_links,
    unmount_once,
)
from blklab.linux.directories.mounts import Mount, read_mounts
from blklab.linux.directories.tree_removal import entries_of, remove_contents

_OPENED = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OTHERS = 0o077
_WITHOUT_OWNERS = ("vfat", "msdos", "exfat")
"""File systems that keep no owners, and that have neither links nor device nodes."""
_REMOVAL_ATTEMPTS = 1000
_PAUSE_SECONDS = 0.001
"""For a directory that is renamed all the time."""
_REMOVED = " (deleted)"
"""End of the path of an open file that has been removed (proc_pid_fd(5))."""


@dataclass(frozen=True)
class FileIdentity:
    """The identity of a file or directory as long as it exists."""

    device: int
    """``st_dev``; it may differ after a restart of the machine."""
    inode: int

    @staticmethod
    def of(status: os.stat_result) -> FileIdentity:
        """That of a file whose status was read."""
        return FileIdentity(status.st_dev, status.st_ino)

    @staticmethod
    def of_descriptor(descriptor: int) -> FileIdentity:
        """That of an open file."""
        return FileIdentity.of(os.fstat(descriptor))


class HeldDirectory:
    """An open directory of blklab's own."""

    def __init__(self, path: Path, descriptor: int) -> None:
        """Takes over an open directory.

        Args:
            path: Where it was made: for messages, as it may have been renamed since.
            descriptor: The directory.
        """
        self.path = path
        self._descriptor = descriptor
        self.identity = FileIdentity.of_descriptor(descriptor)

    @classmethod
    def make(cls, parent: int, path: Path) -> HeldDirectory:
        """Makes a directory of mode 700.

        Args:
            parent: The directory in which to make it, open.
            path: Its path; only the last component is used, but for messages.

        Raises:
            RefusedError: if it was replaced at once, or its file system gives it to another user.
            OSError: if it cannot be made.
        """
        os.mkdir(path.name, 0o700, dir_fd=parent)
        try:
            descriptor = os.open(path.name, _OPENED, dir_fd=parent)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                raise _replaced(path) from error
            raise
        try:
            made = cls(path, descriptor)
            made._check_new(parent)
        except BaseException:
            os.close(descriptor)
            raise
        return made

    def _check_new(self, parent: int) -> None:
        """Makes sure that it is as `make` has just made it, and not one that was put in its place."""
        status = os.fstat(self._descriptor)
        if mount_id(self._descriptor) != mount_id(parent) or entries_of(self._descriptor):
            raise _replaced(self.path)
        if status.st_uid == os.geteuid() and not status.st_mode & _OTHERS:
            return
        mount = mount_of_descriptor(self._descriptor)
        if mount is not None and mount.filesystem in _WITHOUT_OWNERS:
            return
        raise RefusedError(
            f"{self.path} belongs to user {status.st_uid} with mode {stat.S_IMODE(status.st_mode):o}, though"
            " blklab has just made it for itself alone: another user has replaced it, or the file system does"
            " not let root own files (NFS with root_squash, the mount option uid=)",
            hint="name a directory on a file system that keeps owners",
        )

    def fileno(self) -> int:
        """The descriptor."""
        return self._descriptor

    def chmod(self, mode: int) -> None:
        """Sets its mode."""
        os.fchmod(self._descriptor, mode)

    def bind_to(self, point: Path) -> None:
        """Mounts it at an empty directory that nobody else can rename: ``nosuid,nodev``.

        Raises:
            RequirementError: if the kernel refuses.
        """
        try:
            bind_mount(self._descriptor, point)
            mounted = FileIdentity.of(point.stat())
            if mounted != self.identity:
                unmount_once(point)
        except OSError as error:
            raise RequirementError(
                f"{self.path} cannot be mounted at {point}, out of reach of other users: {reason_of(error)}",
                hint="a container needs the permission to mount; /proc must be there",
            ) from error
        if mounted != self.identity:
            raise RefusedError(f"another directory than {self.path} would have been mounted at {point}")

    def remove(self) -> bool:
        """Removes it with everything in it, wherever in its parent it is now.

        Returns:
            Whether it was there.

        Raises:
            RestoreError: if a file system is mounted in it, or it cannot be removed.
            OSError: if the disk fails.
        """
        inside = self._mounts_inside()
        if inside:
            raise RestoreError(
                f"{self.path}: a file system is mounted there ({', '.join(inside)}); unmount it first"
            )
        remove_contents(self._descriptor, str(self.path))
        # Not by its path: the directory above may have been renamed too.
        parent = os.open("..", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._descriptor)
        try:
            if self._is_removed():
                return False
            for _ in range(_REMOVAL_ATTEMPTS):
                name = name_in(parent, self._name_now(), self.identity)
                try:
                    if name is not None:
                        os.rmdir(name, dir_fd=parent)
                except OSError as error:
                    if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST):
                        raise
                if self._is_removed():
                    return True
                time.sleep(_PAUSE_SECONDS)
        finally:
            os.close(parent)
        if self._name_now().endswith(_REMOVED):  # some network file systems keep the number of links
            return True
        raise RestoreError(f"{self.path} is renamed again and again; it is empty now: remove it yourself")

    def _name_now(self) -> str:
        """Its name, which the kernel knows even while it is being renamed."""
        try:
            return Path(f"/proc/self/fd/{self._descriptor}").readlink().name
        except OSError:
            return self.path.name

    def _is_removed(self) -> bool:
        return not os.fstat(self._descriptor).st_nlink

    def _mounts_inside(self) -> list[str]:
        try:
            now = Path(f"/proc/self/fd/{self._descriptor}").readlink()
        except OSError:
            return []
        return [
            mount.mount_point
            for mount in read_mounts(Path("/proc"))
            if now == Path(mount.mount_point) or now in Path(mount.mount_point).parents
        ]

    def close(self) -> None:
        """Lets it go; it stays where it is."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> HeldDirectory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def name_in(parent: int, expected: str, identity: FileIdentity) -> str | None:
    """The name that a file of this identity has in an open directory now; None if it is not there."""
    if _is(parent, expected, identity):
        return expected
    candidates = [entry.name for entry in entries_of(parent) if entry.inode == identity.inode]
    return next((name for name in candidates if _is(parent, name, identity)), None)


def _is(parent: int, name: str, identity: FileIdentity) -> bool:
    try:
        return FileIdentity.of(os.stat(name, dir_fd=parent, follow_symlinks=False)) == identity
    except FileNotFoundError:
        return False


def mount_of_descriptor(descriptor: int) -> Mount | None:
    """The mount that an open file is on; None if procfs does not tell."""
    number = mount_id(descriptor)
    return next((mount for mount in read_mounts(Path("/proc")) if mount.mount_id == number), None)


def open_parent(path: Path) -> int:
    """Opens the directory of a path that was resolved before, without following links.

    Raises:
        OSError: if it is not there, or a component has become a symbolic link.
    """
    return open_without_links(path.parent)


def _replaced(path: Path) -> RefusedError:
    return RefusedError(
        f"{path} was replaced as soon as blklab had made it: another user renames in {path.parent}, where an"
        " empty directory of root's may be left",
        hint="name a directory in which only root may rename",
    )
