"""Programs and rules that would overwrite the scheduler that `blklab apply` sets, and the remedy for each."""

from __future__ import annotations

from pathlib import Path

from blklab.linux.apply.identity import properties_of
from blklab.linux.apply.overriding.setting import Overrider, Setting
from blklab.linux.apply.overriding.tlp import overriding_tlp
from blklab.linux.apply.overriding.tmpfiles import overriding_tmpfiles
from blklab.linux.apply.overriding.tuned import overriding_profiles
from blklab.linux.apply.overriding.udev_rules import overriding_rules
from blklab.linux.apply.udev import Rule
from blklab.linux.disks.disk import Disk
from blklab.spec.schedulers import SchedulerChoice


def overriders(
    disk: Disk, choice: SchedulerChoice, rule: Rule | None, root: Path = Path("/")
) -> list[Overrider]:
    """Finds them in the machine's configuration; changes nothing.

    Args:
        disk: The disk.
        choice: The scheduler and tunables that it is to keep.
        rule: The rule that sets them; None if they are set until the next boot only.
        root: The root of the file system that has the configuration.
    """
    both = rule is not None and 'ACTION=="add|change"' in rule.text
    setting = Setting(
        disk=disk,
        choice=choice,
        rule_name=None if rule is None else rule.path.name,
        events=frozenset({"add", "change"} if both else {"add"}),
        properties=properties_of(disk),
    )
    found = [
        *overriding_rules(setting, root),
        *overriding_profiles(setting, root),
        *overriding_tlp(setting, root),
    ]
    # systemd-tmpfiles writes at boot, when a setting without a rule is lost anyway.
    return found if rule is None else [*found, *overriding_tmpfiles(setting, root)]
