"""Headers of an installed kernel: for which kernel they are, and how it was built."""

from __future__ import annotations

import platform
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from blklab.errors import KernelSourceError, RefusedError, UnknownNameError
from blklab.modules.distributions import header_advice

_DEFINED = re.compile(r'^#\s*define\s+(\w+)\s+"?([^"\n]*)"?\s*$', re.MULTILINE)
_OPTION = re.compile(r'^(CONFIG_\w+)=("?)(.*)\2$', re.MULTILINE)
_PACKAGE = re.compile(r"\b(?:Debian|Ubuntu) (\S+)")


@dataclass(frozen=True)
class KernelHeaders:
    """The headers of a kernel."""

    folder: Path
    release: str
    """As ``uname -r`` prints it."""
    version: str
    """The kernel's own number: ``6.1.192``."""
    build: str
    """As ``uname -v`` prints it; empty if the headers do not say."""
    package: str
    """The version of the distribution's package: ``6.1.192-3``; empty if it is not known."""
    options: dict[str, str] = field(repr=False)

    @property
    def compiler(self) -> str:
        """The compiler that the kernel was built with, as it names itself."""
        return self.options.get("CONFIG_CC_VERSION_TEXT", "")


def running_release() -> str:
    """The running kernel's release."""
    return platform.release()


def find_headers(release: str | None = None, folder: Path | None = None) -> KernelHeaders:
    """Finds headers, and makes sure that they are those of the kernel that is meant.

    Args:
        release: The kernel's release; by default the running kernel's.
        folder: The headers; by default those that the kernel's modules name.

    Raises:
        KernelSourceError: if there are none.
        UnknownNameError: if the folder is not one of headers.
        RefusedError: if they are of another kernel.
    """
    wanted = release or running_release()
    place = folder or Path("/lib/modules") / wanted / "build"
    if not (place / "include/generated/utsrelease.h").is_file() or not (place / "Makefile").is_file():
        if folder is not None:
            raise UnknownNameError(
                f"{folder} has no headers of a kernel: include/generated/utsrelease.h is missing",
                hint="name a folder such as /usr/src/linux-headers-…, or a kernel's build tree",
            )
        raise KernelSourceError(
            f"the headers of Linux {wanted} are not installed: {place} is missing", hint=header_advice(wanted)
        )
    found = read_headers(place.resolve())
    if found.release != wanted:
        raise RefusedError(
            f"{place} has the headers of Linux {found.release}, and the kernel is {wanted}",
            hint=header_advice(wanted),
        )
    if wanted == running_release() and found.build and found.build != platform.version():
        raise RefusedError(
            f"{place} has the headers of the build {found.build!r}, and the running kernel is the build "
            f"{platform.version()!r}",
            hint="the kernel was updated since: reboot into it, or install the headers of the running one",
        )
    return found


def read_headers(folder: Path) -> KernelHeaders:
    """Reads what headers say of their kernel.

    Raises:
        KernelSourceError: if they are incomplete.
    """
    generated = folder / "include/generated"
    try:
        numbers = _definitions(generated / "uapi/linux/version.h")
        release = _definitions(generated / "utsrelease.h")["UTS_RELEASE"]
        options = (folder / ".config").read_text(encoding="utf-8", errors="replace")
    except (OSError, KeyError) as error:
        raise KernelSourceError(f"the headers in {folder} are incomplete: {error}") from error
    build = ""
    for name in ("utsversion.h", "compile.h"):
        if not build and (generated / name).is_file():
            build = _definitions(generated / name).get("UTS_VERSION", "")
    package = ""
    if (generated / "package.h").is_file():
        package = _definitions(generated / "package.h").get("LINUX_PACKAGE_ID", "").split()[-1:][0]
    return KernelHeaders(
        folder,
        release,
        _version(numbers, release),
        build,
        package or _packaged(build, release),
        {match[1]: match[3] for match in _OPTION.finditer(options)},
    )


def _definitions(path: Path) -> dict[str, str]:
    text = path.read_text(encoding="utf-8", errors="replace")
    return {name: value.strip() for name, value in _DEFINED.findall(text)}


def _version(numbers: dict[str, str], release: str) -> str:
    parts = [numbers.get(f"LINUX_VERSION_{part}") for part in ("MAJOR", "PATCHLEVEL", "SUBLEVEL")]
    if all(parts):
        return ".".join(str(part) for part in parts)
    match = re.match(r"\d+\.\d+(?:\.\d+)?", release)
    return match[0] if match else release


def _packaged(build: str, release: str) -> str:
    """The version of the package of headers, where only the distribution's database has it."""
    if (match := _PACKAGE.search(build)) is not None:
        return match[1]
    try:
        answer = subprocess.run(
            ["dpkg-query", "--show", "--showformat=${Version}", f"linux-headers-{release}"],
            capture_output=True,
            check=False,
            text=True,
        )
    except OSError:
        return ""
    return answer.stdout.strip() if answer.returncode == 0 else ""
