"""Sets scheduler, tunables and queue attributes on all leaves of a target together.

Settings that an experiment does not choose have the kernel's defaults for that scheduler. Only initialising a
scheduler restores these defaults, so a new choice always switches: from another scheduler, or away and back
if two variants of one scheduler follow each other. If the choice does not change, no settings are written.

Initialising a scheduler leaves most attributes of the queue as they are. Those that a choice brings are
therefore taken back when another one follows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from blklab.errors import SettingsChangedError, TunableError
from blklab.linux.cgroups.cost_control import CostControl
from blklab.linux.disks.disk import Disk
from blklab.linux.machine.host_change import HostChange, shell_of
from blklab.linux.queue.attributes import note_on_place, read_attribute, tunables
from blklab.linux.queue.changes import QueueWrite, SchedulerSwitch
from blklab.linux.queue.schedulers import available_schedulers, is_foreign
from blklab.linux.queue.sysfs import TUNABLE_PREFIX
from blklab.spec.queue_attributes import QUEUE_ATTRIBUTES
from blklab.spec.schedulers import SchedulerChoice

_SCHEDULER = "scheduler"


class QueueSettings:
    """The settings of several disks' queues during a session."""

    def __init__(self, leaves: Sequence[Disk], queue: Mapping[str, str]) -> None:
        for name in queue:
            if "/" in name or name == _SCHEDULER:
                raise TunableError(
                    f"{name!r} is not a queue attribute",
                    hint="set schedulers and their tunables with the scheduler: bfq:slice_idle=0",
                )
        self._leaves = leaves
        self._queue = dict(queue)
        self._usual: dict[tuple[str, str], dict[str, str]] = {}
        """By leaf and scheduler: attributes that choices bring, as they are without these choices."""
        self._cost = CostControl()
        self._moved: dict[str, str] = {}
        self._seen: dict[str, dict[str, str]] = {}
        self._chosen: set[str] = set()
        """Attributes that the choice in force, or a change since then, has written."""

    def learn(self, choices: Sequence[SchedulerChoice]) -> None:
        """Switches to each scheduler and reads the attributes of the queue that some choice brings.

        Call it before the first `apply` of such a choice: some attributes depend on the scheduler (bfq turns
        ``wbt_lat_usec`` off), and none of them tells what it was before it was written.

        Raises:
            SchedulerUnavailableError, TunableError: if the kernel lacks a scheduler or an attribute.
        """
        brought = {name for choice in choices for name in choice.queue}
        if not brought:
            return
        for leaf in self._leaves:
            for name in dict.fromkeys(choice.name_in_queue for choice in choices):
                self._initialise(leaf, name)
                self._usual[leaf.name, name] = {
                    attribute: read_attribute(leaf, attribute) for attribute in brought
                }

    def apply(self, choice: SchedulerChoice) -> dict[str, str]:
        """Applies a choice to all leaves. The scheduler begins anew, also if it was in force.

        So the load before does not decide how fast this one is: ten readers under bfq had a quarter of their
        speed in all runs after a certain one, until bfq began anew.

        Args:
            choice: A scheduler with its tunables.

        Returns:
            All settings, read back: ``vda/scheduler``, ``vda/nr_requests``, ``vda/iosched/…``.

        Raises:
            SchedulerUnavailableError, TunableError: if the kernel lacks or refuses a setting.
            SettingsChangedError: if settings differ from those when this choice was first applied.
        """
        wanted = choice.without_label
        self._set(choice)
        settings = self.read()
        before = self._seen.setdefault(wanted, settings)
        changed = self._disturbed(before, settings)
        if changed:
            details = ", ".join(f"{name} was {before.get(name)}, is {settings.get(name)}" for name in changed)
            raise SettingsChangedError(
                f"settings under {wanted} differ from its first run: {details}",
                hint="something else changes them: udev rules, tuned, or a person",
            )
        return settings

    def change(self, name: str, value: str) -> None:
        """Writes one setting of all leaves while a load runs; the next `apply` writes everything.

        Args:
            name: As in sysfs: ``nr_requests``, ``iosched/slice_idle``.
            value: Its value.

        Raises:
            TunableError: if the kernel lacks the setting or refuses the value.
        """
        for write in self.writes(name, value):
            write.make()
            self._chosen.add(write.place)

    def notes(self) -> list[str]:
        """Notes on settings that this kernel has in another place than asked for, once they were applied."""
        return [note_on_place("this kernel", of_queue="/" not in here) for here in self._moved.values()]

    def changed_since(self, before: Mapping[str, str]) -> list[str]:
        """Names of settings that are not as `read` or `apply` found them then, in order.

        Without tunables that a foreign scheduler may change itself (`is_foreign`), unless they were chosen.
        """
        return self._disturbed(before, self.read())

    def read(self) -> dict[str, str]:
        """Reads all settings."""
        settings: dict[str, str] = {}
        for leaf in self._leaves:
            settings[f"{leaf.name}/{_SCHEDULER}"] = read_attribute(leaf, _SCHEDULER)
            for name in dict.fromkeys([*QUEUE_ATTRIBUTES, *self._queue]):
                with suppress(TunableError):  # not every kernel has every attribute
                    settings[f"{leaf.name}/{name}"] = read_attribute(leaf, name)
            for name, value in tunables(leaf).items():
                settings[f"{leaf.name}/{TUNABLE_PREFIX}{name}"] = value
        return settings

    def writes(self, name: str, value: str) -> list[QueueWrite]:
        """The changes that `change` makes."""
        return [QueueWrite(leaf, name, value, follows=True) for leaf in self._leaves]

    def commands(
        self, choice: SchedulerChoice, offered: Sequence[str], *, under_cost: bool = False
    ) -> list[str]:
        """The changes that apply a choice from any state, as shell commands."""
        changes: list[HostChange] = []
        for leaf in self._leaves:
            switch = replace(self._switch(leaf, choice.name_in_queue, offered), under_cost=under_cost)
            changes += [switch, *self._asked_writes(leaf, choice)]
        return shell_of(changes)

    def _disturbed(self, before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
        return [name for name in _different(before, now) if not self._moves_itself(name, before)]

    def _moves_itself(self, name: str, settings: Mapping[str, str]) -> bool:
        leaf, _, attribute = name.partition("/")
        is_free = attribute.startswith(TUNABLE_PREFIX) and attribute not in self._chosen
        return is_free and is_foreign(settings.get(f"{leaf}/{_SCHEDULER}"))

    def _set(self, choice: SchedulerChoice) -> None:
        self._chosen = set()
        for leaf in self._leaves:
            self._initialise(leaf, choice.name_in_queue)
            kept: dict[str, str] = {}
            asked_of: dict[str, str] = {}
            for write in self._asked_writes(leaf, choice):
                name = write.place
                if name != write.name:
                    self._moved[write.name] = name
                asked_of[name] = write.value
                if not write.holds():
                    write.make()
                kept[name] = read_attribute(leaf, name)
            self._chosen |= kept.keys()
            # Writing one attribute can change another requested one.
            for name, value in kept.items():
                now = read_attribute(leaf, name)
                if now != value:
                    raise TunableError(
                        f"{leaf.name}: {name} = {asked_of[name]} is impossible under {choice.without_label}:"
                        f" another setting changes it to {now}"
                    )

    def _asked_writes(self, leaf: Disk, choice: SchedulerChoice) -> list[QueueWrite]:
        asked = self._asked(leaf, choice)
        return [QueueWrite(leaf, name, value, follows=True) for name, value in asked.items()]

    def _asked(self, leaf: Disk, choice: SchedulerChoice) -> dict[str, str]:
        """All settings of a choice but the scheduler, in the order in which they are written."""
        usual = dict(self._usual.get((leaf.name, choice.name_in_queue), {}))
        usual |= {name: value for name, value in self._cost.held(leaf).items() if name in usual}
        queue = usual | self._queue | choice.queue
        # The order matters to the kernel: see QUEUE_ATTRIBUTES.
        known = [name for name in QUEUE_ATTRIBUTES if name in queue]
        return {
            **{name: queue[name] for name in [*known, *(name for name in queue if name not in known)]},
            **{f"{TUNABLE_PREFIX}{name}": text for name, text in choice.iosched.items()},
        }

    def held(self, leaf: Disk) -> Collection[str]:
        """Attributes of a disk's queue that the kernel holds while io.cost is on."""
        return self._cost.held(leaf)

    def _initialise(self, leaf: Disk, name: str) -> None:
        """Sets a scheduler with the kernel's defaults, which depend on whether io.cost is on."""
        self._switch(leaf, name, available_schedulers(leaf)[1]).make()

    def _switch(self, leaf: Disk, name: str, offered: Sequence[str]) -> SchedulerSwitch:
        return SchedulerSwitch(leaf, name, _other_scheduler(offered, name), self._cost)


def settings_of_disk(settings: Mapping[str, str], disk: str) -> dict[str, str]:
    """One disk's settings, without its scheduler, by the names that choices use.

    Args:
        settings: As `QueueSettings.read` names them: ``vda/nr_requests``, ``vda/iosched/slice_idle``.
        disk: The disk's name.
    """
    own = {
        name.removeprefix(f"{disk}/"): value
        for name, value in settings.items()
        if name.startswith(f"{disk}/")
    }
    return {name.removeprefix(TUNABLE_PREFIX): value for name, value in own.items() if name != _SCHEDULER}


def _different(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))


def _other_scheduler(offered: Sequence[str], name: str) -> str | None:
    """The scheduler to switch to before switching back: none if available, since it is cheapest."""
    others = [other for other in offered if other != name]
    return "none" if "none" in others else next(iter(others), None)
