"""Kernel sources: Debian's package, an archive, or a user's tree (which is never written to)."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from blklab.errors import KernelSourceError, SpaceError, UnknownNameError, reason_of
from blklab.guests.kernels.digests import digest_file, digest_tree, tree_digest
from blklab.guests.kernels.source_tree import tar_exclusions
from blklab.guests.kernels.toolchain import UNPACK_TOOLS

DEBIAN = "debian"
"""The name for the newest source that Debian's packages have installed."""

_DEBIAN_FOLDER = Path("/usr/src")
_ARCHIVE = re.compile(r"linux-source-(\d+(?:\.\d+)*)\.tar(\.\w+)?")
_ENDINGS = (".tar", *(f".tar{ending}" for ending in UNPACK_TOOLS), ".tgz", ".txz", ".tbz2")


@dataclass(frozen=True)
class KernelSource:
    """A source and its digest."""

    kind: Literal["debian", "tarball", "directory"]
    path: Path
    sha256: str
    """Digest of the archive, or of all files that are copied from the tree."""
    digests: Mapping[str, str] = field(default_factory=dict, repr=False)
    """For a tree: the digest of each file."""

    @property
    def lineage(self) -> str:
        """Stays the same while a user edits: the path of a tree, or the content of an archive."""
        return f"directory {self.path}" if self.kind == "directory" else f"archive {self.sha256}"

    @property
    def tools(self) -> dict[str, str]:
        """Programs for unpacking it, with their Debian packages."""
        aliases = {".tgz": ".gz", ".txz": ".xz", ".tbz2": ".bz2"}
        return UNPACK_TOOLS.get(aliases.get(self.path.suffix, self.path.suffix), {})


def locate(text: str) -> KernelSource:
    """Finds a source.

    Args:
        text: ``debian``, the path of an archive, or the path of a tree.

    Raises:
        KernelSourceError: if Debian's package is not installed, or the source cannot be read.
        UnknownNameError: if there is no such source.
    """
    if text == DEBIAN:
        path = newest_debian_archive(_DEBIAN_FOLDER)
        return KernelSource("debian", path, _digest_archive(path))
    path = Path(text).expanduser().absolute()
    if path.is_dir():
        resolved = path.resolve()
        digests = digest_tree(resolved)
        return KernelSource("directory", resolved, tree_digest(digests), digests)
    if not path.exists():
        raise UnknownNameError(
            f"there is no kernel source {text}",
            hint=f"name {DEBIAN}, the directory of a Linux source, or an archive of one",
        )
    if not path.name.endswith(_ENDINGS):
        raise KernelSourceError(
            f"{text} is not an archive that blklab can unpack",
            hint=f"its name should end in {', '.join(_ENDINGS)}",
        )
    return KernelSource("tarball", path.resolve(), _digest_archive(path))


def newest_debian_archive(folder: Path) -> Path:
    """The newest archive of Debian's ``linux-source`` packages.

    Raises:
        KernelSourceError: if there is none.
    """
    found = debian_archives(folder)
    if not found:
        raise KernelSourceError(
            f"there is no kernel source in {folder}",
            hint="install Debian's (sudo apt-get install linux-source), or name one with --source",
        )
    return max(found)[1]


def debian_archives(folder: Path = _DEBIAN_FOLDER) -> list[tuple[tuple[int, ...], Path]]:
    """The archives of Debian's ``linux-source`` packages, each with its release."""
    return [
        (tuple(int(part) for part in match[1].split(".")), path)
        for path in [*folder.glob("linux-source-*.tar*"), *folder.glob("linux-source-*/linux-source-*.tar*")]
        if (match := _ARCHIVE.fullmatch(path.name))
    ]


def unpack(source: KernelSource, destination: Path, only: Iterable[str] = ()) -> None:
    """Copies a source, or some of its files, into an empty directory.

    Reads an archive only as far as needed to find the requested files.

    Args:
        source: The source.
        destination: The directory, which must exist.
        only: Paths in the source; if empty, all files that a build may need. Missing ones are skipped.

    Raises:
        KernelSourceError: if the archive is damaged, or the tree changes meanwhile.
        SpaceError: if the disk is full.
    """
    wanted = list(only)
    if source.kind == "directory":
        _copy(source, destination, wanted or list(source.digests))
        if not wanted and digest_tree(source.path) != source.digests:
            raise KernelSourceError(
                f"the tree {source.path} changed while it was read",
                hint="try again when it no longer changes",
            )
        return
    selection = [f"*/{path}" for path in wanted]
    options = ["--anchored", "--wildcards", "--no-wildcards-match-slash"] if wanted else tar_exclusions()
    if wanted and source.path.suffix != ".tar":
        # tar then stops after the last of them. An uncompressed archive is read to its end: files may have
        # been appended to it (tar --append, --update), and the last one of a name counts.
        options.append("--occurrence=1")
    command = ["tar", "--extract", "--no-same-owner", "--strip-components=1", "--directory", str(destination)]
    _run([*command, "--file", str(source.path), *options, *selection], source, tolerant=bool(wanted))


def _copy(source: KernelSource, destination: Path, paths: list[str]) -> None:
    existing = [path for path in paths if os.path.lexists(source.path / path)]
    names = b"\0".join(os.fsencode(path) for path in existing)
    pack = ["tar", "--create", "--file=-", "--directory", str(source.path)]
    pack += ["--null", "--verbatim-files-from", "--files-from=-"]
    with subprocess.Popen(
        pack,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as packer:
        unpacker = subprocess.Popen(
            ["tar", "--extract", "--no-same-owner", "--file=-", "--directory", str(destination)],
            stdin=packer.stdout,
            stderr=subprocess.PIPE,
        )
        try:
            assert packer.stdin is not None and packer.stdout is not None and packer.stderr is not None  # noqa: S101
            packer.stdout.close()  # so that the packer gets SIGPIPE if the unpacker ends
            packer.stdin.write(names)
            packer.stdin.close()
            unpacked = unpacker.communicate()[1]
            packed = packer.stderr.read()
        except BaseException:
            packer.kill()
            unpacker.kill()
            unpacker.wait()
            raise
    if packer.returncode or unpacker.returncode:
        _fail(source, (unpacked or packed).decode(errors="replace"))


def _run(command: list[str], source: KernelSource, *, tolerant: bool) -> None:
    # tar lets xz unpack: from 5.4 on with all processors, in half the time (docs/appendix/measurements.md).
    environment = {"XZ_DEFAULTS": "--threads=0", **os.environ, "LC_ALL": "C"}
    result = subprocess.run(command, capture_output=True, check=False, text=True, env=environment)
    missing_only = tolerant and "Not found in archive" in result.stderr
    if result.returncode and not missing_only:
        _fail(source, result.stderr)


def _fail(source: KernelSource, messages: str) -> None:
    if "No space left on device" in messages:
        raise SpaceError(
            f"the disk became full while unpacking the kernel source {source.path}",
            hint="free some space, or set XDG_CACHE_HOME to a directory that has enough",
        )
    reason = next((line for line in messages.splitlines() if line.strip()), "no reason given")
    raise KernelSourceError(f"the kernel source {source.path} cannot be unpacked: {reason}")


def _digest_archive(path: Path) -> str:
    try:
        return digest_file(path)
    except OSError as error:
        raise KernelSourceError(f"the kernel source {path} cannot be read: {reason_of(error)}") from error
