"""Selects the files of a kernel source to copy: everything that a User-mode Linux build may need.

A whole source is 1.5 GB, most of it for other machines. Of the parts that are left out, Kconfig files and
makefiles are still copied, because the kernel's build system always reads them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from blklab.errors import KernelSourceError

OLDEST_VERSION = (5, 2)
"""The first release with time travel (``UML_TIME_TRAVEL_SUPPORT`` in arch/um/Kconfig)."""

LEGACY_VERSIONS = ((4, 19), (4, 20))
"""The first and the last of the older releases that can be built: blklab brings time travel for them."""

LEFT_OUT_WHOLE = ("LICENSES", "tools/testing", "tools/perf", "samples/bpf")
"""Directories that no build refers to."""

_DRIVERS_LEFT_OUT = (
    "accel acpi ata clk comedi crypto dma edac firmware gpio gpu hid hwmon i2c iio infiniband irqchip isdn"
    " leds media mfd misc/habanalabs mmc mtd net/can net/dsa net/ethernet net/phy net/usb net/wireless phy"
    " pinctrl platform power regulator s390 scsi/aic7xxx scsi/bfa scsi/lpfc scsi/mpt3sas scsi/qla2xxx soc"
    " spi staging thermal usb video"
)
"""The largest drivers for hardware that User-mode Linux does not have."""

LEFT_OUT_SOURCES = ("Documentation", "sound", *(f"drivers/{name}" for name in _DRIVERS_LEFT_OUT.split()))
"""Directories of which only Kconfig files and makefiles are copied."""

ARCHITECTURES = ("um", "x86")
"""Directories of ``arch`` that are copied whole; of the others, only Kconfig files and makefiles."""

_OF_USER_MODE_LINUX = ("arch/um/Kconfig", "arch/x86/um/Kconfig")

NEEDED_FILES = ("Makefile", *_OF_USER_MODE_LINUX)
"""The files that `check_tree` looks at."""

_SKELETON = re.compile(r"(Kconfig|Makefile|Kbuild).*")
_PRODUCTS = re.compile(
    r"\..*\.(cmd|d|tmp)|.*\.(o|a|ko|mod|mod\.c|order|symvers|gcno|dtb|so|so\.dbg|orig|rej)|\.config(\.old)?"
    r"|\.version|\.tmp_.*|vmlinux.*|System\.map|linux|tags|TAGS|cscope\..*|GPATH|GRTAGS|GTAGS"
)
"""Files that a build or an editor leaves in a user's tree (except ``vmlinux.lds.S`` and the like)."""

_GENERATED_FOLDERS = {"include/generated", "include/config", ".git", ".hg", ".svn", "debian"}


def is_copied(path: str) -> bool:
    """Tells whether a file of a source, by its path in the source, is copied."""
    parts = PurePosixPath(path).parts
    if any(_is_in(path, folder) for folder in LEFT_OUT_WHOLE):
        return False
    other_architecture = len(parts) > 2 and parts[0] == "arch" and parts[1] not in ARCHITECTURES
    left_out = other_architecture or any(_is_in(path, folder) for folder in LEFT_OUT_SOURCES)
    return not left_out or _SKELETON.fullmatch(parts[-1]) is not None


def files_of(tree: Path) -> Iterator[tuple[str, os.stat_result]]:
    """The files of a user's tree that are copied: sources, without build products.

    Yields:
        Path in the tree, and its status (for a symbolic link, of the link itself).
    """
    folders = [""]
    while folders:
        inside = folders.pop()
        with os.scandir(tree / inside) as entries:
            for entry in entries:
                path = f"{inside}/{entry.name}" if inside else entry.name
                if entry.is_dir(follow_symlinks=False):
                    if not _is_generated(path):
                        folders.append(path)
                elif is_copied(path) and not _is_product(entry.name):
                    yield path, entry.stat(follow_symlinks=False)


def read_version(tree: Path) -> str:
    """The release of a source, from the head of its top makefile, for example ``6.1.192``.

    Raises:
        KernelSourceError: if it is not a kernel source.
    """
    try:
        with (tree / "Makefile").open(encoding="utf-8", errors="replace") as makefile:
            head = makefile.read(4096)
    except OSError:
        head = ""
    values: dict[str, str] = dict(
        re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION)\s*=[ \t]*(\S*)", head, re.MULTILINE)
    )
    if not (values.get("VERSION", "").isdecimal() and values.get("PATCHLEVEL", "").isdecimal()):
        raise KernelSourceError(
            f"{tree} is not a kernel source: it has no top makefile with VERSION and PATCHLEVEL",
            hint="name the top directory of a Linux source, or an archive of one",
        )
    version = f"{values['VERSION']}.{values['PATCHLEVEL']}"
    if values.get("SUBLEVEL"):
        version += f".{values['SUBLEVEL']}"
    return version + values.get("EXTRAVERSION", "")


def check_tree(tree: Path, shown: str) -> str:
    """Makes sure that a source can be built as a guest kernel, and returns its release.

    Args:
        tree: The source.
        shown: Its name in messages.

    Raises:
        KernelSourceError: if it is not a kernel source, is too old, or lacks User-mode Linux.
    """
    try:
        version = read_version(tree)
    except KernelSourceError as error:
        raise KernelSourceError(error.message.replace(str(tree), shown), hint=error.hint) from error
    major, minor = (int(part) for part in version.split(".")[:2])
    is_legacy = LEGACY_VERSIONS[0] <= (major, minor) <= LEGACY_VERSIONS[1]
    if (major, minor) < OLDEST_VERSION and not is_legacy:
        oldest, *legacy = (".".join(map(str, numbers)) for numbers in (OLDEST_VERSION, *LEGACY_VERSIONS))
        raise KernelSourceError(
            f"{shown} is Linux {version}; virtual time needs {oldest} or later, or {' or '.join(legacy)}",
            hint="use another source",
        )
    if lacking := [path for path in _OF_USER_MODE_LINUX if not (tree / path).is_file()]:
        raise KernelSourceError(
            f"{shown} (Linux {version}) has no User-mode Linux: it lacks {' and '.join(lacking)}",
            hint="vendors' trees sometimes leave it out; use one that has arch/um and arch/x86/um",
        )
    return version


def tar_exclusions() -> list[str]:
    """`is_copied` as options of GNU tar, for an archive whose members are all in one directory."""
    # Architectures with the same initial as a copied one, in any release since `OLDEST_VERSION`.
    others = [
        f"arch/[!{''.join(sorted({name[0] for name in ARCHITECTURES}))}]*",
        "arch/unicore32",
        "arch/xtensa",
    ]
    # tar tries each pattern on each of 80,000 names, so only patterns that exclude files are listed.
    endings = {
        "Documentation": (".rst", ".txt", ".yaml", ".svg", ".json"),
        **dict.fromkeys(others, (".dts", ".dtsi", "defconfig")),
    }
    whole = [f"--exclude=*/{folder}" for folder in LEFT_OUT_WHOLE]
    sources = [
        f"--exclude=*/{folder}/*{ending}"
        for folder in (*others, *LEFT_OUT_SOURCES)
        for ending in (".[chSs]", *endings.get(folder, ()))
    ]
    return [
        "--anchored",
        "--no-wildcards-match-slash",
        *whole,
        "--wildcards-match-slash",
        *sources,
    ]


def _is_in(path: str, folder: str) -> bool:
    return path.startswith(f"{folder}/")


def _is_generated(path: str) -> bool:
    return path in _GENERATED_FOLDERS or path.endswith(("/include/generated", "/.tmp_versions"))


def _is_product(name: str) -> bool:
    return _PRODUCTS.fullmatch(name) is not None and not name.endswith((".lds.S", ".lds.h"))
