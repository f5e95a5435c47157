"""`blklab fleet`: which scheduler for a class of drives, from the stored runs of many."""

from __future__ import annotations

import json
import shlex
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import click

from blklab.analysis.drives import Drive, LeftOut, drive_of
from blklab.analysis.fleet import FleetAnalysis, analyse_fleet
from blklab.cli.commands import described_command
from blklab.cli.options import inference_options, json_option, store_option
from blklab.cli.output import require_writable, write_text
from blklab.cli.tables import plain_table
from blklab.errors import RefusedError, UnknownNameError, UsageError
from blklab.linux.apply.class_rule import class_rule, tuned_profile
from blklab.linux.apply.unit_settings import unit_commands
from blklab.records.samples import DiskDescription
from blklab.records.store import Store
from blklab.report.documents.fleet import fleet_document
from blklab.report.sentences.answer import basis_text
from blklab.report.terminal import console_out, print_note
from blklab.report.text.fleet import evidence_lines, render_fleet
from blklab.spec.drive_classes import KINDS, VIRTUAL, DriveClass, kind_of, known_rotational
from blklab.spec.experiment import DEFAULT_CONFIDENCE, DEFAULT_MARGIN
from blklab.spec.goals import GRAMMAR_HINT, Goal, parse_goal
from blklab.spec.schedulers import SchedulerChoice, parse_scheduler_choice

CLASSES_SCHEMA = "blklab.classes/1"


def fleet_verdict(
    drive_class: DriveClass,
    store_url: str | None,
    *,
    confidence: float = DEFAULT_CONFIDENCE,
    margin: float = DEFAULT_MARGIN,
    goal: Goal | None = None,
    with_studies: bool = False,
    only_models: bool = False,
) -> FleetAnalysis:
    """The verdict for a class of drives from all stored experiments on them.

    Experiments on models count only if the class has no other drives, or if `only_models` is set. Those that
    are parts of studies count only if `with_studies` is set.

    Raises:
        UnknownNameError: if no stored experiment tested such a drive, or the goal names an unknown metric.
        StoreError: if the store cannot be used.
    """
    with Store.opened(store_url) as store:
        stored = [one for one in store.list_targets() if with_studies or not one.study]
        matching = [
            one
            for one in stored
            if any(
                drive_class.includes(name=disk.name, model=disk.model, rotational=disk.rotational)
                for disk in one.target.disks
            )
        ]
        on_hosts = [one.run_id for one in matching if one.target.backend == "host"]
        on_models = [one.run_id for one in matching if one.target.backend != "host"]
        wanted = on_models if only_models or not on_hosts else on_hosts
        if not wanted:
            raise _untested(drive_class, [disk for one in stored for disk in one.target.disks])
        records = [store.load(run_id) for run_id in wanted]
    left_out = [LeftOut("models", on_models)] if on_models and wanted is on_hosts else []
    return analyse_fleet(records, confidence=confidence, margin=margin, goal=goal, left_out=left_out)


def _untested(drive_class: DriveClass, disks: Sequence[DiskDescription]) -> UnknownNameError:
    """Why no disk among those that were tested belongs to a class."""
    either = replace(drive_class, rotational=None)
    virtual = {
        kind_of(disk.name)
        for disk in disks
        if drive_class.rotational is not None
        and known_rotational(disk.name, rotational=disk.rotational) is None
        and either.includes(name=disk.name, model=disk.model, rotational=None)
    }
    hint = "`blklab fleet` without options lists the models that were tested"
    if kinds := sorted(virtual.intersection(VIRTUAL)):
        hint = f"virtual disks do not tell whether they rotate: --kind {' or --kind '.join(kinds)}"
    return UnknownNameError(f"no stored run tested {drive_class.words}", hint=hint)


def recommended(found: FleetAnalysis, drive_class: DriveClass, *, force: bool) -> SchedulerChoice:
    """The scheduler that a class's verdict recommends.

    Raises:
        RefusedError: if it is undecided or withheld and `force` is not set, or names a guest kernel.
    """
    verdict = found.verdict
    label = verdict.choice
    if verdict.status in ("undecided", "withheld") or label is None:
        if not force or not verdict.candidates:
            raise RefusedError(
                f"there is no recommendation for {drive_class.words}: {basis_text(verdict.basis)}",
                hint="measure more drives, or name one yourself (`blklab apply SCHEDULER --for-model`)"
                + ("; --force takes the first that is not ruled out" if verdict.candidates else ""),
            )
        label = verdict.candidates[0]
    choice = parse_scheduler_choice(label)
    if choice.kernel is not None:
        raise RefusedError(
            f"{label} is a scheduler of a guest kernel, and no rule changes the kernel",
            hint="compare on disks of machines",
        )
    return choice


@described_command(
    name="fleet",
    examples=(
        ("the models that were tested", "blklab fleet"),
        ("one verdict for a model", "blklab fleet --model 'Samsung SSD 9*'"),
        (
            "a udev rule for all drives that rotate, with its evidence",
            "blklab fleet --rotational --udev-rule 60-io-scheduler.rules",
        ),
    ),
)
@click.option("--model", metavar="PATTERN", help="Drives of this model; * and ? stand for any characters.")
@click.option("--kind", type=click.Choice(list(KINDS)), help="Drives of this kind; scsi has SATA and USB.")
@click.option("--rotational/--no-rotational", default=None, help="Only drives that rotate, or do not.")
@click.option(
    "--goal",
    "goal_text",
    metavar="GOAL",
    help=f"Decide by a goal over all workloads: {GRAMMAR_HINT}. Default: each workload by its own metric.",
)
@inference_options("schedulers")
@click.option(
    "--udev-rule", "rule_file", metavar="FILE", help="Write a udev rule for the class, with its evidence."
)
@click.option(
    "--tuned-profile", "profile_file", metavar="FILE", help="Write a tuned profile likewise (tuned.conf)."
)
@click.option(
    "--models", "only_models", is_flag=True, help="Judge modelled disks. Default: only if no drive matches."
)
@click.option("--all", "with_studies", is_flag=True, help="Take the runs that are parts of studies too.")
@click.option("--force", is_flag=True, help="Write them although the verdict is undecided or withheld.")
@json_option
@store_option
def command(
    *,
    model: str | None,
    kind: str | None,
    rotational: bool | None,
    goal_text: str | None,
    confidence: float,
    margin: float,
    rule_file: str | None,
    profile_file: str | None,
    only_models: bool,
    with_studies: bool,
    force: bool,
    json_file: str | None,
    store_url: str | None,
) -> None:
    """Find out which scheduler is best for a class of drives, from the stored runs on many of them.

    A drive counts once, with its newest run of each workload. Modelled disks count only where the class has
    no drive of a host. Without options, list the models that were tested.
    """
    if model is None and kind is None and rotational is None:
        if rule_file is not None or profile_file is not None or goal_text is not None:
            raise UsageError("name the class", hint="--model, --kind or --rotational")
        _list_classes(store_url, json_file, with_studies=with_studies)
        return
    outputs = (json_file, rule_file, profile_file)
    require_writable(*outputs)
    drive_class = DriveClass(model=model, kind=kind, rotational=rotational)
    goal = None if goal_text is None else parse_goal(goal_text)
    found = fleet_verdict(
        drive_class,
        store_url,
        confidence=confidence,
        margin=margin,
        goal=goal,
        with_studies=with_studies,
        only_models=only_models,
    )
    if json_file is not None:
        document = fleet_document(drive_class, found)
        write_text(json_file, document.model_dump_json(by_alias=True, indent=2))
    if "-" not in outputs:
        render_fleet(found, drive_class, console_out())
    if rule_file is None and profile_file is None:
        return
    choice = recommended(found, drive_class, force=force)
    kinds = sorted({drive.kind for drive in found.drives})
    if rule_file is not None:
        write_text(rule_file, class_rule(drive_class, kinds, choice, evidence_lines(found)).text)
        print_note(
            f"{rule_file}: put it into /etc/udev/rules.d on the hosts of the fleet, or run "
            "`blklab apply fleet --device DEVICE` on each"
        )
        for left in unit_commands(choice, "DEVICE", {}):
            print_note(left.text)
    if profile_file is not None:
        write_text(profile_file, tuned_profile(drive_class, choice, evidence_lines(found)))
        folder = Path(profile_file).resolve().parent.name if profile_file != "-" else "NAME"
        print_note(
            f"{profile_file}: put it into /etc/tuned/{folder}, and add it to the profile in use "
            f"(`tuned-adm profile ACTIVE {folder}`)"
        )


@dataclass(frozen=True)
class _Tested:
    """A model of drives, or the form of modelled disks, and what is stored of it."""

    modelled: bool
    model: str
    kind: str
    rotational: bool | None
    drives: int
    hosts: list[str]
    experiments: int


def _tested_models(store_url: str | None, *, with_studies: bool) -> list[_Tested]:
    found: dict[tuple[bool, str, str, bool | None], list[Drive]] = defaultdict(list)
    with Store.opened(store_url) as store:
        for stored in store.list_targets():
            if stored.study and not with_studies:
                continue
            drive = drive_of(stored.target, stored.machine)
            if drive is not None:
                found[drive.modelled, drive.model, drive.kind, drive.rotational].append(drive)
    return [
        _Tested(
            *key,
            drives=len({drive.identity for drive in drives}),
            hosts=sorted({drive.host for drive in drives if drive.host}),
            experiments=len(drives),
        )
        for key, drives in sorted(found.items(), key=lambda item: (item[0][0], str(item[0])))
    ]


def _list_classes(store_url: str | None, json_file: str | None, *, with_studies: bool) -> None:
    """Lists models with the drives and experiments that are stored of each."""
    rows = _tested_models(store_url, with_studies=with_studies)
    if json_file is not None:
        content = {"schema": CLASSES_SCHEMA, "classes": [asdict(row) for row in rows]}
        write_text(json_file, json.dumps(content, indent=2, ensure_ascii=False))
        return
    console = console_out()
    if not rows:
        console.print("no run is stored yet; `blklab compare` makes one")
        return
    drives = [row for row in rows if not row.modelled]
    models = [row for row in rows if row.modelled]
    words = {True: "yes", False: "no", None: ""}
    if drives:
        table = plain_table(("model", "kind", "rotational"), ("drives", "hosts", "experiments"))
        for row in drives:
            counts = (row.drives, len(row.hosts), row.experiments)
            unknown = row.rotational is None and row.kind in VIRTUAL
            rotates = "virtual disk" if unknown else words[row.rotational]
            table.add_row(row.model, row.kind, rotates, *map(str, counts))
        console.print(table)
    if models:
        if drives:
            console.print()
        table = plain_table(("modelled disks (--models)", "rotational"), ("variants", "experiments"))
        for row in models:
            table.add_row(row.model, words[row.rotational], str(row.drives), str(row.experiments))
        console.print(table)
    model = shlex.quote((drives or models)[0].model)
    console.print(f"next: blklab fleet --model {model}", soft_wrap=True)
