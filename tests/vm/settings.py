"""All that must be as before after each test: queues, modules, mounts, groups and what else blklab may leave."""

from __future__ import annotations

import difflib

from vm.machine import Machine

# One call for all: on an emulated processor each process costs a hundredth of a second or more. Groups of systemd's
# own slices and scopes come and go with its services.
_READ_ALL = r"""
udevadm settle
echo "== queues";    grep -rs . /sys/block/*/queue/ | sort
echo "== modules";   cut -d' ' -f1 /proc/modules | sort
echo "== mounts";    findmnt --raw --noheadings --output TARGET,SOURCE,FSTYPE,OPTIONS | grep -v '^/run/user/' | sort
echo "== groups";    find /sys/fs/cgroup -mindepth 1 -type d | grep -vE '/(system|user)\.slice/|/(system|user)\.slice$' | sort
echo "== controllers"; cat /sys/fs/cgroup/cgroup.subtree_control
echo "== root group"; grep -s . /sys/fs/cgroup/io.cost.qos /sys/fs/cgroup/io.cost.model
echo "== settings";  grep -s . /sys/kernel/rcu_expedited /proc/sys/kernel/task_delayacct
echo "== loop devices"; losetup --noheadings --list --output NAME,BACK-FILE
echo "== rules";     ls /etc/udev/rules.d /run/udev/rules.d 2>/dev/null
echo "== tracing";   ls /sys/kernel/tracing/instances
echo "== processes"; ps -e -o comm= | grep -E '^(fio|blklab|blkguest)$'
echo "== scratch";   find / /mnt -xdev -path /proc -prune -o -name '.blklab-*' -print 2>/dev/null | sort -u
echo "== journals";  find /var/lib/blklab/journal -type f 2>/dev/null
true
"""


def read_settings(machine: Machine) -> list[str]:
    """The settings, line by line."""
    return machine.run(_READ_ALL).text.splitlines()


def differences(before: list[str], after: list[str]) -> str:
    """What is not as before, empty if all is."""
    return "\n".join(
        line for line in difflib.unified_diff(before, after, "before", "after", lineterm="", n=0)
    )
