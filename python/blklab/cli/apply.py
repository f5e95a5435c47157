"""`blklab apply`: set a disk's scheduler, now and at every boot, or undo that."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from blklab.cli.commands import described_command
from blklab.cli.options import json_option, store_option
from blklab.cli.output import write_text
from blklab.errors import RefusedError, UsageError
from blklab.linux.apply.unit_settings import parse_units, unit_commands
from blklab.linux.machine.requirements import require_linux, require_root
from blklab.quantities.formatting import join_schedulers
from blklab.report.terminal import console_out, print_note
from blklab.spec.goals import GRAMMAR_HINT, Goal, parse_goal
from blklab.spec.schedulers import SchedulerChoice, parse_scheduler_choice
from blklab.spec.targets import ModelTarget, PathTarget

if TYPE_CHECKING:
    from blklab.linux.apply.application import ApplyPlan, UndoPlan
    from blklab.linux.disks.disk import Disk
    from blklab.report.documents.comparison import CompareDocument

SCHEMA = "blklab.apply/1"
FLEET = "fleet"
"""In place of a run: the verdict of all stored runs on drives of the disk's model."""
_RUN_ID = re.compile(r"latest|\d[\da-z-]*|(?=.*\d)[\da-z]{4}")
"""A run's name, or its beginning or end as the store accepts it. No scheduler's name begins with a digit, and
none has four characters with a digit among them."""


def resolve_run(run_id: str, store_url: str | None, force: bool) -> tuple[SchedulerChoice, str]:
    """The scheduler that a stored run recommends, and the path that it tested.

    Raises:
        UnknownNameError: if there is no such run.
        RefusedError: if it recommends none, or the path is on other disks now.
        UsageError: if its target was not a disk of this machine.
    """
    from blklab.analysis.verdict import analyse  # noqa: PLC0415
    from blklab.records.store import Store  # noqa: PLC0415 - SQLAlchemy takes its time; only runs need it
    from blklab.report.documents.comparison import compare_document  # noqa: PLC0415

    with Store.opened(store_url) as store:
        record = store.load(run_id)
    target = record.spec.parsed_target
    if not isinstance(target, PathTarget):
        _refuse_kernels(record, analyse(record).verdict.best)
        raise UsageError(
            f"run {record.run_id} tested {record.spec.target}, which is not a disk of this machine",
            hint="name the scheduler and the disk: blklab apply SCHEDULER --device DEVICE",
        )
    document = compare_document(record, analyse(record))
    advised = document.verdict.recommendation
    if not advised.is_shown and not force:
        raise _nothing_to_apply(document)
    choices = {choice.label: choice for choice in record.spec.schedulers}
    label = advised.scheduler or _first_not_ruled_out(document)
    _refuse_kernels(record, [label])
    _check_same_disks(record.run_id, target.path, record.target.disks, force=force)
    for warning in document.warnings:
        print_note(f"of run {record.run_id}: {warning}")
    return choices[label], target.path


def _nothing_to_apply(document: CompareDocument) -> RefusedError:
    """The answer of a run that recommends no scheduler."""
    from blklab.report.summary.standing import is_withheld  # noqa: PLC0415 - only runs need it
    from blklab.report.text.answer import answer_of  # noqa: PLC0415

    first = (
        "find out what else differed between the runs and measure again"
        if is_withheld(document)
        else "continue it (`blklab compare --resume`)"
    )
    return RefusedError(
        f"run {document.run} recommends no scheduler: {answer_of(document).sentence.rstrip('.')}",
        hint=f"{first}, or name a scheduler yourself; --force applies the first that is not ruled out",
    )


def _first_not_ruled_out(document: CompareDocument) -> str:
    """For `--force`: the best, or the first candidate; of several, the one that is in force."""
    verdict = document.verdict
    labels = verdict.best or verdict.candidates or [str(one["label"]) for one in document.schedulers]
    in_force = verdict.recommendation.in_force
    return in_force if in_force in labels and verdict.status != "withheld" else labels[0]


_OF_A_MODULE = "a module is for trials: it is unloaded when they end, and gone after a restart"


def _refuse_kernels(record: Any, best: list[str]) -> None:
    """Refuses a verdict between guest kernels: no setting of a disk reproduces it."""
    won = [choice for choice in record.spec.schedulers if choice.label in best and choice.kernel is not None]
    kernels = {choice.kernel for choice in record.spec.schedulers}
    if not won or len(kernels) < 2:
        return
    choice = won[0]
    if len(best) > 1:
        raise RefusedError(
            f"run {record.run_id} found {join_schedulers(best)} equal, and no setting of a disk changes the"
            " kernel",
            hint="there is nothing to apply",
        )
    if not isinstance(record.spec.parsed_target, ModelTarget):
        raise RefusedError(
            f"run {record.run_id} found {choice.label} best: {_OF_A_MODULE}",
            hint=f"build a kernel for this machine with the patches of {choice.kernel}, and boot it",
        )
    raise RefusedError(
        f"run {record.run_id} found {choice.label} best: the scheduler {choice.name} of the kernel"
        f" {choice.kernel}, and no setting of a disk changes the kernel",
        hint=f"build a kernel for this machine with the patches of {choice.kernel}"
        f" (`blklab kernel show {choice.kernel}`), boot it, and compare there",
    )


def _check_same_disks(run_id: str, path: str, tested: list[Any], *, force: bool) -> None:
    from blklab.linux.disks.resolution import resolve  # noqa: PLC0415

    # Runs from before drives' identities were stored know model and size alone.
    known = all(disk.identity for disk in tested)
    then = sorted((disk.model, disk.size_bytes, disk.identity if known else "") for disk in tested)
    leaves = resolve(path).leaves
    now = sorted((disk.model, disk.size_bytes, disk.digest if known else "") for disk in leaves)
    if then != now and not force:
        raise RefusedError(
            f"run {run_id} tested {path} on different disks",
            hint="name the scheduler and the disk yourself, or use --force; other drives of "
            "a model have `blklab apply fleet`",
        )


@described_command(
    name="apply",
    examples=(
        ("the verdict of the newest run, as root", "blklab apply latest"),
        ("what that would write", "blklab apply latest --dry-run"),
        ("undo it", "blklab apply --undo"),
    ),
)
@click.argument("what", required=False, metavar="[RUN|fleet|SCHEDULER[:TUNABLE=VALUE…]]")
@click.option(
    "--device",
    metavar="DEVICE|PATH",
    help="Disk, or a path on it. With RUN the default is the disk that it tested.",
)
@click.option(
    "--for-model",
    is_flag=True,
    help="Let the rule match all drives of the disk's model, and set those of this machine now.",
)
@click.option(
    "--goal",
    "goal_text",
    metavar="GOAL",
    help=f"With fleet: decide by a goal over all workloads: {GRAMMAR_HINT}.",
)
@click.option("--undo", "undo_it", is_flag=True, help="Restore the former setting and remove the udev rule.")
@click.option(
    "--unit",
    "unit_texts",
    metavar="GROUP=UNIT",
    multiple=True,
    help="The unit of systemd that a control group of the load stands for, such as batch=backup.service; "
    "weights and limits are printed as its properties. Repeatable.",
)
@click.option("--now-only", is_flag=True, help="Change it until the next boot only: write no udev rule.")
@click.option("--dry-run", is_flag=True, help="Print what would be written; change nothing.")
@click.option(
    "--force",
    is_flag=True,
    help="Accept an undecided or withheld verdict; with --undo remove even an edited rule.",
)
@store_option
@json_option
def command(
    *,
    what: str | None,
    device: str | None,
    for_model: bool,
    goal_text: str | None,
    unit_texts: tuple[str, ...],
    undo_it: bool,
    now_only: bool,
    dry_run: bool,
    force: bool,
    store_url: str | None,
    json_file: str | None,
) -> None:
    """Set a disk's scheduler, now and at every boot.

    With RUN, set the scheduler that a stored comparison found best; with fleet, the one that `blklab fleet`
    finds best for the disk's model. All disks beneath a path get the same scheduler. --undo restores the
    former setting.

    Parameters of io.cost are set like tunables. Weights and limits of control groups belong to units of
    systemd: the commands that set them are printed, not run.
    """
    require_linux("setting a scheduler")
    if goal_text is not None and (undo_it or what != FLEET):
        raise UsageError(
            "--goal goes with fleet: a run has the goal that it was made with",
            hint="`blklab report RUN --goal latency` decides a stored run anew",
        )
    goal = None if goal_text is None else parse_goal(goal_text)
    if undo_it:
        if what is not None:
            raise UsageError("--undo takes no scheduler", hint="name the disk with --device")
        if device is None:
            raise UsageError("--undo needs --device")
        _undo(device, dry_run=dry_run, force=force, json_file=json_file)
        return
    if what is None:
        raise UsageError("name a run or a scheduler", hint="blklab apply mq-deadline --device /dev/sda")
    evidence: list[str] = []
    units = parse_units(unit_texts)
    if for_model and now_only:
        raise UsageError("--for-model is about the rule, and --now-only writes none", hint="leave one out")
    if what == FLEET:
        if device is None:
            raise UsageError(
                "which disk?", hint="blklab apply fleet --device /dev/sda (or a directory on it)"
            )
        choice, evidence = resolve_fleet(device, store_url, force=force, goal=goal)
        for_model = not now_only
    elif _RUN_ID.fullmatch(what):
        choice, tested = resolve_run(what, store_url, force)
        evidence = [_evidence_of_run(what, store_url)] if for_model else []
        device = device or tested
    else:
        choice = parse_scheduler_choice(what)
        if choice.kernel is not None:
            raise UsageError(
                f"{what}: a disk uses the running kernel's own scheduler, and {_OF_A_MODULE}",
                hint=f"leave out @{choice.kernel}",
            )
        if device is None:
            raise UsageError(
                "which disk?", hint=f"blklab apply {what} --device /dev/sda (or a directory on it)"
            )
    done = _apply(
        choice,
        device,
        evidence if for_model else None,
        units=units,
        permanent=not now_only,
        dry_run=dry_run,
    )
    _report(done, json_file)


def apply_run(run_id: str, store_url: str | None, *, prints: bool) -> None:
    """Sets the scheduler that a stored run recommends, now and at every boot.

    Args:
        run_id: Name of the run.
        store_url: The store of runs; None for the usual one.
        prints: Whether to say what was done.

    Raises:
        BlklabError: if the run recommends none, or it cannot be set; then nothing has changed.
    """
    choice, tested = resolve_run(run_id, store_url, force=False)
    done = _apply(choice, tested, None, units={}, permanent=True, dry_run=False)
    if prints:
        _report(done, None)


def _evidence_of_run(run_id: str, store_url: str | None) -> str:
    from blklab.records.store import Store  # noqa: PLC0415 - SQLAlchemy takes its time; only runs need it

    with Store.opened(store_url) as store:
        name = store.name_of(run_id)
    return f"Evidence: run {name} on one drive, which does not show how drives of a model differ."


def resolve_fleet(
    device: str, store_url: str | None, *, force: bool, goal: Goal | None = None
) -> tuple[SchedulerChoice, list[str]]:
    """The scheduler that stored runs on many drives found best for a disk's model, and the evidence.

    Args:
        device: A disk of the model, or a path on one.
        store_url: The store of the runs; None for the usual one.
        force: Whether to accept an undecided or withheld verdict.
        goal: Decides over all workloads; None for each workload's own metric.

    Raises:
        UnknownNameError: if no such drive was tested, or the goal names an unknown metric.
        RefusedError: if the verdict is undecided or withheld.
        UsageError: if the path lies on several disks, or on one without a model.
    """
    from blklab.cli.fleet import fleet_verdict, recommended  # noqa: PLC0415 - SQLAlchemy takes its time
    from blklab.linux.apply.class_rule import class_of  # noqa: PLC0415 - needs Linux
    from blklab.linux.disks.resolution import resolve  # noqa: PLC0415
    from blklab.report.text.fleet import evidence_lines  # noqa: PLC0415

    disks = resolve(device).leaves
    if len(disks) != 1:
        raise UsageError(f"{device} is on {len(disks)} disks", hint="name one of them")
    drive_class = class_of(disks[0])
    found = fleet_verdict(drive_class, store_url, goal=goal)
    return recommended(found, drive_class, force=force), evidence_lines(found)


def _apply(
    choice: SchedulerChoice,
    device: str,
    for_model: Sequence[str] | None,
    *,
    units: Mapping[str, str],
    permanent: bool,
    dry_run: bool,
) -> dict[str, Any]:
    """Applies a choice, and tells what was done.

    `for_model` is the evidence for a rule for the disks' models, None for a rule for the disks.
    """
    from blklab.linux.apply import application  # noqa: PLC0415 - needs Linux
    from blklab.linux.apply.overriders import overriders  # noqa: PLC0415
    from blklab.linux.apply.udev import require_udev  # noqa: PLC0415
    from blklab.linux.disks.resolution import resolve  # noqa: PLC0415

    if not dry_run:
        require_root("setting a scheduler")
    if permanent:
        require_udev()
    disks = resolve(device).leaves
    left = [one for disk in disks for one in unit_commands(choice, str(disk.dev_path), units)]
    of_machine = [
        f"vm.{name}={value} holds for the whole machine: sysctl -w vm.{name}={value}, and a file in "
        "/etc/sysctl.d to keep it"
        for name, value in choice.of_writeback.items()
    ]
    choice = choice.for_disk
    if for_model is None:
        plans = [application.plan(disk, choice, permanent=permanent) for disk in disks]
    else:
        plans = _plans_for_models(disks, choice, for_model)
    remarks = [] if dry_run else application.apply(plans, choice)
    if dry_run:
        remarks += [plan.warning for plan in plans if plan.warning]
    remarks += [str(one) for plan in plans for one in overriders(plan.disk, choice, plan.rule)]
    remarks += dict.fromkeys(one.text for one in left)
    remarks += of_machine
    document = _apply_document(plans, choice, remarks, dry_run=dry_run)
    document["left_to_units"] = list(dict.fromkeys(one.command for one in left if one.command is not None))
    return document


def _plans_for_models(
    disks: Sequence[Disk], choice: SchedulerChoice, evidence: Sequence[str]
) -> list[ApplyPlan]:
    """Plans for all disks of this machine that are of the same models."""
    from blklab.linux.apply import application  # noqa: PLC0415 - needs Linux
    from blklab.linux.apply.class_rule import class_of  # noqa: PLC0415

    plans: list[ApplyPlan] = []
    for drive_class in dict.fromkeys(class_of(disk) for disk in disks):
        own = [disk for disk in disks if class_of(disk) == drive_class]
        members = {disk.key: disk for disk in (*own, *application.disks_of(drive_class))}
        plans += application.plan_class(list(members.values()), drive_class, choice, evidence)
    return plans


def _undo(device: str, *, dry_run: bool, force: bool, json_file: str | None) -> None:
    from blklab.linux.apply import application  # noqa: PLC0415 - needs Linux
    from blklab.linux.disks.resolution import resolve  # noqa: PLC0415

    if not dry_run:
        require_root("setting a scheduler")
    disks = application.sharing(resolve(device).leaves)
    plans = [application.plan_undo(disk, force=force) for disk in disks]
    document = _undo_document(plans, dry_run=dry_run)
    if not dry_run:
        document["remarks"] = application.undo(plans)
    _report(document, json_file)


def _apply_document(
    plans: list[ApplyPlan], choice: SchedulerChoice, remarks: list[str], *, dry_run: bool
) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "action": "apply",
        "dry_run": dry_run,
        "scheduler": choice.name,
        "tunables": choice.tunables,
        "disks": [
            {
                "disk": plan.disk.name,
                "former_scheduler": plan.former_scheduler,
                "goes_by": plan.goes_by,
                "commands": plan.commands,
                "rule": {"path": str(plan.rule.path), "text": plan.rule.text} if plan.rule else None,
            }
            for plan in plans
        ],
        "remarks": remarks,
    }


def _undo_document(plans: list[UndoPlan], *, dry_run: bool) -> dict[str, Any]:
    from blklab.linux.apply.application import undo_commands  # noqa: PLC0415 - needs Linux

    return {
        "schema": SCHEMA,
        "action": "undo",
        "dry_run": dry_run,
        "scheduler": None,
        "tunables": {},
        "left_to_units": [],
        "disks": [
            {
                "disk": plan.disk.name,
                "former_scheduler": plan.applied.former.scheduler,
                "goes_by": plan.applied.identity.description,
                "commands": undo_commands(plan),
                "rule": None,
            }
            for plan in plans
        ],
        "remarks": [],
    }


def _report(document: dict[str, Any], json_file: str | None) -> None:
    if json_file is not None:
        write_text(json_file, json.dumps(document, indent=2, ensure_ascii=False))
        return
    console = console_out()

    def say(text: str) -> None:
        console.print(text, soft_wrap=True)

    for disk in document["disks"]:
        if document["dry_run"]:
            for line in disk["commands"]:
                say(line)
            if disk["rule"]:
                console.lines(f"\n{disk['rule']['path']}:\n{disk['rule']['text']}")
        elif document["action"] == "undo":
            say(f"{disk['disk']}: back to {disk['former_scheduler']}")
        else:
            setting = ":".join(
                [document["scheduler"], *(f"{name}={value}" for name, value in document["tunables"].items())]
            )
            kept = (
                f", and at every boot ({disk['rule']['path']})" if disk["rule"] else ", until the next boot"
            )
            say(f"{disk['disk']}: {setting}, was {disk['former_scheduler']}{kept}")
    for remark in document["remarks"]:
        print_note(remark)
