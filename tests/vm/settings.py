"""All that a test must leave as it was: queues, modules, mounts, groups, and what blklab may leave."""

from __future__ import annotations

import difflib
import re

from vm.machine import Machine

# One call for all: on an emulated processor each process costs a tenth of a second. Groups of systemd's
# slices come and go with its services, and mounts in /run/user with logins. Once io.cost was on for a
# disk, its line remains, with enable=0.
_READ_ALL = r"""
udevadm settle
cd /sys/fs/cgroup
echo "== queue"; grep -rs . /sys/block/*/queue/
echo "== module"; cut -d' ' -f1 /proc/modules
echo "== mount"; findmnt -rno TARGET,SOURCE,FSTYPE,OPTIONS | grep -v '^/run/user/'
echo "== group"; find . -mindepth 1 -type d | grep -vE '^./(system|user)\.slice(/|$)'
echo "== controllers of the root"; cat cgroup.subtree_control
echo "== io.cost"; grep -s enable=1 io.cost.qos; grep -s ctrl=user io.cost.model
echo "== kernel"; grep -s . /sys/kernel/rcu_expedited /proc/sys/kernel/task_delayacct
echo "== loop device"; losetup --noheadings --list --output NAME,BACK-FILE
echo "== rule"; ls /etc/udev/rules.d /run/udev/rules.d 2>/dev/null
echo "== instance of tracefs"; ls /sys/kernel/tracing/instances
echo "== process"; ps -e -o comm= | grep -E '^(fio|blklab|blkguest)$'
echo "== scratch"; find / /mnt -xdev -path /proc -prune -o -name '.blklab-*' -print 2>/dev/null
echo "== journal"; find /var/lib/blklab/journal -type f -not -name '.*' 2>/dev/null
echo "== disk"; lsblk --nodeps --noheadings --output NAME,SERIAL
"""
_QUEUE = re.compile(r"/sys/block/([^/]+)/queue/(.*)")


def read_settings(machine: Machine) -> list[str]:
    """The settings, line by line; disks by their serial numbers, which a restart does not change."""
    sections: dict[str, list[str]] = {}
    for line in machine.run(_READ_ALL).text.splitlines():
        if line.startswith("== "):
            section = sections.setdefault(line.removeprefix("== "), [])
        else:
            section.append(line)
    serials = {words[0]: words[-1] for words in map(str.split, sections.pop("disk"))}
    queues = [_QUEUE.fullmatch(line) for line in sections["queue"]]
    sections["queue"] = [f"{serials.get(found[1], found[1])}/{found[2]}" for found in queues if found]
    return [f"{name} {line}" for name, lines in sections.items() for line in sorted(set(lines))]


def queues_of(settings: list[str]) -> list[str]:
    """Only what the files of queues hold."""
    return [line for line in settings if line.startswith("queue ")]


def differences(before: list[str], after: list[str]) -> str:
    """The differences from before; empty if there are none."""
    return "\n".join(difflib.unified_diff(before, after, "before", "after", lineterm="", n=0))
