"""Giving a disk a scheduler for good: now, and by a udev rule at every start; and taking that back."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

import blklab
from blklab.errors import RefusedError, UnknownNameError
from blklab.linux.apply.identity import Identity, identify
from blklab.linux.apply.record import AppliedRecord, load_record, record_path, remove_record, save_record
from blklab.linux.apply.udev import Rule, build_rule, check_rule, reload_rules, write_rule
from blklab.linux.disks.disk import Disk
from blklab.linux.journal.journal import Journal
from blklab.linux.journal.locks import disk_locks
from blklab.linux.journal.recovery import raise_for_failures, recover
from blklab.linux.journal.state import state_directory
from blklab.linux.queue.attributes import read_attribute, write_attribute
from blklab.linux.queue.schedulers import available_schedulers, unavailable_scheduler
from blklab.linux.queue.snapshot import differences, restore_snapshot
from blklab.linux.queue.sysfs import TUNABLE_PREFIX
from blklab.spec.schedulers import SchedulerChoice


@dataclass(frozen=True)
class ApplyPlan:
    """What is to be done to one disk."""

    disk: Disk
    identity: Identity
    former_scheduler: str
    writes: list[tuple[str, str]]
    """Names and values in the order in which they are written."""
    rule: Rule | None
    """Nothing if it is for now only."""

    @property
    def commands(self) -> list[str]:
        """The same as shell commands."""
        queue = self.disk.sys_path / "queue"
        return [
            f"echo {shlex.quote(value)} > {shlex.quote(str(queue / name))}" for name, value in self.writes
        ]


@dataclass(frozen=True)
class UndoPlan:
    """What takes an application back from one disk."""

    disk: Disk
    applied: AppliedRecord
    rule_is_there: bool


def plan(disk: Disk, choice: SchedulerChoice, *, permanent: bool) -> ApplyPlan:
    """Works out what giving a disk a scheduler takes; changes nothing.

    Raises:
        SchedulerUnavailableError: if the kernel does not offer it.
        RequirementError: if no rule can be made for such a disk.
    """
    active, offered = available_schedulers(disk)
    if choice.name not in offered:
        raise unavailable_scheduler(disk.name, choice.name, offered)
    writes = [("scheduler", choice.name)]
    if active == choice.name and choice.tunables:
        # Leaving it and coming back gives every tunable its default, as after a start.
        other = next((name for name in ("none", *offered) if name in offered and name != choice.name), None)
        writes = [("scheduler", other), *writes] if other else writes
    writes += [(TUNABLE_PREFIX + name, value) for name, value in choice.tunables.items()]
    identity = identify(disk) if permanent or disk.device_number else _nameless(disk)
    rule = None
    if permanent:
        now = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
        rule = build_rule(
            disk,
            identity,
            choice,
            written_by=f"blklab {blklab.__version__} on {now}",
            undo=f"blklab apply --undo --device {shlex.quote(str(disk.dev_path))}, or delete this file",
        )
    return ApplyPlan(disk, identity, active or "none", writes, rule)


def carry_out(applications: list[ApplyPlan], choice: SchedulerChoice) -> list[str]:
    """Does what was planned, on all disks or on none.

    Returns:
        Remarks for the person.

    Raises:
        BlklabError: if a step fails; everything is as before then.
    """
    remarks: list[str] = []
    with _exclusive([application.disk for application in applications]) as journal:
        former_rules: dict[Path, str | None] = {}
        former_records: dict[Path, str | None] = {}
        try:
            for application in applications:
                record = record_path(application.identity)
                former_records[record] = _text(record)
                if application.rule is not None:
                    former_rules[application.rule.path] = _text(application.rule.path)
                remarks += _carry_out_one(application, choice, journal)
        except BaseException:
            for path, text in [*former_rules.items(), *former_records.items()]:
                _put_back(path, text)
            raise
        if former_rules and (remark := reload_rules()) is not None:
            remarks.append(remark)
        journal.keep_changes()
    return remarks


def _carry_out_one(application: ApplyPlan, choice: SchedulerChoice, journal: Journal) -> list[str]:
    disk, rule = application.disk, application.rule
    former = journal.protect_queue(disk)
    for name, value in application.writes:
        write_attribute(disk, name, value)
    remarks = [application.identity.warning] if rule and application.identity.warning else []
    if rule is not None:
        if not rule.path.exists() and rule.path.parent.is_dir():
            journal.own_file(rule.path)
        write_rule(rule)
        remarks.append(f"{rule.path}: {check_rule(rule, disk)}")
    save_record(
        application.identity,
        disk,
        choice.without_label,
        former,
        rule_path=rule.path if rule else None,
        rule_text=rule.text if rule else None,
    )
    for name, value in application.writes[-1 - len(choice.tunables) :]:
        kept = read_attribute(disk, name)  # trying the rule has written them once more
        if kept != value:
            remarks.append(f"{disk.name}: {name} is {kept}, not {value}: another udev rule sets it")
    return remarks


def plan_undo(disk: Disk, *, force: bool) -> UndoPlan:
    """Finds out what takes an application back; changes nothing.

    Raises:
        UnknownNameError: if nothing was applied to the disk.
        RefusedError: if its rule was edited since, without `force`.
        JournalError: if the record of it is damaged.
    """
    identity = identify(disk) if disk.device_number else _nameless(disk)
    applied = load_record(identity)
    if applied is None:
        raise UnknownNameError(f"nothing that `blklab apply` did to {disk.name} is to be undone")
    text = _text(applied.rule_path) if applied.rule_path else None
    if text is not None and text != applied.rule_text and not force:
        raise RefusedError(
            f"{applied.rule_path} was edited since blklab wrote it", hint="--force removes it nevertheless"
        )
    return UndoPlan(disk, applied, text is not None)


def undo_commands(undoing: UndoPlan) -> list[str]:
    """What undoing does, as shell commands."""
    queue = undoing.disk.sys_path / "queue"
    former = undoing.applied.former
    writes = {"scheduler": former.scheduler or "none", **former.attributes}
    commands = [
        f"echo {shlex.quote(value)} > {shlex.quote(str(queue / name))}"
        for name, value in writes.items()
        if name == "scheduler" or name in differences(undoing.disk, former)
    ]
    if undoing.rule_is_there:
        commands.append(f"rm {shlex.quote(str(undoing.applied.rule_path))}")
    return commands


def undo(undoings: list[UndoPlan]) -> list[str]:
    """Takes applications back; what was written is returned, for people.

    Raises:
        RestoreError: if a former setting cannot be put back; the rule and the record stay then.
    """
    done: list[str] = []
    with _exclusive([undoing.disk for undoing in undoings]) as journal:
        for undoing in undoings:
            journal.protect_queue(undoing.disk)
            done += restore_snapshot(undoing.disk, undoing.applied.former)
        for undoing in undoings:
            if undoing.applied.rule_path is not None and undoing.rule_is_there:
                undoing.applied.rule_path.unlink(missing_ok=True)
                done.append(f"removed {undoing.applied.rule_path}")
            remove_record(undoing.applied.identity)
        journal.keep_changes()
    reload_rules()
    return done


def _nameless(disk: Disk) -> Identity:
    """For devices that udev does not know: good until the next start, as the setting itself."""
    return Identity((("KERNEL", disk.name),), f"the name {disk.name}")


@contextmanager
def _exclusive(disks: list[Disk]) -> Iterator[Journal]:
    """Locks the disks, finishes what killed runs left on them, and opens a journal."""
    name = f"apply-{datetime.now(timezone.utc):%Y%m%d-%H%M%S}-{os.getpid()}"
    with disk_locks(disks, run_id=name):
        raise_for_failures(recover(state_directory()))
        with Journal.create(name, "blklab apply") as journal:
            yield journal


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _put_back(path: Path, text: str | None) -> None:
    if text is None:
        path.unlink(missing_ok=True)
    elif _text(path) != text:
        path.write_text(text, encoding="utf-8")
