"""udev rules and tuned profiles for a class of drives instead of one drive."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

import blklab
from blklab.errors import UsageError
from blklab.linux.apply.udev import RULES_DIRECTORY, Rule, assignments
from blklab.linux.apply.udev_text import comment, literal_pattern, shell_pattern
from blklab.linux.disks.disk import Disk
from blklab.spec.drive_classes import KINDS, DriveClass, kind_of, known_rotational
from blklab.spec.schedulers import SchedulerChoice

_PREFIX = "89-blklab-class-"
"""Sorts before the rules for single drives (90-blklab-*), which therefore win."""
_MODEL_KEYS = {"nvme": "ATTRS{model}", "scsi": "ATTRS{model}", "mmc": "ATTRS{name}"}
"""udev's key for the model, by kind; other kinds have none in sysfs."""
_TUNED_VARIABLES = re.compile(r"[$\\]|[^\x20-\x7e]")
"""``${…}`` names a variable or calls a function in a profile of tuned."""
_PROPERTY_CHARACTERS = re.compile(r"[^A-Za-z0-9#+\-.:=@_/*?]")
"""udev replaces other characters of a model by underscores (`udev_replace_chars`)."""


def class_of(disk: Disk) -> DriveClass:
    """All drives of a disk's model.

    Raises:
        UsageError: if the disk has no model that a rule could match.
    """
    kind = kind_of(disk.name)
    if kind not in KINDS or kind == "loop" or not disk.model:
        raise UsageError(
            f"{disk.name} has no model that other drives could share", hint="leave out --for-model"
        )
    pattern = literal_pattern(disk.model.strip()) if kind in _MODEL_KEYS else None
    rotational = known_rotational(disk.name, rotational=disk.rotational)
    return DriveClass(model=pattern, kind=kind, rotational=rotational)


def class_rule(
    drive_class: DriveClass,
    kinds: Sequence[str],
    choice: SchedulerChoice,
    evidence: Sequence[str],
    *,
    undo: str = "delete this file",
) -> Rule:
    """Composes the udev rule for a class; writes no file.

    Args:
        drive_class: The class.
        kinds: Kinds of drives (`blklab.spec.drive_classes.KINDS`) that the rule is for.
        choice: The scheduler and tunables to set.
        evidence: Sentences for the comments.
        undo: The command that undoes it.

    Raises:
        UsageError: if udev has no way to match such drives.
    """
    choice = choice.for_disk
    known = [kind for kind in kinds if kind in KINDS]
    if not known:
        raise UsageError(
            f"{drive_class.words} were tested as models only, and udev cannot match a model",
            hint="name a kind of real drives with --kind",
        )
    nameless = [kind for kind in known if kind not in _MODEL_KEYS]
    if drive_class.model is not None and nameless:
        raise UsageError(
            f"{nameless[0]} drives tell udev no model",
            hint=f"leave --model out: --kind {nameless[0]} is for all of them",
        )
    comments = [
        *_origin(drive_class),
        f"Sets the I/O scheduler to {choice.without_label}.",
        *evidence,
        "A rule for a single drive (90-blklab-*) takes precedence.",
        f"To undo it: {undo}",
    ]
    rules = [
        ", \\\n  ".join([*_conditions(drive_class, kind), *assignments(choice)]) + "\n" for kind in known
    ]
    path = RULES_DIRECTORY / f"{_PREFIX}{drive_class.slug}.rules"
    return Rule(path, _as_comments(comments) + "".join(rules))


def is_class_rule(path: Path) -> bool:
    """Tells whether a rules file is for a class of drives."""
    return path.name.startswith(_PREFIX)


def _conditions(drive_class: DriveClass, kind: str) -> list[str]:
    conditions = [
        # Loop devices get their content with a change event.
        f'ACTION=="{"add|change" if kind == "loop" else "add"}"',
        'SUBSYSTEM=="block"',
        'ENV{DEVTYPE}=="disk"',
        f'KERNEL=="{KINDS[kind]}"',
    ]
    if drive_class.model is not None:
        conditions.append(f'{_MODEL_KEYS[kind]}=="{shell_pattern(drive_class.model.strip())}"')
    if drive_class.rotational is not None:
        conditions.append(f'ATTR{{queue/rotational}}=="{int(drive_class.rotational)}"')
    return conditions


def tuned_profile(drive_class: DriveClass, choice: SchedulerChoice, evidence: Sequence[str]) -> str:
    """Composes a tuned profile for a class (``tuned.conf``).

    Raises:
        UsageError: if the choice has tunables, which tuned cannot set by model, or the class has no model.
    """
    if choice.tunables:
        raise UsageError(
            f"tuned's disk plugin sets a scheduler, but not its tunables ({', '.join(choice.tunables)})",
            hint="write a udev rule instead (--udev-rule)",
        )
    if drive_class.model is None:
        raise UsageError("a tuned profile needs a model to match", hint="--model, or --udev-rule instead")
    comments = [
        *_origin(drive_class),
        f"Sets the I/O scheduler to {choice.name}.",
        *evidence,
        "Add it to the profile in use: tuned-adm profile ACTIVE NAME, NAME being this file's folder.",
    ]
    name = fnmatch.translate(_PROPERTY_CHARACTERS.sub("_", drive_class.model.strip()))
    # Properties come as lines KEY=VALUE, in which the expression is searched for.
    pattern = name.removeprefix("(?s:").removesuffix(r")\Z").removesuffix(r")\z")
    lines = [
        "[main]",
        f"summary=I/O scheduler of {_TUNED_VARIABLES.sub('?', drive_class.words)}, written by blklab",
        "",
        "[disk_blklab]",
        "type=disk",
        f"devices_udev_regex=^ID_MODEL={pattern}$",
        f"elevator={choice.name}",
    ]
    return _as_comments(comments) + "\n".join(lines) + "\n"


def _origin(drive_class: DriveClass) -> list[str]:
    now = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    return [f"Written by blklab {blklab.__version__} on {now}, for {drive_class.words}."]


def _as_comments(lines: Sequence[str]) -> str:
    return "".join(map(comment, lines))
