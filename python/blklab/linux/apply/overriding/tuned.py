"""tuned profiles that set a disk's scheduler: the active one, and those that a desktop's power modes select.

tuned sets its profile's values when it starts, when the profile changes and when a disk appears, after udev's
rules. Its daemon tuned-ppd changes the profile with the desktop's power mode.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator
from pathlib import Path

from blklab.linux.apply.overriding.setting import Overrider, Setting, lines_of, shown
from blklab.linux.machine.kernel_files import text_or_empty

PROFILE_FOLDERS = ("etc/tuned/profiles", "etc/tuned", "usr/lib/tuned/profiles", "usr/lib/tuned")
_WANTS = "etc/systemd/system"
_SEPARATORS = re.compile(r"[,;\s]+")

Sections = dict[str, dict[str, str]]


def overriding_profiles(setting: Setting, root: Path) -> Iterator[Overrider]:
    """Profiles that would change a setting, if tuned runs or will at the next boot."""
    if not _is_used(root, "tuned"):
        return
    active = text_or_empty(root / "etc/tuned/active_profile").split()
    reasons = dict.fromkeys(active, "the active profile of tuned")
    if _is_used(root, "tuned-ppd"):
        for mode, name in _sections(root / "etc/tuned/ppd.conf").get("profiles", {}).items():
            reasons.setdefault(name, f"the profile of tuned in the desktop's power mode {mode}")
    # Profiles that are active together are merged, the last one wins.
    together = _merged(active, root)
    for name, reason in reasons.items():
        sections = together if name in active else _merged([name], root)
        own = _merged([name], root)
        for section, value in _values(sections, setting):
            if section in own:
                path = _file_of(name, root)
                yield Overrider(
                    shown(path, root) if path else name,
                    f"({reason}) sets the scheduler of {setting.disk.name} to {value}, section [{section}]",
                    f"write a profile with include={name} and [{section}] elevator={setting.choice.name}, or "
                    f"devices=!{setting.disk.name}, to /etc/tuned, and activate it (tuned-adm profile)",
                )


def _is_used(root: Path, service: str) -> bool:
    """Whether a service runs, or is enabled."""
    pid = text_or_empty(root / f"run/tuned/{service}.pid")
    if pid.isdigit() and (root / "proc" / pid).exists():
        return True
    return any((folder / f"{service}.service").is_symlink() for folder in (root / _WANTS).glob("*.wants"))


def _values(sections: Sections, setting: Setting) -> Iterator[tuple[str, str]]:
    """Sections that give the disk another scheduler, with that."""
    variables = sections.get("variables", {})
    for name, options in sections.items():
        if options.get("enabled", "1").lower() in ("0", "false", "no"):
            continue
        kind = options.get("type", name)
        if kind == "disk" and "elevator" in options and _is_meant(options, setting):
            value = _with_variables(options["elevator"], variables)
        elif kind == "sysfs":
            value = next(
                (
                    _with_variables(text, variables)
                    for path, text in options.items()
                    if any(fnmatch.fnmatchcase(one, path) for one in setting.paths["scheduler"])
                ),
                "",
            )
        else:
            continue
        if value and value != setting.choice.name:
            yield name, value


def _is_meant(options: dict[str, str], setting: Setting) -> bool:
    """Whether a section of the disk plugin is about the disk; if that is not known, it is."""
    disk = setting.disk
    if text_or_empty(disk.sys_path / "removable") == "1":
        return False  # tuned leaves removable disks alone
    expression = options.get("devices_udev_regex")
    if expression and setting.properties:
        lines = "\n".join(f"{key}={value}" for key, value in sorted(setting.properties.items()))
        try:
            if re.search(expression, lines, re.MULTILINE) is None:
                return False
        except re.error:
            return False
    names = [one for one in _SEPARATORS.split(options.get("devices", "*")) if one]
    if any(fnmatch.fnmatchcase(disk.name, one[1:]) for one in names if one.startswith("!")):
        return False
    wanted = [one for one in names if not one.startswith("!")] or ["*"]
    return any(fnmatch.fnmatchcase(disk.name, one) for one in wanted)


def _with_variables(text: str, variables: dict[str, str]) -> str:
    return re.sub(r"\$\{(\w+)\}", lambda match: variables.get(match[1], match[0]), text).strip()


def _merged(names: list[str], root: Path, seen: frozenset[str] = frozenset()) -> Sections:
    """The sections of profiles and of those that they include; later ones win option by option."""
    merged: Sections = {}
    for name in names:
        path = None if name in seen else _file_of(name, root)
        if path is None:
            continue
        own = _sections(path)
        included = [one for one in _SEPARATORS.split(own.get("main", {}).get("include", "")) if one]
        for sections in (_merged(included, root, seen | {name}), own):
            for section, options in sections.items():
                merged.setdefault(section, {}).update(options)
    return merged


def _file_of(name: str, root: Path) -> Path | None:
    """The file of a profile; administrators' folders come first."""
    places = (root / folder / Path(name).name / "tuned.conf" for folder in PROFILE_FOLDERS)
    return next((path for path in places if path.is_file()), None)


def _sections(path: Path) -> Sections:
    """The options of a configuration file by section."""
    sections: Sections = {}
    current: dict[str, str] = {}
    for line in lines_of(path):
        text = line.strip()
        if text.startswith("[") and text.endswith("]"):
            current = sections.setdefault(text[1:-1].strip(), {})
        elif "=" in text and not text.startswith(("#", ";")):
            key, _, value = text.partition("=")
            current[key.strip()] = value.strip().strip("\"'")
    return sections
