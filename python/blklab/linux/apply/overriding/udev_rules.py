"""Other udev rules that set a disk's scheduler after blklab's own, or at events that it ignores.

udev(7) reads rules files in the order of their names, whatever their folder; a file in /etc replaces one of
the same name in /run and /usr/lib. Programs of RUN start after all rules. Conditions that depend on more
than sysfs and known properties count as possible.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from blklab.linux.apply.overriding.setting import (
    Overrider,
    Setting,
    configuration_files,
    how_to_edit,
    lines_of,
    shown,
)
from blklab.linux.machine.kernel_files import text_or_empty

OWN_FOLDER = "etc/udev/rules.d"
FOLDERS = (
    OWN_FOLDER,
    "run/udev/rules.d",
    "usr/local/lib/udev/rules.d",
    "usr/lib/udev/rules.d",
    "lib/udev/rules.d",
)
_EVENTS = ("add", "change")
_TOKEN = re.compile(r'([A-Z_]+)(?:\{([^}]*)\})?\s*(==|!=|\+=|-=|:=|=)\s*[ei]?"((?:[^"\\]|\\.)*)"')
_QUEUE = "queue/"
_COST_PROGRAM = re.compile(r"\bio\.cost\.|\biocost\b")
"""systemd's 90-iocost.rules run `iocost apply` for drives that its hardware database knows."""


@dataclass(frozen=True)
class _Token:
    key: str
    attribute: str
    operator: str
    value: str

    @property
    def is_condition(self) -> bool:
        return self.operator in ("==", "!=")


def overriding_rules(setting: Setting, root: Path) -> Iterator[Overrider]:
    """Rules that would change a setting."""
    for path in configuration_files(root, FOLDERS, ".rules"):
        if path.name == setting.rule_name:
            continue
        for number, line in _logical_lines(lines_of(path)):
            tokens = [_Token(*match) for match in _TOKEN.findall(line)]
            what = _changes(tokens, setting)
            if what is None:
                continue
            matches, events = _conditions(tokens, setting)
            when = _when(path.name, events, setting, by_program=what.startswith("runs"))
            if matches is False or when is None:
                continue
            perhaps = "" if matches else " if its other conditions hold"
            yield Overrider(
                f"{shown(path, root)}:{number}",
                f"{what} for {setting.disk.name}{perhaps}, {when}",
                _remedy(path, root),
            )


def _remedy(path: Path, root: Path) -> str:
    if "-blklab-" in path.name:
        return "it was written by blklab: undo it with `blklab apply --undo`, or remove it"
    return how_to_edit(path, root, OWN_FOLDER)


def _logical_lines(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Rules with the number of their first line; comments and continuations resolved."""
    start, text = 0, ""
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("#"):
            continue
        start = start if text else number
        text += line.rstrip().removesuffix("\\")
        if not line.rstrip().endswith("\\"):
            if text.strip():
                yield start, text
            text = ""
    if text.strip():
        yield start, text


def _changes(tokens: list[_Token], setting: Setting) -> str | None:
    """The other value that a rule gives an attribute; None if it changes none of the setting's."""
    for token in tokens:
        if token.is_condition:
            continue
        name = token.attribute.removeprefix(_QUEUE)
        if token.key == "ATTR" and token.attribute.startswith(_QUEUE):
            wanted = setting.wanted.get(name)
            if wanted is not None and token.value.strip() != wanted:
                return f"sets {name} to {token.value.strip() or 'nothing'}"
        if token.key == "RUN" and "queue/scheduler" in token.value:
            return f"runs a program that sets the scheduler ({token.value[:60]})"
        if token.key == "RUN" and setting.sets_cost and _COST_PROGRAM.search(token.value):
            return f"runs a program that sets io.cost ({token.value[:60]})"
    return None


def _when(name: str, events: frozenset[str], setting: Setting, *, by_program: bool) -> str | None:
    """The circumstances in which it wins against the setting's own rule; None if it never does."""
    if not events:
        return None
    if setting.rule_name is None:
        return f"at every {' or '.join(sorted(events))} event"
    if by_program and events & setting.events:
        return "after all rules"
    if name > setting.rule_name and events & setting.events:
        return "after blklab's rule"
    others = events - setting.events
    return f"at {' and '.join(sorted(others))} events, which blklab's rule ignores" if others else None


def _conditions(tokens: list[_Token], setting: Setting) -> tuple[bool | None, frozenset[str]]:
    """Whether a rule matches the disk (None: perhaps), and the events at which it does."""
    events = frozenset(_EVENTS)
    certain = True
    for token in tokens:
        if not token.is_condition:
            continue
        if token.key == "ACTION":
            events = frozenset(event for event in events if _fits(token, event))
            continue
        found = _holds(token, setting)
        if found is False:
            return False, frozenset()
        certain = certain and found is True
    return (True if certain else None), events


def _holds(token: _Token, setting: Setting) -> bool | None:
    """Whether one condition holds for the disk; None if that is not known."""
    folder = setting.disk.sys_path
    plain = _Token(token.key, token.attribute, "==", token.value)
    value = {"KERNEL": setting.disk.name, "SUBSYSTEM": "block"}.get(token.key)
    if token.key == "ENV":
        value = {**setting.properties, "DEVTYPE": "disk"}.get(token.attribute)
    if value is not None:
        return _fits(token, value)
    found: list[bool] | None = None
    match token.key:
        case "ATTR":
            found = [_attribute(plain, folder)]
        case "ATTRS":
            found = [_attribute(plain, one) for one in _chain(folder)]
        case "KERNELS":
            found = [_fits(plain, one.name) for one in _chain(folder)]
        case "SUBSYSTEMS" | "DRIVERS":
            link = "subsystem" if token.key == "SUBSYSTEMS" else "driver"
            named = [one / link for one in _chain(folder) if (one / link).exists()]
            found = [_fits(plain, one.resolve().name) for one in named]
        case "TEST" if "*" not in token.value:
            found = [(folder / token.value).exists()]
    return None if found is None else any(found) == (token.operator == "==")


def _attribute(token: _Token, folder: Path) -> bool:
    path = folder / token.attribute
    if not path.is_file():
        return False
    return _fits(token, text_or_empty(path))


def _chain(folder: Path) -> Iterator[Path]:
    """The device and its parents in sysfs."""
    yield folder
    for parent in folder.parents:
        if parent.name in ("devices", "sys", ""):
            return
        yield parent


def _fits(token: _Token, value: str) -> bool:
    """Whether a value fits the alternatives of a pattern."""
    fits = any(fnmatch.fnmatchcase(value.rstrip(), pattern.rstrip()) for pattern in token.value.split("|"))
    return fits == (token.operator == "==")
