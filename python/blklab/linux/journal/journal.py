"""The journal of a run: each change is recorded before it is made, and undone when the run ends.

Each run has one file in the state directory and holds a lock on it while its process lives. An unlocked file
belongs to a run that was killed; `blklab.linux.journal.recovery` undoes it.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from blklab.errors import InterruptedRunError, RequirementError, RestoreError, UsageError, reason_of
from blklab.linux.directories.held_directory import HeldDirectory, open_parent
from blklab.linux.disks.disk import Disk
from blklab.linux.disks.loop import BackingFile
from blklab.linux.disks.partitions import Partition
from blklab.linux.journal.awaited import place_of, require_mounted
from blklab.linux.journal.file import FORMAT_VERSION, Entry, encode_line, sync_directory
from blklab.linux.journal.modules import others_with_module
from blklab.linux.journal.state import SUFFIX, journal_directory, make_private_directory, state_directory
from blklab.linux.journal.undo import UndoResult, identity_of, undo_all
from blklab.linux.journal.undo_apart import undone_apart
from blklab.linux.journal.undo_places import HELD, OWN_PREFIXES
from blklab.linux.journal.unrestored import report_unrestored
from blklab.linux.machine.scheduler_modules import is_loaded
from blklab.linux.processes.signals import ENDING_SIGNALS, shielded
from blklab.linux.queue.snapshot import QueueSnapshot, snapshot
from blklab.quantities.visible import visible_lines
from blklab.records.run_ids import is_run_id

_RESTORE_ATTEMPTS = 5


def boot_id() -> str:
    """Identifies the current boot of the machine; empty if the kernel does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


class Journal:
    """An open journal, from `Journal.create`.

    Every method that records a change returns only once the record is on disk.
    """

    def __init__(self, path: Path, descriptor: int, run_id: str) -> None:
        self.path = path
        self.run_id = run_id
        self._descriptor = descriptor
        self._checksum = ""
        self._entries: list[Entry] = []
        self._protected: dict[str, QueueSnapshot] = {}
        self._held: dict[int, HeldDirectory] = {}
        """Directories that this run has made, by the number of their entries."""
        self._open = True
        self._process = os.getpid()
        self._mistake: Callable[[], str | None] = lambda: None

    @staticmethod
    @contextmanager
    def create(run_id: str, purpose: str) -> Iterator[Journal]:
        """Opens a journal; undoes everything in it on exit, whatever the cause.

        Args:
            run_id: Names the file.
            purpose: A note for the user who finds the file later.

        Raises:
            RequirementError: if the state directory cannot be written, or its file system is not mounted.
            RestoreError: on exit, if something could not be restored, unless such errors are collected
                (`errors_beside_results`); the journal is then kept.
        """
        journal: Journal | None = None
        try:
            # A signal between the making of the file and the first line below would leave it behind.
            with shielded():
                journal = _create(run_id, purpose)
                atexit.register(journal._finish_at_exit)
            yield journal
        finally:
            if journal is not None:
                journal.finish()

    def protect_queue(self, disk: Disk) -> QueueSnapshot:
        """Records all settings of a disk's queue, once; they are restored at the end."""
        if disk.key not in self._protected:
            taken = snapshot(disk)
            self._append(
                {
                    "kind": "queue",
                    "disk": identity_of(disk),
                    "snapshot": {"scheduler": taken.scheduler, "attributes": taken.attributes},
                }
            )
            self._protected[disk.key] = taken
        return self._protected[disk.key]

    def protect_attribute(self, path: Path, undo: Sequence[str] | None = None) -> str:
        """Records the content of another file in sysfs, procfs or a cgroup file system.

        Args:
            path: The file.
            undo: The strings that restore the content, one write(2) each; None if writing the content back
                restores it. Files with one line per device need them (``254:0 rbps=max …``).

        Returns:
            The content.
        """
        content = path.read_text()
        self._append(
            {
                "kind": "attribute",
                "path": str(path),
                "content": content,
                "undo": list(undo) if undo is not None else None,
            }
        )
        return content

    def own_directory(self, path: Path) -> Path:
        """Creates a directory in one where nobody else may rename; see `hold_directory`."""
        return self.hold_directory(path.parent.resolve() / path.name).path

    def hold_directory(self, path: Path) -> HeldDirectory:
        """Creates a directory, open until the end, when it is removed with everything in it.

        Args:
            path: Without symbolic links; its name must begin with one of `OWN_PREFIXES`.

        Raises:
            RequirementError: if something has that name already.
            RefusedError: if another user replaces it at once.
            OSError: if it cannot be created, or a symbolic link has been put into its path.
        """
        if not path.name.startswith(OWN_PREFIXES):
            raise ValueError(f"{path} does not begin with one of {', '.join(OWN_PREFIXES)}")
        parent = open_parent(path)
        try:
            _refuse_existing(parent, path)
            place = {"kind": "directory", "path": str(path), "parent_inode": os.fstat(parent).st_ino}
            planned = self._append({**place, "inode": None})
            # A signal in between would leave a directory of which only its name is known.
            with shielded():
                made = HeldDirectory.make(parent, path)
                self._held[planned["number"]] = made
                known = self._append({**place, "inode": made.identity.inode, "instead_of": planned["number"]})
                self._held[known["number"]] = made
        finally:
            os.close(parent)
        return made

    def own_file(self, path: Path) -> Path:
        """Records a file that is about to be created; it is removed at the end."""
        path = path.parent.resolve() / path.name
        parent = open_parent(path)
        try:
            _refuse_existing(parent, path)
            self._append({"kind": "file", "path": str(path), "parent_inode": os.fstat(parent).st_ino})
        finally:
            os.close(parent)
        return path

    def own_cgroup(self, path: Path) -> Path:
        """Creates a control group. At the end its processes are killed and it is removed."""
        if path.exists():
            raise RequirementError(f"the control group {path} already exists", hint="remove it with rmdir")
        self._append({"kind": "cgroup", "path": str(path)})
        path.mkdir()
        return path

    def own_loop(self, index: int, backing: BackingFile) -> Entry:
        """Records a loop device before it is created (see `blklab.linux.disks.loop.create`)."""
        return self._append({"kind": "loop", "index": index, **backing.as_entry()})

    def own_partition(self, partition: Partition) -> Entry:
        """Records a partition before the kernel adds it (see `blklab.linux.disks.partitions.add`)."""
        return self._append({"kind": "partition", **partition.as_entry()})

    def own_mount(self, path: Path) -> Entry:
        """Records a mount in one of our directories; it is unmounted at the end."""
        return self._append({"kind": "mount", "path": str(path)})

    def own_filesystem(self, device: Path, uuid: str) -> Entry:
        """Records a file system before it is made on a device; its signature is erased at the end."""
        return self._append({"kind": "filesystem", "path": str(device), "uuid": uuid})

    def own_module(self, module: str) -> Entry | None:
        """Records a kernel module before it is loaded; at the end it is unloaded unless something uses it.

        Returns:
            None if the module was loaded before, and not by another run of blklab's.
        """
        if is_loaded(module) and not others_with_module(module, self.run_id):
            return None
        return self._append({"kind": "module", "module": module, "run": self.run_id})

    def loop_entry(self, name: str) -> Entry | None:
        """The latest entry for a loop device."""
        return next(
            (
                entry
                for entry in reversed(self._entries)
                if entry["kind"] == "loop" and f"loop{entry['index']}" == name
            ),
            None,
        )

    def release(self, entry: Entry) -> None:
        """Records that an entry needs no undoing any more."""
        self._append({"kind": "released", "of": entry["number"]})

    def undo_apart_after(self, mistake: Callable[[], str | None]) -> None:
        """Leaves undoing at the end to another process if the kernel has made a mistake by then.

        Args:
            mistake: The line of the kernel's log that tells of one; None while there is none.
        """
        self._mistake = mistake

    def keep_changes(self) -> None:
        """Releases every entry: the changes are meant to stay."""
        for entry in [entry for entry in self._entries if entry["kind"] != "released"]:
            self.release(entry)

    def restore(self) -> UndoResult:
        """Undoes everything recorded so far; may be called again."""
        entries = [
            {**entry, HELD: self._held[entry["number"]]} if entry["number"] in self._held else entry
            for entry in self._entries
        ]
        return undo_all(entries, same_boot=True)

    def finish(self) -> None:
        """Restores everything, then deletes the file. A second call does nothing.

        Raises:
            RestoreError: if something could not be restored; the file is kept.
            InterruptedRunError: if a signal arrived meanwhile; everything was restored anyway.
        """
        if not self._open or os.getpid() != self._process:
            return
        interruption: BaseException | None = None
        for _ in range(_RESTORE_ATTEMPTS):
            try:
                with shielded():
                    self._finish_once()
            except (InterruptedRunError, KeyboardInterrupt) as error:
                interruption = error
            if not self._open:
                break
        if interruption is not None:
            raise interruption

    def _finish_once(self) -> None:
        if not self._open:
            return
        mistake = self._mistake()
        outcome = self.restore() if mistake is None else undone_apart(self.restore)
        if outcome.failures:
            self._close()
            lines = "; ".join(outcome.failures)
            if mistake is None:
                error = RestoreError(
                    f"some changes could not be undone: {lines}",
                    hint=f"`blklab restore` tries again; the journal is {self.path}",
                )
            else:
                error = RestoreError(
                    f"some changes could not be undone after a mistake of the kernel ({mistake}): {lines}",
                    hint="save the kernel's log (dmesg) and restart the machine; `blklab restore` then "
                    f"undoes what is left; the journal is {self.path}",
                )
            report_unrestored(error)
            return
        self.path.unlink(missing_ok=True)
        sync_directory(self.path.parent)
        self._close()

    def _close(self) -> None:
        self._open = False
        os.close(self._descriptor)  # releases the lock
        for directory in self._held.values():
            directory.close()
        atexit.unregister(self._finish_at_exit)

    def _finish_at_exit(self) -> None:
        """Covers an exception between two of our own statements, before any `finally` was active."""
        for number in ENDING_SIGNALS:  # the process ends anyway, and must not do so half-way
            signal.signal(number, signal.SIG_IGN)
        try:
            self.finish()
        except RestoreError as error:
            sys.stderr.write(visible_lines(f"error: {error.message}\nhint: {error.hint}\n"))

    def _append(self, entry: dict[str, Any]) -> Entry:
        if not self._open:
            raise RuntimeError("the journal is closed")
        complete: Entry = {"number": len(self._entries) + 1, **entry, **place_of(entry)}
        line, checksum = encode_line(complete, self._checksum)
        # A signal between the write and the assignment would break the chain of checksums.
        with shielded():
            length = os.fstat(self._descriptor).st_size
            try:
                _write_whole(self._descriptor, line)
            except RequirementError:
                os.ftruncate(self._descriptor, length)  # no later line may follow half a line
                raise
            self._checksum = checksum
            self._entries.append(complete)
        return complete

    def _write_header(self, header: Entry) -> None:
        line, self._checksum = encode_line(header, "")
        _write_whole(self._descriptor, line)


def _refuse_existing(parent: int, path: Path) -> None:
    try:
        os.stat(path.name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return
    raise RequirementError(f"{path} already exists", hint="remove it if it is not needed")


def _create(run_id: str, purpose: str) -> Journal:
    if not is_run_id(run_id):
        raise UsageError(f"{run_id!r} cannot be the name of a run")
    require_mounted(state_directory())
    make_private_directory(state_directory())
    folder = make_private_directory(journal_directory())
    path = folder / f"{run_id}{SUFFIX}"
    if path.exists():
        raise RestoreError(f"a journal of run {run_id} already exists: {path}", hint="run `blklab restore`")
    # It has another name until it is locked and has a header, so that recovery does not take it for stale.
    draft = folder / f".{run_id}.{os.getpid()}.new"
    try:
        descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise RequirementError(f"{draft} cannot be created: {error.strerror}") from error
    journal = Journal(path, descriptor, run_id)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        journal._write_header(
            {
                "kind": "header",
                "version": FORMAT_VERSION,
                "run_id": run_id,
                "purpose": purpose,
                "pid": os.getpid(),
                "boot_id": boot_id(),
                "started_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            }
        )
        draft.rename(path)
        sync_directory(folder)
    except BaseException:
        draft.unlink(missing_ok=True)
        os.close(descriptor)
        raise
    return journal


def _write_whole(descriptor: int, line: bytes) -> None:
    try:
        while line:
            line = line[os.write(descriptor, line) :]
        os.fsync(descriptor)
    except OSError as error:
        raise RequirementError(
            f"the journal cannot be written: {reason_of(error)}",
            hint="blklab changes nothing without a journal; free some space",
        ) from error
