"""udev rules that set a disk's scheduler at every boot."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from blklab.errors import MissingToolError, RequirementError, RunFailedError, reason_of
from blklab.linux.apply.identity import Identity
from blklab.linux.apply.udev_text import assigned, comment, literal_pattern, run_for_device
from blklab.linux.disks.disk import Disk
from blklab.linux.journal.file import sync_directory
from blklab.linux.queue.sysfs import TUNABLE_PREFIX
from blklab.spec.group_settings import ROOT_GROUP, only_group_settings
from blklab.spec.schedulers import SchedulerChoice

RULES_DIRECTORY = Path("/etc/udev/rules.d")
_TRACE = re.compile(r"\.rules:\d+ ")
"""The form in which `udevadm test` lists the lines that it applies; not every version lists them."""
_DAEMON = Path("/run/udev/control")
_NUMBER = 90
"""Sorts after 60-persistent-storage.rules, which sets serial numbers and paths, and after distributions' own
scheduler rules."""
_CONTROL_GROUPS = Path("/sys/fs/cgroup")
"""Mount point of cgroup v2 under systemd, whose udev runs the rule."""


@dataclass(frozen=True)
class Rule:
    """A rules file."""

    path: Path
    text: str


def build_rule(
    disk: Disk, identity: Identity, choice: SchedulerChoice, *, written_by: str, undo: str
) -> Rule:
    """Composes the rule for a disk; writes no file.

    Args:
        disk: The disk, for the comments.
        identity: The matches of the rule.
        choice: The scheduler and tunables to set.
        written_by: Program, version and date.
        undo: The command that undoes it.
    """
    # Every close after writing causes a change event. A rule for change events would undo a comparison's
    # settings in the middle of it. But loop and device-mapper devices get their content only with such an
    # event.
    late = (disk.sys_path / "loop").is_dir() or (disk.sys_path / "dm").is_dir()
    conditions = [
        f'ACTION=="{"add|change" if late else "add"}"',
        'SUBSYSTEM=="block"',
        'ENV{DEVTYPE}=="disk"',
        *(f'{key}=="{literal_pattern(value)}"' for key, value in identity.matches),
    ]
    comments = [
        f"Written by {written_by}.",
        f"Sets the I/O scheduler of {disk.name} ({disk.model or 'unknown model'}) to {choice.without_label}.",
        f"Matches: {identity.description}.",
        *([f"Warning: {identity.warning}."] if identity.warning else []),
        f"To undo it: {undo}",
    ]
    head = "".join(map(comment, comments))
    body = ", \\\n  ".join(conditions + assignments(choice))
    path = RULES_DIRECTORY / f"{_NUMBER}-blklab-{identity.slug}.rules"
    return Rule(path, f"{head}{body}\n")


def assignments(choice: SchedulerChoice) -> list[str]:
    """The part of a rule that sets a scheduler, then what it brings.

    io.cost's parameters are in a file of the root control group, which udev has no key for.
    """
    values = {"scheduler": choice.name, **choice.queue}
    values |= {TUNABLE_PREFIX + name: value for name, value in choice.iosched.items()}
    of_disk = only_group_settings(choice.for_disk.of_groups).get(ROOT_GROUP, {})
    return [
        *(f"ATTR{{queue/{name}}}={assigned(value)}" for name, value in values.items()),
        *(run_for_device(words, str(_CONTROL_GROUPS / attribute)) for attribute, words in of_disk.items()),
    ]


def write_rule(rule: Rule) -> None:
    """Writes a rules file, whole or not at all.

    Raises:
        RequirementError: if it cannot be written.
    """
    draft = rule.path.with_suffix(f".{os.getpid()}.new")  # udev reads *.rules only
    try:
        rule.path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("w", encoding="utf-8") as file:
            file.write(rule.text)
            file.flush()
            os.fsync(file.fileno())
        draft.rename(rule.path)
        sync_directory(rule.path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise RequirementError(f"{rule.path} cannot be written: {reason_of(error)}") from error


def check_rule(rule: Rule, disk: Disk) -> str:
    """Makes udev verify a written rule and test it on its disk.

    Returns:
        How the rule was checked, for people; says so if it could not be.

    Raises:
        RunFailedError: if udev finds a mistake, or does not apply the rule to its disk.
    """
    if shutil.which("udevadm") is None:
        return "not checked: udevadm is missing (apt install udev)"
    verify = subprocess.run(
        ["udevadm", "verify", str(rule.path)], capture_output=True, text=True, check=False
    )
    known = "Unknown command" not in verify.stderr
    if known and verify.returncode != 0:
        complaint = (verify.stderr or verify.stdout).strip().splitlines()
        raise RunFailedError(
            f"udev does not accept {rule.path}: {complaint[0] if complaint else 'no reason given'}"
        )
    if not _DAEMON.exists():
        # `udevadm test` creates links and database entries as the daemon would, so it is harmless only where
        # the daemon has created them already.
        done = "udevadm verify accepts it" if known else "not checked"
        return f"{done}; testing it on this disk needs a running udev daemon"
    trial = subprocess.run(
        ["udevadm", "test", "--action=add", str(disk.sys_path)], capture_output=True, text=True, check=False
    )
    lines = (trial.stdout + trial.stderr).splitlines()
    said = [line for line in lines if rule.path.name in line]
    if any("queue/scheduler" in line and "riting" in line for line in said):
        return ("udevadm verify and " if known else "") + "udevadm test accept it and apply it to this disk"
    complaint = [line for line in said if "eading rules file" not in line]
    if not complaint and not any(_TRACE.search(line) for line in lines):
        return "udevadm test does not list the rules that it applied; check after the next boot"
    raise RunFailedError(
        f"udev does not apply {rule.path} to {disk.name}"
        + (f": {complaint[0].strip()}" if complaint else ""),
        hint="no event of this disk would set the scheduler; use --now-only",
    )


def reload_rules() -> str | None:
    """Makes the udev daemon reload its rules.

    Returns:
        A remark if none is running; otherwise None.
    """
    try:
        answer = subprocess.run(
            ["udevadm", "control", "--reload"], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return "udev is not installed: the rule takes effect once it is (apt install udev)"
    return (
        None
        if answer.returncode == 0
        else "no udev daemon is running: the rule takes effect once one is started"
    )


def require_udev() -> None:
    """Makes sure that udev is installed.

    Raises:
        MissingToolError: if udev is not installed.
    """
    if shutil.which("udevadm") is None:
        raise MissingToolError("udev is not installed", hint="apt install udev, or set it with --now-only")
