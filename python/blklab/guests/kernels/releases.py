"""Kernel sources of Debian's other suites, fetched into the cache.

Debian has a package ``linux-source-RELEASE`` for each release that one of its suites carries. apt downloads
it with state, lists and sources of its own in a temporary directory, from the machine's own mirror, and
checks it by Debian's keys as it does with every package. Nothing is installed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from blklab.errors import KernelSourceError, UsageError
from blklab.guests.kernels.cache import folder_size_bytes, kernel_cache, make_folder
from blklab.guests.kernels.toolchain import require_programs

SUITES = (
    "bullseye",
    "bookworm",
    "bookworm-backports",
    "trixie",
    "trixie-backports",
    "forky",
    "sid",
    "experimental",
)
"""Debian's suites that have kernel sources with virtual time, from old to new."""

TOOLS = {"apt-get": "apt", "dpkg-deb": "dpkg", "tar": "tar"}
"""Programs that fetch a source, and their Debian packages."""

_HOOKS = ("Pre-Invoke", "Post-Invoke", "Post-Invoke-Success")
_RELEASE = re.compile(r"\d+\.\d+")
_FETCHED = re.compile(r"linux-source-(\d+(?:\.\d+)*)_")
_INDEX = "$(RELEASE) $(REPO_URI) $(ORIGIN)"
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_DOWNLOADING = re.compile(r"dlstatus:\d+:(?P<percent>[\d.]+):.*?(?:\((?P<left>[^)]*) remaining\))?$")


def check_release(release: str) -> str:
    """Returns a release, for example ``7.3``.

    Raises:
        UsageError: if it is not the number of one.
    """
    if not _RELEASE.fullmatch(release):
        raise UsageError(
            f"{release} is not the release of a kernel",
            hint="name one by its first two numbers, for example 6.12",
        )
    return release


def fetched_archive(release: str) -> Path | None:
    """The archive of a release that was fetched before, or None."""
    found = sorted(
        _folder().glob(f"linux-source-{release}_*.tar.*"), key=lambda path: path.stat().st_mtime_ns
    )
    return found[-1] if found else None


def fetched_archives() -> list[tuple[tuple[int, ...], Path]]:
    """All archives that were fetched before, each with its release."""
    found = [(_FETCHED.match(path.name), path) for path in sorted(_folder().glob("linux-source-*.tar.*"))]
    return [
        (tuple(int(part) for part in match[1].split(".")), path) for match, path in found if match is not None
    ]


def fetch_archive(release: str, announce: Callable[[str], None], suites: Iterable[str] = SUITES) -> Path:
    """Fetches the source of a release, or finds the archive that was fetched before.

    Args:
        release: The release, for example ``7.3``.
        announce: Called with each step, and while the package is downloaded.
        suites: The suites to look in, in that order.

    Returns:
        The archive, in the cache of kernels.

    Raises:
        UsageError: if `release` is not the number of a release.
        MissingToolError: without apt.
        KernelSourceError: if no suite has it, or the machine's mirror cannot be reached.
    """
    check_release(release)
    if (archive := fetched_archive(release)) is not None:
        return archive
    require_programs("a kernel source cannot be fetched", TOOLS)
    mirror = _debian_mirror()
    complaint = ""
    with TemporaryDirectory(prefix="apt-", dir=make_folder(kernel_cache() / "fetching")) as name:
        for suite in suites:
            announce(f"looking for Linux {release} in Debian's suite {suite}")
            root = AptRoot(Path(name) / suite, mirror, suite)
            if (failure := root.update()) is not None:
                complaint = failure
            elif root.has(package := f"linux-source-{release}"):
                return root.fetch(package, announce)
    raise KernelSourceError(
        f"Debian's suites have no source of Linux {release}" + (f" ({complaint})" if complaint else ""),
        hint="download its archive from elsewhere and name it with --source",
    )


class AptRoot:
    """apt with one suite, and with its state in a directory of its own.

    Of the machine's apt it takes the configuration, for example of a proxy, but no sources.
    """

    def __init__(self, folder: Path, mirror: str, suite: str) -> None:
        self._folder = folder
        for name in ("state/lists/partial", "cache/archives/partial", "download"):
            (folder / name).mkdir(parents=True)
        (folder / "status").touch()
        signed = f"[signed-by={_KEYRING}] " if _KEYRING.exists() else ""
        (folder / "sources.list").write_text(f"deb {signed}{mirror} {suite} main\n", encoding="utf-8")
        self._configuration = folder / "apt.conf"
        options = {
            "Dir::Etc::SourceList": str(folder / "sources.list"),
            "Dir::Etc::SourceParts": "/dev/null",
            "Dir::Etc::Preferences": "/dev/null",
            "Dir::Etc::PreferencesParts": "/dev/null",
            "Dir::State": str(folder / "state"),
            "Dir::State::Status": str(folder / "status"),
            "Dir::Cache": str(folder / "cache"),
            "Acquire::Languages": "none",
            "Acquire::Retries": "3",
            # As root, apt downloads as a user who cannot write here.
            "APT::Sandbox::User": "root",
        }
        lines = [f'{name} "{value}";' for name, value in options.items()]
        # Programs that the machine runs after each update of its own lists.
        lines += [f"#clear APT::Update::{hook};" for hook in _HOOKS]
        self._configuration.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def update(self) -> str | None:
        """Fetches the suite's list of packages; returns the complaint if that fails."""
        done = self._run("apt-get", "update", "--error-on=any")
        return None if done.returncode == 0 else _first_complaint(done.stderr)

    def has(self, package: str) -> bool:
        """Whether the suite has a package."""
        return bool(self._run("apt-cache", "show", "--no-all-versions", package).stdout.strip())

    def fetch(self, package: str, announce: Callable[[str], None]) -> Path:
        """Downloads a package of a kernel source, and moves its archive into the cache.

        Raises:
            KernelSourceError: if that fails.
        """
        command = ["apt-get", "download", package, f"--config-file={self._configuration}"]
        with subprocess.Popen(
            [*command, "--option=APT::Status-Fd=1"],
            cwd=self._folder / "download",
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None and process.stderr is not None  # noqa: S101 - both are pipes
            for state in _download_states(process.stdout):
                announce(f"downloading {package}{state}")
            complaint = process.stderr.read()
        debs = list((self._folder / "download").glob("*.deb"))
        if process.returncode or not debs:
            raise KernelSourceError(f"{package} cannot be downloaded: {_first_complaint(complaint)}")
        announce(f"unpacking {package}")
        return self._archive_of(debs[0], package)

    def _archive_of(self, deb: Path, package: str) -> Path:
        """Moves the archive of a source out of its package into the cache."""
        unpacked = self._folder / "unpacked"
        done = subprocess.run(
            ["dpkg-deb", "--extract", deb, unpacked], capture_output=True, check=False, text=True
        )
        found = list(unpacked.glob(f"usr/src/{package}.tar.*"))
        if done.returncode or not found:
            raise KernelSourceError(f"{deb.name} holds no kernel source: {_first_complaint(done.stderr)}")
        version = deb.name.split("_")[1].replace("%3a", ":").rpartition(":")[2]
        archive = make_folder(_folder()) / f"{package}_{version}.tar{found[0].suffix}"
        found[0].replace(archive)
        return archive

    def _run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, f"--config-file={self._configuration}"], capture_output=True, check=False, text=True
        )


def remove_fetched() -> int:
    """Removes all archives that were fetched, and returns the bytes freed."""
    freed_bytes = folder_size_bytes(_folder())
    shutil.rmtree(_folder(), ignore_errors=True)
    return freed_bytes


def _folder() -> Path:
    return kernel_cache() / "sources"


def _debian_mirror() -> str:
    """The mirror that the machine's apt has Debian from.

    Raises:
        KernelSourceError: if it has none.
    """
    done = subprocess.run(
        ["apt-get", "indextargets", "--format", _INDEX, "Created-By: Packages"],
        capture_output=True,
        check=False,
        text=True,
    )
    for line in done.stdout.splitlines():
        suite, mirror, *origin = line.split(" ", 2)
        # Before its first update, apt does not know the origin.
        if suite in SUITES and (origin == ["Debian"] or not any(origin)):
            return mirror
    raise KernelSourceError(
        "this machine's apt has no Debian suite, so its mirror is not known",
        hint="download the source's archive and name it with --source",
    )


def _download_states(lines: Iterable[str]) -> Iterator[str]:
    """The progress that apt writes to its status descriptor, each whole percent once."""
    yield ""
    last = -1
    for line in lines:
        match = _DOWNLOADING.match(line.strip())
        if match is not None and (percent := int(float(match["percent"]))) > last:
            last = percent
            yield f": {percent} %" + (f", {match['left']} left" if match["left"] else "")


def _first_complaint(messages: str) -> str:
    lines = [line.strip() for line in messages.splitlines() if line.strip()]
    errors = [line.removeprefix("E:").strip() for line in lines if line.startswith("E:")]
    return next(iter(errors or lines), "no reason given")
