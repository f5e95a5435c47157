"""The source of a kernel's block layer, and the proof by numbers that it is the kernel's.

Only ``block/`` is taken from a source. What was taken from an archive is kept, because reading an archive
takes longer than all the rest.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from blklab.errors import KernelSourceError, RefusedError, UnknownNameError
from blklab.guests.kernels.cache import kernel_cache, make_folder
from blklab.modules.cache import module_cache
from blklab.modules.distributions import distribution, source_advice
from blklab.modules.headers import KernelHeaders

_NEEDED = ("Makefile", "block/Makefile", "block/elevator.h", "block/blk-mq.h")
_AFTER_BLOCK = ("certs", "crypto")
"""Folders that follow ``block`` in archives in alphabetical order: the rest need not be read."""
_ARCHIVE_VERSION = re.compile(r"linux-source-[\d.]+_(.+)\.tar")
_NUMBER = re.compile(r"^(VERSION|PATCHLEVEL|SUBLEVEL)\s*=\s*(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class BlockSource:
    """The block layer's source."""

    origin: Path
    """The tree or archive."""
    folder: Path
    """Has ``Makefile`` and ``block/``."""
    version: str
    package: str
    """The version of the distribution's package; empty if it is not known."""

    @property
    def sha256(self) -> str:
        """Digest of the block layer's files."""
        total = hashlib.sha256()
        for path in sorted((self.folder / "block").glob("*.[ch]")):
            total.update(f"{path.name}\0".encode() + path.read_bytes())
        return total.hexdigest()


def find_source(
    headers: KernelHeaders, named: str | None, announce: Callable[[str], None], *, may_fetch: bool = True
) -> BlockSource:
    """Finds the source that a kernel was built from.

    Args:
        headers: The kernel's headers.
        named: A tree or an archive; None to look for the distribution's.
        announce: Called with each step that takes long.
        may_fetch: Whether a package may be downloaded.

    Raises:
        KernelSourceError: if there is none.
        UnknownNameError: if the named one does not exist.
        RefusedError: if the named one is of another version.
    """
    if named is not None:
        source = _open(named_source(named), announce)
        if (complaint := mismatch(headers, source)) is not None:
            raise RefusedError(
                complaint, hint=source_advice(headers.release, headers.version, headers.package)
            )
        return source
    complaints = []
    for path in _candidates(headers):
        source = _open(path, announce)
        if (complaint := mismatch(headers, source)) is None:
            return source
        complaints.append(complaint)
    if may_fetch and (fetched := _fetch(headers, announce)) is not None:
        source = _open(fetched, announce)
        if (complaint := mismatch(headers, source)) is None:
            return source
        complaints.append(complaint)
    raise KernelSourceError(
        f"the source of Linux {headers.release} is missing" + "".join(f"; {one}" for one in complaints),
        hint=source_advice(headers.release, headers.version, headers.package),
    )


def named_source(named: str) -> Path:
    """The tree or archive that a user names.

    Raises:
        UnknownNameError: if it does not exist.
    """
    path = Path(named).expanduser().absolute()
    if not path.exists():
        raise UnknownNameError(f"there is no kernel source {named}", hint="name a tree or an archive")
    return path


def mismatch(headers: KernelHeaders, source: BlockSource) -> str | None:
    """The reason why a source is not that of headers; None if their numbers agree."""
    if source.version != headers.version:
        return f"{source.origin} is Linux {source.version}, and the headers are of {headers.version}"
    if source.package and headers.package and source.package != headers.package:
        return (
            f"{source.origin} is of the package version {source.package}, and the headers are of "
            f"{headers.package}"
        )
    return None


def _candidates(headers: KernelHeaders) -> Iterator[Path]:
    """Sources of this machine that may be the kernel's, the likeliest first."""
    series = ".".join(headers.version.split(".")[:2])
    for tree in (headers.folder, Path("/lib/modules") / headers.release / "source"):
        if (tree / "block/elevator.h").is_file():
            yield tree.resolve()
    usual = Path("/usr/src")
    kept = [*kernel_cache().glob(f"sources/linux-source-{series}_*.tar.*")]
    fetched = [*(module_cache() / "archives").glob(f"linux-source-{series}*_*.tar.*")]
    yield from sorted({*fetched, *kept, *usual.glob(f"linux-source-{series}*.tar.*")})
    yield from sorted(usual.glob(f"linux-source-{series}*/linux-source-{series}*.tar.*"))


def _open(path: Path, announce: Callable[[str], None]) -> BlockSource:
    folder = path.resolve() if path.is_dir() else _kept(path, announce)
    if absent := [name for name in _NEEDED if not (folder / name).is_file()]:
        raise KernelSourceError(
            f"{path} is not the source of a kernel: {', '.join(absent)} is missing",
            hint="name the top folder of a Linux source, or an archive of one",
        )
    numbers = dict(_NUMBER.findall((folder / "Makefile").read_text(encoding="utf-8", errors="replace")))
    version = ".".join(numbers.get(name, "0") for name in ("VERSION", "PATCHLEVEL", "SUBLEVEL"))
    return BlockSource(path, folder, version, "" if path.is_dir() else _package_of(path))


def _kept(archive: Path, announce: Callable[[str], None]) -> Path:
    """The block layer of an archive, taken from it now or before."""
    status = archive.stat()
    marks = f"{archive.resolve()}\0{status.st_size}\0{status.st_mtime_ns}"
    folder = module_cache() / "sources" / hashlib.sha256(marks.encode()).hexdigest()[:32]
    if folder.is_dir():
        return folder
    announce(f"reading the block layer from {archive}")
    make_folder(folder.parent)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".reading-") as name:
        taken = Path(name) / "taken"
        taken.mkdir()
        _take(archive, taken)
        if not folder.exists():
            taken.rename(folder)
    return folder


def _take(archive: Path, destination: Path) -> None:
    """Extracts what is needed, and reads no further than necessary."""
    patterns = ["*/Makefile", "*/block/Makefile", "*/block/*.[ch]"]
    patterns += [f"*/{name}/Makefile" for name in _AFTER_BLOCK]
    command = ["tar", "--extract", "--verbose", "--no-same-owner", "--strip-components=1"]
    command += [f"--directory={destination}", f"--file={archive}", "--anchored", "--wildcards"]
    command += ["--no-wildcards-match-slash", *patterns]
    environment = {"XZ_DEFAULTS": "--threads=0", **os.environ, "LC_ALL": "C"}
    seen: set[str] = set()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None and process.stderr is not None  # noqa: S101 - both are pipes
        for line in process.stdout:
            _, _, inside = line.strip().partition("/")
            folder = inside.partition("/")[0]
            seen.add(folder)
            if folder in _AFTER_BLOCK and {"Makefile", "block"} <= seen:
                process.kill()
                return
        complaint = process.stderr.read().strip()
    if not {"Makefile", "block"} <= seen:
        reason = complaint.splitlines()[0] if complaint else "it has no block/"
        raise KernelSourceError(f"the kernel source {archive} cannot be read: {reason}")


def _package_of(archive: Path) -> str:
    """The version of the package that an archive is from; empty if that is not known."""
    if (match := _ARCHIVE_VERSION.match(archive.name)) is not None:
        return match[1]
    if shutil.which("dpkg-query") is None:
        return ""
    owner = _answer(["dpkg-query", "--search", str(archive.resolve())]).partition(":")[0]
    return _answer(["dpkg-query", "--show", "--showformat=${Version}", owner]) if owner else ""


def _fetch(headers: KernelHeaders, announce: Callable[[str], None]) -> Path | None:
    """Downloads the distribution's package of this source; None if it does not have one, or it fails."""
    if distribution() not in ("debian", "ubuntu") or not headers.package or shutil.which("apt-get") is None:
        return None
    series = ".".join(headers.version.split(".")[:2])
    archives = make_folder(module_cache() / "archives")
    for package in (f"linux-source-{series}", f"linux-source-{series}.0"):
        announce(f"downloading {package}, version {headers.package}")
        with tempfile.TemporaryDirectory(dir=archives, prefix=".fetching-") as name:
            folder = Path(name)
            options = ["--option=APT::Sandbox::User=root"] if os.geteuid() == 0 else []
            subprocess.run(
                ["apt-get", "download", *options, f"{package}={headers.package}"],
                cwd=folder,
                capture_output=True,
                check=False,
            )
            for deb in folder.glob("*.deb"):
                subprocess.run(
                    ["dpkg-deb", "--extract", deb, folder / "files"], capture_output=True, check=False
                )
            for found in folder.glob("files/usr/src/**/linux-source-*.tar.*"):
                kept = archives / f"{package}_{headers.package}.tar{found.suffix}"
                found.replace(kept)
                return kept
    return None


def _answer(command: list[str]) -> str:
    answer = subprocess.run(command, capture_output=True, check=False, text=True)
    return answer.stdout.strip() if answer.returncode == 0 else ""
