"""The journal of a run: what it is about to change, written down before it does, and undone in the end.

One file for each run in the state directory, held with a lock for as long as the process lives. A file that
nobody holds belongs to a run that was killed; `blklab.linux.journal.recovery` finishes such runs.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from blklab.errors import InterruptedRunError, RequirementError, RestoreError, UsageError, reason_of
from blklab.linux.disks.disk import Disk
from blklab.linux.journal.file import FORMAT_VERSION, Entry, encode_line, sync_directory
from blklab.linux.journal.state import make_private_directory, state_directory
from blklab.linux.journal.undo import OWN_PREFIXES, UndoResult, identity_of, undo_all
from blklab.linux.processes.process_groups import start_ticks
from blklab.linux.processes.signals import shielded
from blklab.linux.queue.snapshot import QueueSnapshot, snapshot

SUFFIX = ".journal"
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,120}")
_RESTORE_ATTEMPTS = 5


def journal_directory() -> Path:
    """Where journals are."""
    return state_directory() / "journal"


def boot_id() -> str:
    """Tells one boot of the machine from the next; empty where the kernel does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


class Journal:
    """An open journal. Made by `Journal.create`.

    Every method that announces a change returns only after the announcement is on disk.
    """

    def __init__(self, path: Path, descriptor: int, run_id: str) -> None:
        self.path = path
        self.run_id = run_id
        self._descriptor = descriptor
        self._checksum = ""
        self._entries: list[Entry] = []
        self._protected: dict[str, QueueSnapshot] = {}
        self._open = True
        self._process = os.getpid()

    @staticmethod
    @contextmanager
    def create(run_id: str, purpose: str) -> Iterator[Journal]:
        """Opens a journal and undoes everything in it at the end, however that comes about.

        Args:
            run_id: Names the file.
            purpose: For people who find it later.

        Raises:
            RequirementError: if the state directory cannot be written.
            RestoreError: at the end, if something could not be put back; the journal is kept then.
        """
        journal = _create(run_id, purpose)
        atexit.register(journal._finish_at_exit)
        try:
            yield journal
        finally:
            journal.finish()

    def protect_queue(self, disk: Disk) -> QueueSnapshot:
        """Records all settings of a disk's queue, once; they come back in the end."""
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
        """Records the content of another file of sysfs, procfs or a cgroup file system.

        Args:
            path: The file.
            undo: What to write, one write each, to bring its content back; nothing if writing the content
                does it. Files with a line for each device need it (``254:0 rbps=max …``).

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
        """Creates a folder that is removed in the end with all that is in it.

        Its name must begin with one of `OWN_PREFIXES`.
        """
        if not path.name.startswith(OWN_PREFIXES):
            raise ValueError(f"{path} has no name of ours")
        path = path.parent.resolve() / path.name
        if path.exists() or path.is_symlink():
            raise RequirementError(f"{path} is there already", hint="remove it if nobody needs it")
        self._append({"kind": "directory", "path": str(path), "parent_inode": path.parent.stat().st_ino})
        path.mkdir(mode=0o700)
        return path

    def own_file(self, path: Path) -> Path:
        """Announces a file that is about to be created, to be removed in the end."""
        path = path.parent.resolve() / path.name
        if path.exists() or path.is_symlink():
            raise RequirementError(f"{path} is there already", hint="remove it if nobody needs it")
        self._append({"kind": "file", "path": str(path), "parent_inode": path.parent.stat().st_ino})
        return path

    def own_cgroup(self, path: Path) -> Path:
        """Creates a control group. In the end its processes are killed and it is removed."""
        if path.exists():
            raise RequirementError(f"the control group {path} is there already", hint="remove it with rmdir")
        self._append({"kind": "cgroup", "path": str(path)})
        path.mkdir()
        return path

    def own_process_group(self, leader: int) -> Entry:
        """Records a process group; what is left of it in the end is killed."""
        return self._append(
            {"kind": "process_group", "group": leader, "started_ticks": start_ticks(leader) or 0}
        )

    def own_loop(self, index: int, backing_file: Path) -> Entry:
        """Announces the loop device of that number (see `blklab.linux.disks.loop.create`)."""
        return self._append({"kind": "loop", "index": index, "backing_file": str(backing_file)})

    def own_mount(self, path: Path) -> Entry:
        """Announces a mount in a folder of ours, to be unmounted in the end."""
        return self._append({"kind": "mount", "path": str(path)})

    def loop_entry(self, name: str) -> Entry | None:
        """The latest entry about a loop device."""
        return next(
            (
                entry
                for entry in reversed(self._entries)
                if entry["kind"] == "loop" and f"loop{entry['index']}" == name
            ),
            None,
        )

    def release(self, entry: Entry) -> None:
        """Records that an entry is settled: it will not be undone."""
        self._append({"kind": "released", "of": entry["number"]})

    def keep_changes(self) -> None:
        """Settles every entry: what was changed is meant to stay."""
        for entry in [entry for entry in self._entries if entry["kind"] != "released"]:
            self.release(entry)

    def restore(self) -> UndoResult:
        """Undoes everything announced so far; may be repeated."""
        return undo_all(self._entries, same_boot=True)

    def finish(self) -> None:
        """Restores, and deletes the file if all is back. A second call does nothing.

        Raises:
            RestoreError: if something could not be put back; the file is kept.
            InterruptedRunError: if a signal came meanwhile; everything is back nevertheless.
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
        outcome = self.restore()
        if outcome.failures:
            self._close()
            raise RestoreError(
                "not everything could be put back: " + "; ".join(outcome.failures),
                hint=f"`blklab restore` tries again; the journal is {self.path}",
            )
        self.path.unlink(missing_ok=True)
        sync_directory(self.path.parent)
        self._close()

    def _close(self) -> None:
        self._open = False
        os.close(self._descriptor)  # which frees the lock
        atexit.unregister(self._finish_at_exit)

    def _finish_at_exit(self) -> None:
        """For an exception that hit between two instructions of ours, where no `finally` was active yet."""
        try:
            self.finish()
        except RestoreError as error:
            sys.stderr.write(f"error: {error.message}\nhint: {error.hint}\n")

    def _append(self, entry: dict[str, Any]) -> Entry:
        if not self._open:
            raise RuntimeError("the journal is closed")
        complete: Entry = {"number": len(self._entries) + 1, **entry}
        line, checksum = encode_line(complete, self._checksum)
        # A signal between writing and remembering would let the chain of checksums break.
        with shielded():
            length = os.fstat(self._descriptor).st_size
            try:
                _write_whole(self._descriptor, line)
            except RequirementError:
                os.ftruncate(self._descriptor, length)  # later lines must not follow half a line
                raise
            self._checksum = checksum
            self._entries.append(complete)
        return complete

    def _write_header(self, header: Entry) -> None:
        line, self._checksum = encode_line(header, "")
        _write_whole(self._descriptor, line)


def _create(run_id: str, purpose: str) -> Journal:
    if _RUN_ID.fullmatch(run_id) is None:
        raise UsageError(f"{run_id!r} cannot be the name of a run")
    make_private_directory(state_directory())
    folder = make_private_directory(journal_directory())
    path = folder / f"{run_id}{SUFFIX}"
    if path.exists():
        raise RestoreError(
            f"there is a journal of a run {run_id} already: {path}", hint="run `blklab restore`"
        )
    # Under another name until it is locked and has its header, so that nobody takes it for a dead run's.
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
            hint="nothing is changed without it; free some space",
        ) from error
