"""Recovery after killed runs: undoes and deletes their journals."""

from __future__ import annotations

import fcntl
import itertools
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from blklab.errors import BlklabError, JournalError, RequirementError, RestoreError
from blklab.linux.disks.disk import Disk
from blklab.linux.journal.awaited import require_mounted, split_off_awaited
from blklab.linux.journal.file import (
    Entry,
    JournalContent,
    open_own_journal,
    read_journal_file,
    sync_directory,
)
from blklab.linux.journal.journal import boot_id
from blklab.linux.journal.last_recovery import RestoredRun, note_recovery
from blklab.linux.journal.locks import disk_locks
from blklab.linux.journal.state import SUFFIX
from blklab.linux.journal.undo import describe_pending, find_again, undo_all


@dataclass
class RecoveryReport:
    """The outcome of recovering one stale journal."""

    path: Path
    run_id: str
    purpose: str = ""
    started_at: str = ""
    done: list[str] = field(default_factory=list)
    """Changes that were undone."""
    notes: list[str] = field(default_factory=list)
    """Changes that needed no undoing, and why."""
    error: BlklabError | None = None
    """The reason why the journal is kept; None if it was undone and deleted."""


def any_journals(state: Path) -> bool:
    """Tells whether there are any journals, of living or killed runs; works without root."""
    return any((state / "journal").glob(f"*{SUFFIX}"))


def stale_journals(state: Path) -> list[Path]:
    """The journals that no living run holds, newest first."""
    with _one_at_a_time(state):
        return _stale(state)


@contextmanager
def _one_at_a_time(state: Path) -> Iterator[None]:
    """Lets one process at a time examine the journals.

    Examining a journal locks it for a moment. Without this lock, a run that starts in that moment would take
    the journal for a living run's and skip it.
    """
    folder = state / "journal"
    if not folder.is_dir():
        yield
        return
    try:
        descriptor = os.open(
            folder / ".recovery.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
        )
    except OSError as error:
        if os.geteuid() == 0:
            raise RequirementError(f"{folder} cannot be written: {error.strerror}") from error
        yield  # without root we can neither recover anything nor get in anyone's way
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _stale(state: Path) -> list[Path]:
    stale = []
    for path in (state / "journal").glob(f"*{SUFFIX}"):
        try:
            descriptor = _lock(path)
        except JournalError:
            stale.append(path)  # no living run's: it is no journal of ours
            continue
        if descriptor is not None:
            os.close(descriptor)
            stale.append(path)
    return sorted(stale, key=_started_at, reverse=True)


def recover(state: Path, *, force: bool = False) -> list[RecoveryReport]:
    """Undoes every stale journal, newest first, so that the oldest state is what remains.

    Of a damaged journal it undoes the intact part. Then it sets the file aside, with the suffix ``.damaged``.

    Args:
        state: The state directory; if it does not exist, there are no journals.
        force: Gives up on changes that cannot be undone, and sets journals of other versions aside.

    Returns:
        A report for each stale journal; one with an `error` is still there, or was damaged.

    Raises:
        RequirementError: if the state directory's file system is not mounted yet.
    """
    require_mounted(state)
    reports = []
    with _one_at_a_time(state):
        _sweep_drafts(state)
        for path in _stale(state):
            try:
                descriptor = _lock(path)
            except JournalError as error:
                reports.append(RecoveryReport(path, path.name.removesuffix(SUFFIX), error=error))
                continue
            if descriptor is None:
                continue
            try:
                reports.append(_recover_one(path, force=force))
            finally:
                os.close(descriptor)
        _note(state, reports)
    return reports


def _note(state: Path, reports: list[RecoveryReport]) -> None:
    restored = [
        RestoredRun(report.run_id, report.purpose, report.started_at, report.done, report.notes)
        for report in reports
        if report.error is None
    ]
    if restored:
        note_recovery(state, restored)


def _sweep_drafts(state: Path) -> None:
    """Removes unfinished journals: their runs were killed before they had changed anything."""
    for path in (state / "journal").glob(".*.new"):
        process = path.name.split(".")[-2]
        if process.isdigit() and not Path("/proc", process).exists():
            path.unlink(missing_ok=True)


def preview(state: Path) -> list[RecoveryReport]:
    """Reports what `recover` would do; changes nothing.

    Raises:
        RequirementError: if the state directory's file system is not mounted yet.
    """
    require_mounted(state)
    reports = []
    for path in stale_journals(state):
        report = RecoveryReport(path, path.name.removesuffix(SUFFIX))
        try:
            content = _read_checked(report)
            if content.other_version is not None:
                report.notes.append(f"{content.other_version}: only --force would set it aside")
            if (damage := _damage(content)) is not None:
                report.notes.append(
                    f"damaged ({damage}): its intact part would be undone, the file set aside"
                )
            ready, awaited = split_off_awaited(content.entries[1:], same_boot=_same_boot(content))
            report.notes += [f"would wait for {each}" for each in awaited]
            report.done = describe_pending(ready, same_boot=_same_boot(content))
        except BlklabError as error:
            report.error = error
        except (KeyError, TypeError, ValueError) as error:
            report.error = _malformed(path, error)
        reports.append(report)
    return reports


def raise_for_failures(reports: list[RecoveryReport]) -> None:
    """Raises the first error of the reports, if there is one."""
    for report in reports:
        if report.error is not None:
            raise report.error


def _recover_one(path: Path, *, force: bool) -> RecoveryReport:
    report = RecoveryReport(path, path.name.removesuffix(SUFFIX))
    try:
        content = _read_checked(report)
        if content.other_version is not None and not force:
            raise JournalError(
                f"the journal {path} is another blklab's: {content.other_version}",
                hint="nothing was changed; restore with that one, or set it aside: `blklab restore --force`",
            )
        with ExitStack() as stack:
            stack.enter_context(disk_locks(_disks(content.entries), run_id=f"recovery of {report.run_id}"))
            _undo(report, content, force=force)
    except BlklabError as error:
        report.error = error
    except (KeyError, TypeError, ValueError) as error:
        report.error = _malformed(path, error)
    return report


def _read_checked(report: RecoveryReport) -> JournalContent:
    content = read_journal_file(report.path)
    if content.entries:
        header = content.entries[0]
        report.purpose, report.started_at = str(header["purpose"]), str(header["started_at"])
    return content


def _malformed(path: Path, error: Exception) -> JournalError:
    return JournalError(f"the journal {path} has a malformed entry: {error!r}")


def _undo(report: RecoveryReport, content: JournalContent, *, force: bool) -> None:
    same_boot = _same_boot(content)
    ready, awaited = split_off_awaited(content.entries[1:], same_boot=same_boot)
    outcome = undo_all(ready, same_boot=same_boot)
    report.done, report.notes = outcome.done, outcome.notes
    if (awaited or outcome.failures) and not force:
        raise _unfinished(report.run_id, awaited, outcome.failures)
    report.notes += [f"given up: it waited for {each}" for each in awaited]
    report.notes += [f"given up: {failure}" for failure in outcome.failures]
    damage = content.other_version or _damage(content)
    if damage is None:
        report.path.unlink()
        return
    aside = _set_aside(report.path)
    if force:
        report.notes.append(f"{damage}; the file is kept as {aside}")
        return
    raise JournalError(
        f"the journal of run {report.run_id} was damaged: {damage}; what its intact part records has been "
        f"restored, and the file is kept as {aside}",
        hint="what the run changed after that is not known: compare the settings of your disks with what you "
        "expect, then remove the file; the next start is not held up",
    )


def _unfinished(run_id: str, awaited: list[str], failures: list[str]) -> RestoreError:
    if awaited and not failures:
        return RestoreError(
            f"run {run_id}: restoring waits for {' and '.join(awaited)}",
            hint="then the next start or `blklab restore` finishes it; `restore --force` gives up on it",
        )
    failures = [*(f"waits for {each}" for each in awaited), *failures]
    return RestoreError(
        f"run {run_id}: some changes could not be undone: " + "; ".join(failures),
        hint="`blklab restore` tries again; `blklab restore --force` gives up on them",
    )


def _same_boot(content: JournalContent) -> bool:
    return not content.entries or content.entries[0]["boot_id"] == boot_id()


def _damage(content: JournalContent) -> str | None:
    """The damage of a journal; only a power cut tears a line, and it ends the boot."""
    return content.damage or (content.torn if _same_boot(content) else None)


def _set_aside(path: Path) -> Path:
    """Renames a damaged journal, beside those of earlier runs of that name."""
    aside = path.with_suffix(".damaged")
    for number in itertools.count(2):
        if not os.path.lexists(aside):
            break
        aside = path.with_suffix(f".{number}.damaged")
    path.rename(aside)
    sync_directory(path.parent)
    return aside


def _disks(entries: list[Entry]) -> list[Disk]:
    """The disks whose queues a journal would write to; they must be locked first."""
    found = [find_again(entry["disk"])[0] for entry in entries if entry.get("kind") == "queue"]
    return [disk for disk in found if disk is not None]


def _lock(path: Path) -> int | None:
    """Opens and locks a journal; None if a living run holds it, it is gone, or only root may read it.

    Raises:
        JournalError: if it is no regular file of ours.
    """
    try:
        descriptor = open_own_journal(path, os.O_RDWR)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Its run may have ended and deleted it between open and flock.
        if os.fstat(descriptor).st_nlink:
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


def _started_at(path: Path) -> tuple[str, str]:
    try:
        entries = read_journal_file(path).entries
    except JournalError:
        entries = []
    return (str(entries[0].get("started_at", "")) if entries else "", path.name)
