"""Additions for kernels with the legacy block layer: its schedulers, virtual time, modelled disks.

Linux had two block layers up to 4.20: blk-mq, and the older one with one queue and cfq, deadline and noop.
Virtual time came with 5.2 and ublk with 6.0, so blklab brings both for 4.19 (``kernel/legacy``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from blklab.guests.kernels.configuration import Fragment, read_fragment
from blklab.guests.kernels.patches import Patch, read_patch
from blklab.guests.kernels.source import KernelSource, unpack
from blklab.guests.kernels.source_tree import LEGACY_VERSIONS, read_version
from blklab.shipped import shipped_folder

_RELEASE = re.compile(r"linux-(?:source-)?(\d+)\.(\d+)")


@dataclass(frozen=True)
class Additions:
    """Fragments and instruments that a source needs beside the shipped configuration and instruments."""

    fragments: Sequence[Fragment] = ()
    instruments: Sequence[Patch] = ()


def additions_for(source: KernelSource) -> Additions:
    """The additions for a source; none if it has no legacy block layer.

    Raises:
        KernelSourceError: if it is not a kernel source.
    """
    first, last = LEGACY_VERSIONS
    if not first <= _release_of(source) <= last:
        return Additions()
    folder = shipped_folder("kernel") / "legacy"
    return Additions(
        [read_fragment(folder / "legacy.config")],
        [read_patch(str(path)) for path in sorted(folder.glob("*/*.patch"))],
    )


def _release_of(source: KernelSource) -> tuple[int, int]:
    """The first two numbers of a source's release, from the name of an archive if that tells it."""
    if source.kind == "directory":
        return _numbers(read_version(source.path))
    named = _RELEASE.match(source.path.name)
    if named is not None:
        return int(named[1]), int(named[2])
    with TemporaryDirectory(prefix="blklab-makefile-") as name:
        unpack(source, Path(name), only=["Makefile"])
        return _numbers(read_version(Path(name)))


def _numbers(version: str) -> tuple[int, int]:
    major, minor = (int(part) for part in version.split(".")[:2])
    return major, minor
