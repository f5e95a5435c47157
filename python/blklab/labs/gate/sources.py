"""The guest that stands for a kernel: the source of the nearest release that this machine has."""

from __future__ import annotations

import platform
import re
from dataclasses import dataclass
from pathlib import Path

from blklab.errors import KernelSourceError, RequirementError
from blklab.guests.kernels.releases import fetched_archives
from blklab.guests.kernels.source import debian_archives
from blklab.guests.kernels.store import find_all
from blklab.modules.record import ModuleRecord

_RELEASE = re.compile(r"(\d+)\.(\d+)")
_OF_USER_MODE_LINUX = "arch/um/Kconfig"
_MINORS = 20
"""Releases between two changes of the first number: 4.20, 5.19 and 6.19 were followed by 5.0, 6.0 and 7.0."""


@dataclass(frozen=True)
class GuestSource:
    """A source, and its release as far as it is known before it is unpacked."""

    path: Path
    release: str


def nearest_source(record: ModuleRecord) -> GuestSource:
    """The source whose release is the nearest to that of a module's kernel, its own if a guest can be built.

    Raises:
        RequirementError: if guests cannot be built for this kind of processor.
        KernelSourceError: if this machine has no source.
    """
    if platform.machine() != "x86_64":
        raise RequirementError(
            f"guest kernels are built for x86-64, and this machine is {platform.machine()}"
        )
    wanted = _ordinal(record.release)
    found = _sources(record)
    if not found:
        release = ".".join((_RELEASE.match(record.release) or ["?"])[0].split(".")[:2])
        raise KernelSourceError(
            "there is no source of a kernel to build a guest from",
            hint=f"install one (Debian: sudo apt-get install linux-source), or fetch that of your release: "
            f"blklab kernel build --release {release}",
        )
    # Of equally near ones the first, so that the module's own comes before all.
    return min(found, key=lambda source: abs(_ordinal(source.release) - wanted))


def _sources(record: ModuleRecord) -> list[GuestSource]:
    own = Path(record.source)
    usable = own.is_file() or (own / _OF_USER_MODE_LINUX).is_file()
    found = [GuestSource(own, record.release)] if usable else []
    for numbers, path in [*debian_archives(), *fetched_archives()]:
        found.append(GuestSource(path, ".".join(map(str, numbers))))
    for kernel in find_all()[0]:
        path = Path(kernel.record.source)
        if path.exists() and path not in {source.path for source in found}:
            found.append(GuestSource(path, kernel.version))
    return found


def _ordinal(release: str) -> int:
    match = _RELEASE.match(release)
    return _MINORS * int(match[1]) + int(match[2]) if match is not None else 0
