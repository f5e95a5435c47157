"""Device profiles: TOML files with the figures of a modelled device, shipped in devices/ or a person's own.

The simulator knows kinds of devices (``fixed``, ``hdd``, ``flash``); a profile is a kind with figures. The
compiled core defines the keys and checks their values.
"""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass
from pathlib import Path

from blklab import _core
from blklab.errors import ProfileError, UnknownNameError
from blklab.shipped import shipped_files


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
    return {entry["kind"]: entry["summary"] for entry in json.loads(_core.devices())}


def shipped_profiles() -> dict[str, Profile]:
    """The profiles that come with blklab, by name."""
    return {name: _read(path, name) for name, path in shipped_files("devices", ".toml").items()}


def load_profile(name_or_path: str) -> Profile:
    """Finds a device by kind, by the name of a shipped profile, or by the path of a profile.

    Raises:
        UnknownNameError: if there is none; close names are suggested.
        ProfileError: if the profile cannot be read or has a mistake; the message names the field.
    """
    shipped = shipped_files("devices", ".toml")
    if name_or_path in shipped:
        return _read(shipped[name_or_path], name_or_path)
    kinds = device_kinds()
    if name_or_path.endswith(".toml") or "/" in name_or_path:
        return _read(Path(name_or_path), name_or_path)
    if name_or_path in kinds:
        return Profile(
            name=name_or_path, source=name_or_path, kind=name_or_path, text=None, summary=kinds[name_or_path]
        )
    known = [*shipped, *kinds]
    close = difflib.get_close_matches(name_or_path, known, n=2)
    raise UnknownNameError(
        f"there is no simulated device {name_or_path!r}",
        hint=f"did you mean {' or '.join(close)}?"
        if close
        else f"known are {', '.join(known)}, or a .toml file",
    )


def _read(path: Path, source: str) -> Profile:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ProfileError(f"{source}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ProfileError(f"{source}: is not UTF-8 text") from error
    try:
        facts = json.loads(_core.check_device(text, source))
    except _core.ProfileError as error:
        raise ProfileError(str(error)) from error
    return Profile(name=facts["name"], source=source, kind=facts["kind"], text=text, summary=facts["summary"])
