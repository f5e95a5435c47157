"""Settings of control groups that belong to a scheduler's choice: ``GROUP/ATTRIBUTE=VALUE``.

A name is the path of the kernel's file below the groups of a run, and for files with several words the word's
key behind it:

=========================== =============================================================================
``batch/io.bfq.weight``     a weight of the group ``batch``
``batch/io.max.rbps``       one of its limits: ``rbps`` of ``io.max``
``/io.cost.qos.min``        a parameter of io.cost, in the root group; it belongs to the disk
=========================== =============================================================================

So every setting is one name with one value, as tunables and attributes of the queue are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from blklab.errors import UsageError

ROOT_GROUP = "/"
"""The name of the root group in a specification."""
KEYED = ("io.max", "io.latency", "io.cost.qos", "io.cost.model")
"""Attributes that hold words ``KEY=VALUE`` for each disk."""
OF_DISK = ("io.cost.qos", "io.cost.model")
"""Attributes of the root group alone: parameters of a disk."""
ATTRIBUTE_PATTERN = r"(?:blkio|ioband|io)\.[a-z0-9_.\-]+"
"""Of an attribute, as a regular expression."""
NAME_PATTERN = rf"[A-Za-z0-9_.\-/]*/{ATTRIBUTE_PATTERN}"
"""Of a name, likewise."""
COST_ENABLE = "/io.cost.qos.enable"
"""The switch of io.cost."""
_EXAMPLE_KEYS = {"io.max": "rbps", "io.latency": "target", "io.cost.qos": "enable", "io.cost.model": "rbps"}
_DEVICE_NUMBER = re.compile(r"\d+:\d+\s+")


@dataclass(frozen=True)
class GroupSetting:
    """The place of one value: a group, its attribute, and the word if the attribute has several."""

    group: str
    """`ROOT_GROUP` for the root."""
    attribute: str
    key: str | None

    @property
    def name(self) -> str:
        """Its name in the grammar of schedulers."""
        folder = "" if self.group == ROOT_GROUP else self.group
        return f"{folder}/{self.without_group}"

    @property
    def without_group(self) -> str:
        """``io.max.rbps``: its name whatever the group."""
        return self.attribute if self.key is None else f"{self.attribute}.{self.key}"

    @property
    def is_of_disk(self) -> bool:
        """Whether it is a parameter of the disk, not of a group of processes."""
        return self.attribute in OF_DISK

    @property
    def is_weight(self) -> bool:
        """Whether it is a weight, by which groups share the disk."""
        return self.attribute.endswith("weight")


def parse_group_setting(name: str) -> GroupSetting:
    """Reads the name of a setting.

    Raises:
        UsageError: if the attribute needs a key, or belongs to the root group.
    """
    folder, _, file = name.rpartition("/")
    group = folder or ROOT_GROUP
    attribute = next((one for one in KEYED if file == one or file.startswith(f"{one}.")), None)
    if attribute is None:
        return GroupSetting(group, file, None)
    key = file.removeprefix(attribute).removeprefix(".")
    if not key:
        raise UsageError(
            f"{name} has several values", hint=f"name one of them, such as {name}.{_EXAMPLE_KEYS[attribute]}"
        )
    if attribute in OF_DISK and group != ROOT_GROUP:
        raise UsageError(f"{name}: {attribute} belongs to the root group", hint=f"write /{file}")
    return GroupSetting(group, attribute, key)


def is_group_setting(name: str) -> bool:
    """Whether a setting of a choice belongs to a control group, by its name."""
    return "/" in name


def with_group_settings(
    groups: Mapping[str, Mapping[str, str]], settings: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """Attributes of groups as an experiment has them, with a choice's settings over them.

    Args:
        groups: By group and attribute, as `Conditions.cgroups` has them.
        settings: By name in the grammar; the others are left as they are.

    Returns:
        By group and attribute; words of one attribute are put together.
    """
    found = {group: dict(attributes) for group, attributes in groups.items()}
    for name, value in settings.items():
        if not is_group_setting(name):
            continue
        place = parse_group_setting(name)
        attributes = found.setdefault(place.group, {})
        if place.key is None:
            attributes[place.attribute] = value
            continue
        given = attributes.get(place.attribute, "")
        number = _DEVICE_NUMBER.match(given)
        words = words_of(given) | {place.key: value}
        line = " ".join(f"{key}={word}" for key, word in words.items())
        attributes[place.attribute] = (number[0] if number else "") + line
    return found


def words_of(line: str) -> dict[str, str]:
    """The words ``KEY=VALUE`` of a keyed attribute's line, with or without a disk's number before them."""
    number = _DEVICE_NUMBER.match(line)
    return dict(word.partition("=")[::2] for word in line[number.end() if number else 0 :].split())


def only_group_settings(settings: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """A choice's settings alone, by group and attribute."""
    return with_group_settings({}, settings)


def group_settings(settings: Iterable[str]) -> list[GroupSetting]:
    """The settings of groups among a choice's, by their names, in order."""
    return [parse_group_setting(name) for name in settings if is_group_setting(name)]


def cost_is_enabled(groups: Mapping[str, Mapping[str, str]]) -> bool:
    """Whether io.cost controls the disk, so that ``io.weight`` has an effect under any scheduler."""
    return words_of(groups.get(ROOT_GROUP, {}).get("io.cost.qos", "")).get("enable") == "1"
