"""Scheduler, tunables and queue attributes of all leaves of a target, as one thing to be set.

What an experiment does not ask for is at the kernel's default for that scheduler. Only initialising a
scheduler anew gives these defaults, so a change of the choice always switches: from another scheduler, or
away and back where two variants of one scheduler follow each other. Without a change nothing is written.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress

from blklab.errors import RunFailedError, TunableError
from blklab.linux.disks.disk import Disk
from blklab.linux.queue.attributes import QUEUE_ATTRIBUTES, read_attribute, tunables, write_attribute
from blklab.linux.queue.schedulers import available_schedulers, set_scheduler
from blklab.linux.queue.sysfs import TUNABLE_PREFIX
from blklab.spec.schedulers import SchedulerChoice

_SCHEDULER = "scheduler"


class QueueSettings:
    """The settings of several disks' queues during a session."""

    def __init__(self, leaves: Sequence[Disk], queue: Mapping[str, str]) -> None:
        for name in queue:
            if "/" in name or name == _SCHEDULER:
                raise TunableError(
                    f"{name!r} is not a queue attribute",
                    hint="schedulers and their tunables belong to the scheduler choice: bfq:slice_idle=0",
                )
        self._leaves = leaves
        # The order matters to the kernel: see QUEUE_ATTRIBUTES.
        known = [name for name in QUEUE_ATTRIBUTES if name in queue]
        self._queue = {name: queue[name] for name in [*known, *(name for name in queue if name not in known)]}
        self._in_force: str | None = None
        self._seen: dict[str, dict[str, str]] = {}

    def forget(self) -> None:
        """Call it when settings were changed otherwise: the next choice is set from scratch."""
        self._in_force = None

    def apply(self, choice: SchedulerChoice) -> dict[str, str]:
        """Brings a choice into force on all leaves.

        Returns:
            All settings in force, read back: ``vda/scheduler``, ``vda/nr_requests``, ``vda/iosched/…``.

        Raises:
            SchedulerUnavailableError, TunableError: if the kernel lacks or refuses something.
            RunFailedError: if settings are not what they were when this choice was first in force.
        """
        wanted = choice.without_label
        if self._in_force == wanted:
            settings = self.read()
            if settings == self._seen[wanted]:
                return settings
        self._in_force = None
        self._set(choice)
        settings = self.read()
        before = self._seen.setdefault(wanted, settings)
        changed = [name for name in before.keys() | settings.keys() if before.get(name) != settings.get(name)]
        if changed:
            details = ", ".join(
                f"{name} was {before.get(name)}, is {settings.get(name)}" for name in sorted(changed)
            )
            raise RunFailedError(
                f"settings of {wanted} are not what they were in its first run: {details}",
                hint="something else changes them: udev rules, tuned, or a person",
            )
        self._in_force = wanted
        return settings

    def read(self) -> dict[str, str]:
        """All settings in force."""
        settings: dict[str, str] = {}
        for leaf in self._leaves:
            settings[f"{leaf.name}/{_SCHEDULER}"] = read_attribute(leaf, _SCHEDULER)
            for name in dict.fromkeys([*QUEUE_ATTRIBUTES, *self._queue]):
                with suppress(TunableError):  # not every kernel has every attribute
                    settings[f"{leaf.name}/{name}"] = read_attribute(leaf, name)
            for name, value in tunables(leaf).items():
                settings[f"{leaf.name}/{TUNABLE_PREFIX}{name}"] = value
        return settings

    def commands(self, choice: SchedulerChoice, offered: Sequence[str]) -> list[str]:
        """The writes that bring a choice into force, whatever was before, as shell commands."""
        lines = []
        for leaf in self._leaves:
            folder = leaf.sys_path / "queue"
            other = _other_scheduler(offered, choice.name)
            writes = [(_SCHEDULER, other)] if other is not None else []
            writes += [(_SCHEDULER, choice.name), *self._queue.items()]
            writes += [(f"{TUNABLE_PREFIX}{name}", value) for name, value in choice.tunables.items()]
            lines += [
                f"echo {shlex.quote(value)} > {shlex.quote(str(folder / name))}" for name, value in writes
            ]
        return lines

    def _set(self, choice: SchedulerChoice) -> None:
        for leaf in self._leaves:
            active, offered = available_schedulers(leaf)
            if active == choice.name:
                other = _other_scheduler(offered, choice.name)
                if other is not None:
                    set_scheduler(leaf, other)
            set_scheduler(leaf, choice.name)
            asked = {
                **self._queue,
                **{f"{TUNABLE_PREFIX}{name}": text for name, text in choice.tunables.items()},
            }
            kept = {}
            for name, value in asked.items():
                if read_attribute(leaf, name) != value:
                    write_attribute(leaf, name, value)
                kept[name] = read_attribute(leaf, name)
            # Writing one attribute can change another one that was asked for too.
            for name, value in kept.items():
                now = read_attribute(leaf, name)
                if now != value:
                    raise TunableError(
                        f"{leaf.name}: {name} = {asked[name]} does not hold under {choice.without_label}:"
                        f" another setting makes it {now}"
                    )


def _other_scheduler(offered: Sequence[str], name: str) -> str | None:
    """A scheduler to switch to before switching back: the cheapest one that there is."""
    others = [other for other in offered if other != name]
    return "none" if "none" in others else next(iter(others), None)
