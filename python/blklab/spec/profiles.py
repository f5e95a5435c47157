"""Device profiles: TOML files with the figures of a modelled device, shipped in devices/ or a person's own.

The simulator knows kinds of devices (``fixed``, ``hdd``, ``flash``); a profile is a kind with figures. The
compiled core defines the keys and checks their values.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blklab import _core
from blklab.errors import ProfileError
from blklab.shipped import shipped_files
from blklab.spec.atlas import drive_file, drive_models
from blklab.spec.profile_files import read_named, read_shipped, text_of, unknown_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Profile:
    """A device to simulate: a profile's text, or a bare kind with its defaults."""

    name: str
    source: str
    """File as named by the person, or the name of the kind."""
    kind: str
    text: str | None
    """The TOML text; None for a bare kind."""
    summary: str


def device_kinds() -> dict[str, str]:
    """Kinds of modelled devices with a line about each."""
    return dict(_kinds())


@functools.cache
def _kinds() -> dict[str, str]:
    return {entry["kind"]: entry["summary"] for entry in json.loads(_core.devices())}


def shipped_profiles() -> dict[str, Profile]:
    """The profiles that come with blklab, by name."""
    return read_shipped("devices", _read)


def calibrated_profiles(folder: Path) -> list[Profile]:
    """The profiles in a folder that calibration wrote; other files there are passed over."""
    found = (_calibrated(path) for path in sorted(folder.glob("*.toml")))
    return [profile for profile in found if profile is not None]


def _calibrated(path: Path) -> Profile | None:
    try:
        if "calibration" in tomllib.loads(text_of(path, path.name)):
            return _read(path, path.name)
    except (ProfileError, tomllib.TOMLDecodeError):
        pass
    return None


def calibration_facts(profile: Profile) -> Mapping[str, Any]:
    """The table ``calibration`` of a profile that calibration wrote; empty for others."""
    table = tomllib.loads(profile.text or "").get("calibration", {})
    return table if isinstance(table, dict) else {}


def load_profile(name_or_path: str) -> Profile:
    """Finds a device: a kind, the name of a shipped profile, the path of a profile, or a drive of the atlas.

    Raises:
        UnknownNameError: if there is none; close names are suggested.
        ProfileError: if the profile cannot be read or has a mistake; the message names the field.
    """
    named = read_named("devices", name_or_path, _read)
    if named is not None:
        return named
    kinds = device_kinds()
    if name_or_path in kinds:
        return Profile(
            name=name_or_path, source=name_or_path, kind=name_or_path, text=None, summary=kinds[name_or_path]
        )
    if (path := drive_file(name_or_path)) is not None:
        return _read(path, name_or_path)
    raise unknown_name(
        "simulated device",
        name_or_path,
        [*shipped_files("devices", ".toml"), *kinds],
        more=drive_models(),
        where_more="a drive of `blklab targets --atlas`",
    )


def _read(path: Path, source: str) -> Profile:
    text = text_of(path, source)
    try:
        facts = json.loads(_core.check_device(text, source))
    except _core.ProfileError as error:
        raise ProfileError(str(error)) from error
    return Profile(name=facts["name"], source=source, kind=facts["kind"], text=text, summary=facts["summary"])
