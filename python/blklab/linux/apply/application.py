"""Sets a disk's scheduler permanently: now, and with a udev rule at every boot; and undoes it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

import blklab
from blklab.errors import RefusedError, RequirementError, UnknownNameError
from blklab.linux.apply.class_rule import class_rule, is_class_rule
from blklab.linux.apply.cost_parameters import CostParameters, cost_parameters, for_number_now, put_back
from blklab.linux.apply.identity import Identity, identify
from blklab.linux.apply.record import (
    AppliedRecord,
    applied_modules,
    load_record,
    record_path,
    remove_record,
    save_record,
)
from blklab.linux.apply.udev import Rule, build_rule, check_rule, reload_rules, write_rule
from blklab.linux.disks.disk import Disk, has_scheduler
from blklab.linux.disks.stack import all_disks
from blklab.linux.journal.journal import Journal
from blklab.linux.journal.locks import disk_locks
from blklab.linux.journal.module_loading import load_modules
from blklab.linux.journal.modules import others_with_module
from blklab.linux.journal.recovery import raise_for_failures, recover
from blklab.linux.journal.state import state_directory
from blklab.linux.machine.host_change import KernelWrite, shell_of
from blklab.linux.machine.scheduler_modules import is_loaded, loading_command, module_of, unload_module
from blklab.linux.queue.attributes import read_attribute
from blklab.linux.queue.changes import QueueWrite
from blklab.linux.queue.schedulers import offered_schedulers, unavailable_scheduler
from blklab.linux.queue.snapshot import differences, restore_snapshot
from blklab.linux.queue.sysfs import TUNABLE_PREFIX
from blklab.spec.drive_classes import DriveClass, kind_of
from blklab.spec.schedulers import SchedulerChoice


@dataclass(frozen=True)
class ApplyPlan:
    """The steps for one disk."""

    disk: Disk
    identity: Identity
    former_scheduler: str
    writes: list[tuple[str, str]]
    """Names and values below the disk's queue, in the order in which they are written."""
    rule: Rule | None
    """None if the setting is for the current boot only."""
    drive_class: DriveClass | None = None
    """The class that the rule matches; None if it matches this disk alone."""
    cost: CostParameters | None = None
    """io.cost's parameters; None if the choice brings none."""
    former_cost: tuple[tuple[Path, str], ...] = ()
    """Writes that undo what an earlier `apply` made of io.cost; they come first."""
    loads: str | None = None
    """The scheduler whose module is to be loaded first; None if it is there already."""

    @property
    def queue_writes(self) -> list[QueueWrite]:
        """The changes of the disk's queue."""
        return [QueueWrite(self.disk, name, value) for name, value in self.writes]

    @property
    def goes_by(self) -> str:
        """The disk, or the class, as the rule knows it."""
        return self.identity.description if self.drive_class is None else self.drive_class.words

    @property
    def warning(self) -> str | None:
        """A reason why the rule may fail to match, or match another disk."""
        return self.identity.warning if self.rule is not None and self.drive_class is None else None

    @property
    def commands(self) -> list[str]:
        """The writes as shell commands."""
        return [
            *([] if self.loads is None else [loading_command(self.loads)]),
            *_echoes(self.former_cost),
            *shell_of(self.queue_writes),
            *([] if self.cost is None else self.cost.commands),
        ]


@dataclass(frozen=True)
class UndoPlan:
    """The steps that undo `apply` on one disk."""

    disk: Disk
    applied: AppliedRecord
    rule_exists: bool


def plan(
    disk: Disk,
    choice: SchedulerChoice,
    *,
    permanent: bool,
    for_class: tuple[DriveClass, Rule] | None = None,
) -> ApplyPlan:
    """Plans the steps that give a disk a scheduler; changes nothing.

    Args:
        disk: The disk.
        choice: The scheduler and its tunables.
        permanent: Whether to write a rule.
        for_class: The class that the rule is to match, and that rule; None for this disk alone.

    Raises:
        SchedulerUnavailableError: if the kernel does not offer it.
        TunableError: if the choice has parameters of io.cost, and this kernel or cgroup version has none.
        RequirementError: if udev cannot match such a disk.
    """
    choice = choice.for_disk
    offer = offered_schedulers(disk)
    active, offered = offer.active, offer.listed
    if choice.name not in offer.names:
        raise unavailable_scheduler(disk.name, choice.name, offer.marked)
    writes = [("scheduler", choice.name)]
    if active == choice.name and (choice.queue or choice.iosched):
        # Switching away and back gives every tunable its default, as after a boot.
        other = next((name for name in ("none", *offered) if name in offered and name != choice.name), None)
        writes = [("scheduler", other), *writes] if other else writes
    writes += choice.queue.items()
    writes += [(TUNABLE_PREFIX + name, value) for name, value in choice.iosched.items()]
    identity = identify(disk) if permanent or disk.device_number else _nameless(disk)
    drive_class, rule = for_class or (None, None)
    if permanent and rule is None:
        now = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
        rule = build_rule(
            disk,
            identity,
            choice,
            written_by=f"blklab {blklab.__version__} on {now}",
            undo=f"blklab apply --undo --device {shlex.quote(str(disk.dev_path))}, or delete this file",
        )
    cost = cost_parameters(disk, choice)
    earlier = load_record(identity)
    former_cost = () if earlier is None else for_number_now(earlier.former_groups, disk)
    loads = choice.name if choice.name in offer.modules.loadable else None
    return ApplyPlan(disk, identity, active or "none", writes, rule, drive_class, cost, former_cost, loads)


def plan_class(
    disks: Sequence[Disk], drive_class: DriveClass, choice: SchedulerChoice, evidence: Sequence[str]
) -> list[ApplyPlan]:
    """Plans the same for several disks of a class, with one rule that matches the class.

    Raises:
        SchedulerUnavailableError: if the kernel does not offer the scheduler for one of them.
        RequirementError: if udev cannot match such disks.
    """
    kinds = sorted({kind_of(disk.name) for disk in disks})
    undo = "blklab apply --undo --device DEVICE, with any disk of the class, or delete this file"
    rule = class_rule(drive_class, kinds, choice, evidence, undo=undo)
    return [plan(disk, choice, permanent=True, for_class=(drive_class, rule)) for disk in disks]


def disks_of(drive_class: DriveClass) -> list[Disk]:
    """The disks of this machine that belong to a class and have a scheduler."""
    return [
        disk
        for disk in all_disks()
        if has_scheduler(disk.sys_path)
        and drive_class.includes(name=disk.name, model=disk.model, rotational=disk.rotational)
    ]


def apply(plans: list[ApplyPlan], choice: SchedulerChoice) -> list[str]:
    """Carries out plans, on all disks or on none.

    Returns:
        Remarks for the user.

    Raises:
        BlklabError: if a step fails; then everything is as before.
    """
    remarks: list[str] = []
    with _exclusive([plan.disk for plan in plans]) as journal:
        former_rules: dict[Path, str | None] = {}
        former_records: dict[Path, str | None] = {}
        try:
            for plan in plans:
                record = record_path(plan.identity)
                former_records[record] = _text(record)
                if plan.rule is not None:
                    # Disks of a class share one rule: its former text is that before the first of them.
                    former_rules.setdefault(plan.rule.path, _text(plan.rule.path))
                remarks += _apply_one(plan, choice, journal)
        except BaseException:
            for path, text in [*former_rules.items(), *former_records.items()]:
                _restore_file(path, text)
            raise
        if former_rules and (remark := reload_rules()) is not None:
            remarks.append(remark)
        journal.keep_changes()
    return remarks


def _apply_one(plan: ApplyPlan, choice: SchedulerChoice, journal: Journal) -> list[str]:
    disk, rule = plan.disk, plan.rule
    modules = load_modules([choice.name], (), journal)
    if (module := module_of(choice.name)) in applied_modules() and module is not None:
        modules.append(module)
    former = journal.protect_queue(disk)
    put_back(plan.former_cost, journal)
    for write in plan.queue_writes:
        write.make()
    former_groups = [] if plan.cost is None else plan.cost.write(journal)
    remarks = [plan.warning] if plan.warning else []
    if rule is not None:
        if not rule.path.exists() and rule.path.parent.is_dir():
            journal.own_file(rule.path)
        write_rule(rule)
        remarks.append(f"{rule.path}: {check_rule(rule, disk)}")
    save_record(
        plan.identity,
        disk,
        choice.without_label,
        former,
        brought=choice.queue,
        rule_path=rule.path if rule else None,
        rule_text=rule.text if rule else None,
        former_groups=former_groups,
        modules=modules,
    )
    for name, value in plan.writes[-1 - len(choice.queue) - len(choice.iosched) :]:
        kept = read_attribute(disk, name)  # testing the rule has written them once more
        if kept != value:
            remarks.append(f"{disk.name}: {name} is {kept}, not {value}: another udev rule sets it")
    return remarks


def plan_undo(disk: Disk, *, force: bool) -> UndoPlan:
    """Plans the steps that undo `apply` on a disk; changes nothing.

    Raises:
        UnknownNameError: if there is no record of `apply` for the disk.
        RefusedError: if its rule was edited since, and `force` is not set.
        JournalError: if its record is damaged.
    """
    applied = _applied(disk)
    if applied is None:
        raise UnknownNameError(f"`blklab apply` has not changed {disk.name}, so there is no change to undo")
    text = _text(applied.rule_path) if applied.rule_path else None
    if text is not None and text != applied.rule_text and not force:
        raise RefusedError(
            f"{applied.rule_path} was edited since blklab wrote it", hint="--force removes it anyway"
        )
    return UndoPlan(disk, applied, text is not None)


def sharing(disks: Sequence[Disk]) -> list[Disk]:
    """The disks, and those that were set together with them by one rule for their class.

    Raises:
        JournalError: if a record is damaged.
    """
    paths = {applied.rule_path for disk in disks if (applied := _applied(disk)) is not None}
    shared = {path for path in paths if path is not None and is_class_rule(path)}
    keys = {disk.key for disk in disks}
    others = [disk for disk in all_disks() if disk.key not in keys] if shared else []
    return [*disks, *(disk for disk in others if _rule_path(disk) in shared)]


def _rule_path(disk: Disk) -> Path | None:
    """The rule that `apply` wrote for a disk; None if there is none, or the disk has just been removed."""
    try:
        applied = _applied(disk)
    except (OSError, RequirementError):
        return None
    return None if applied is None else applied.rule_path


def _applied(disk: Disk) -> AppliedRecord | None:
    return load_record(identify(disk) if disk.device_number else _nameless(disk))


def undo_commands(plan: UndoPlan) -> list[str]:
    """The steps of an undo plan as shell commands."""
    former = plan.applied.former
    writes = {"scheduler": former.scheduler or "none", **former.attributes}
    commands = _echoes(for_number_now(plan.applied.former_groups, plan.disk))
    commands += shell_of(
        QueueWrite(plan.disk, name, value)
        for name, value in writes.items()
        if name == "scheduler" or name in differences(plan.disk, former)
    )
    if plan.rule_exists:
        commands.append(f"rm {shlex.quote(str(plan.applied.rule_path))}")
    return commands


def _echoes(writes: Sequence[tuple[Path, str]]) -> list[str]:
    return shell_of(KernelWrite(path, text) for path, text in writes)


def undo(plans: list[UndoPlan]) -> list[str]:
    """Carries out undo plans.

    Returns:
        The changes made, for people.

    Raises:
        RestoreError: if a former setting cannot be restored; the rule and the record then stay.
    """
    done: list[str] = []
    with _exclusive([plan.disk for plan in plans]) as journal:
        for plan in plans:
            journal.protect_queue(plan.disk)
            done += put_back(for_number_now(plan.applied.former_groups, plan.disk), journal)
            done += restore_snapshot(plan.disk, plan.applied.former)
        for plan in plans:
            if plan.applied.rule_path is not None and plan.rule_exists:
                plan.applied.rule_path.unlink(missing_ok=True)
                done.append(f"removed {plan.applied.rule_path}")
            remove_record(plan.applied.identity)
        journal.keep_changes()
    reload_rules()
    return done + _unload({module for plan in plans for module in plan.applied.modules})


def _unload(modules: Collection[str]) -> list[str]:
    """Unloads modules that `apply` has loaded, unless another disk or run needs them; says so."""
    done = []
    for module in sorted(set(modules) - applied_modules()):
        if not is_loaded(module) or others_with_module(module, ""):
            continue
        done.append(unload_module(module) or f"unloaded the module {module}")
    return done


def _nameless(disk: Disk) -> Identity:
    """For devices that udev does not know: valid until the next boot, like the setting itself."""
    return Identity((("KERNEL", disk.name),), f"the name {disk.name}")


@contextmanager
def _exclusive(disks: list[Disk]) -> Iterator[Journal]:
    """Locks the disks, recovers from killed runs, and opens a journal."""
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


def _restore_file(path: Path, text: str | None) -> None:
    if text is None:
        path.unlink(missing_ok=True)
    elif _text(path) != text:
        path.write_text(text, encoding="utf-8")
