"""Where a kernel source comes from: Debian's package, an archive, or a person's tree (never written to)."""

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
"""What stands for the newest source that Debian's packages have put on this machine."""

_DEBIAN_FOLDER = Path("/usr/src")
_ARCHIVE = re.compile(r"linux-source-(\d+(?:\.\d+)*)\.tar(\.\w+)?")
_ENDINGS = (".tar", *(f".tar{ending}" for ending in UNPACK_TOOLS), ".tgz", ".txz", ".tbz2")


@dataclass(frozen=True)
class KernelSource:
    """A source that was found and looked at."""

    kind: Literal["debian", "tarball", "directory"]
    path: Path
    sha256: str
    """Digest of the archive, or of all files of the tree that are taken along."""
    digests: Mapping[str, str] = field(default_factory=dict, repr=False)
    """For a tree: the digest of each file."""

    @property
    def lineage(self) -> str:
        """What stays the same while a person edits: the place of a tree, the content of an archive."""
        return f"directory {self.path}" if self.kind == "directory" else f"archive {self.sha256}"

    @property
    def tools(self) -> dict[str, str]:
        """Programs that taking it needs, with their Debian packages."""
        aliases = {".tgz": ".gz", ".txz": ".xz", ".tbz2": ".bz2"}
        return UNPACK_TOOLS.get(aliases.get(self.path.suffix, self.path.suffix), {})


def locate(text: str) -> KernelSource:
    """Finds a source.

    Args:
        text: ``debian``, the path of an archive, or the path of a tree.

    Raises:
        KernelSourceError: if Debian's package is not installed, or the source cannot be read.
        UnknownNameError: if there is nothing of that name.
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
            hint=f"name {DEBIAN}, the folder of a Linux source, or an archive of one",
        )
    if not path.name.endswith(_ENDINGS):
        raise KernelSourceError(
            f"{text} is no archive that can be unpacked", hint=f"its name should end in {', '.join(_ENDINGS)}"
        )
    return KernelSource("tarball", path.resolve(), _digest_archive(path))


def newest_debian_archive(folder: Path) -> Path:
    """The newest of the archives that Debian's ``linux-source`` packages hold.

    Raises:
        KernelSourceError: if there is none.
    """
    found = [
        (tuple(int(part) for part in match[1].split(".")), path)
        for path in [*folder.glob("linux-source-*.tar*"), *folder.glob("linux-source-*/linux-source-*.tar*")]
        if (match := _ARCHIVE.fullmatch(path.name))
    ]
    if not found:
        raise KernelSourceError(
            f"there is no kernel source in {folder}",
            hint="install Debian's (sudo apt-get install linux-source), or name one with --source",
        )
    return max(found)[1]


def unpack(source: KernelSource, destination: Path, only: Iterable[str] = ()) -> None:
    """Puts a source, or some files of it, into an empty folder.

    Of an archive no more is read than it takes to find the files asked for.

    Args:
        source: What to take.
        destination: Where to; it must exist.
        only: Paths in the source; all that is taken along if empty. One that the source lacks is passed over.

    Raises:
        KernelSourceError: if the archive is damaged, or the tree changes meanwhile.
        SpaceError: if the disk is full.
    """
    wanted = list(only)
    if source.kind == "directory":
        _copy(source, destination, wanted or list(source.digests))
        if not wanted and digest_tree(source.path) != source.digests:
            raise KernelSourceError(
                f"the tree {source.path} changed while it was read", hint="try again when it is at rest"
            )
        return
    selection = [f"*/{path}" for path in wanted]
    options = ["--anchored", "--wildcards", "--no-wildcards-match-slash"] if wanted else tar_exclusions()
    if wanted and source.path.suffix != ".tar":
        # tar stops at the last of them. A bare archive is read to its end: files may have been appended to
        # it (tar --append, --update), and the last of a name counts.
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
            packer.stdout.close()  # so that the packer notices if the unpacker ends
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
            f"the disk became full while the kernel source {source.path} was unpacked",
            hint="make room, or set XDG_CACHE_HOME to a place that has it",
        )
    reason = next((line for line in messages.splitlines() if line.strip()), "no reason given")
    raise KernelSourceError(f"the kernel source {source.path} cannot be unpacked: {reason}")


def _digest_archive(path: Path) -> str:
    try:
        return digest_file(path)
    except OSError as error:
        raise KernelSourceError(f"the kernel source {path} cannot be read: {reason_of(error)}") from error
