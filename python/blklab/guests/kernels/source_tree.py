"""What of a kernel source is taken along: everything that a User-mode Linux kernel could be built from.

A whole source is 1.5 GB, most of it for machines that User-mode Linux is not. What is left out here keeps its
Kconfig files and makefiles, which the kernel's build system reads whether or not anything there is built.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from blklab.errors import KernelSourceError

OLDEST_VERSION = (5, 2)
"""The first release with time travel (``UML_TIME_TRAVEL_SUPPORT`` in arch/um/Kconfig)."""

LEFT_OUT_WHOLE = ("LICENSES", "tools/testing", "tools/perf", "samples/bpf")
"""Folders that nothing in a build refers to."""

_DRIVERS_LEFT_OUT = (
    "accel acpi ata clk comedi crypto dma edac firmware gpio gpu hid hwmon i2c iio infiniband irqchip isdn"
    " leds media mfd misc/habanalabs mmc mtd net/can net/dsa net/ethernet net/phy net/usb net/wireless phy"
    " pinctrl platform power regulator s390 scsi/aic7xxx scsi/bfa scsi/lpfc scsi/mpt3sas scsi/qla2xxx soc"
    " spi staging thermal usb video"
)
"""The largest that drive hardware of which User-mode Linux has none."""

LEFT_OUT_SOURCES = ("Documentation", "sound", *(f"drivers/{name}" for name in _DRIVERS_LEFT_OUT.split()))
"""Folders of which only Kconfig files and makefiles are taken."""

ARCHITECTURES = ("um", "x86")
"""Folders of ``arch`` that are taken whole; of the others only Kconfig files and makefiles, as above."""

_OF_USER_MODE_LINUX = ("arch/um/Kconfig", "arch/x86/um/Kconfig")

NEEDED_FILES = ("Makefile", *_OF_USER_MODE_LINUX)
"""Files by which `check_tree` goes."""

_SKELETON = re.compile(r"(Kconfig|Makefile|Kbuild).*")
_PRODUCTS = re.compile(
    r"\..*\.(cmd|d|tmp)|.*\.(o|a|ko|mod|mod\.c|order|symvers|gcno|dtb|so|so\.dbg|orig|rej)|\.config(\.old)?"
    r"|\.version|\.tmp_.*|vmlinux.*|System\.map|linux|tags|TAGS|cscope\..*|GPATH|GRTAGS|GTAGS"
)
"""Names of what a build or an editor leaves in a person's tree, besides ``vmlinux.lds.S`` and its like."""

_GENERATED_FOLDERS = {"include/generated", "include/config", ".git", ".hg", ".svn", "debian"}


def is_copied(path: str) -> bool:
    """Whether a file of a source, by its path in it, is taken along."""
    parts = PurePosixPath(path).parts
    if any(_is_in(path, folder) for folder in LEFT_OUT_WHOLE):
        return False
    other_architecture = len(parts) > 2 and parts[0] == "arch" and parts[1] not in ARCHITECTURES
    left_out = other_architecture or any(_is_in(path, folder) for folder in LEFT_OUT_SOURCES)
    return not left_out or _SKELETON.fullmatch(parts[-1]) is not None


def files_of(tree: Path) -> Iterator[tuple[str, os.stat_result]]:
    """The files of a person's tree that are taken along: sources, not what a build left among them.

    Yields:
        Path in the tree, and its status (of a symbolic link itself).
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
    """Release of a source, from the head of its top makefile, for example ``6.1.192``.

    Raises:
        KernelSourceError: if it is no kernel source.
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
            f"{tree} is no kernel source: it has no top makefile with VERSION and PATCHLEVEL",
            hint="name the top folder of a Linux source, or an archive of one",
        )
    version = f"{values['VERSION']}.{values['PATCHLEVEL']}"
    if values.get("SUBLEVEL"):
        version += f".{values['SUBLEVEL']}"
    return version + values.get("EXTRAVERSION", "")


def check_tree(tree: Path, shown: str) -> str:
    """Makes sure that a source can become a guest kernel, and gives its release.

    Args:
        tree: The source.
        shown: What to call it in messages.

    Raises:
        KernelSourceError: if it is no kernel source, too old, or without User-mode Linux.
    """
    try:
        version = read_version(tree)
    except KernelSourceError as error:
        raise KernelSourceError(error.message.replace(str(tree), shown), hint=error.hint) from error
    major, minor = (int(part) for part in version.split(".")[:2])
    if (major, minor) < OLDEST_VERSION:
        raise KernelSourceError(
            f"{shown} is Linux {version}; virtual time came with {'.'.join(map(str, OLDEST_VERSION))}",
            hint="take a later source",
        )
    if lacking := [path for path in _OF_USER_MODE_LINUX if not (tree / path).is_file()]:
        raise KernelSourceError(
            f"{shown} (Linux {version}) has no User-mode Linux: it lacks {' and '.join(lacking)}",
            hint="vendors' trees sometimes leave it out; take one that has arch/um and arch/x86/um",
        )
    return version


def tar_exclusions() -> list[str]:
    """`is_copied` as options of GNU tar, for an archive whose members all lie in one folder."""
    # Architectures that begin like those that are taken, in any release from `OLDEST_VERSION` on.
    others = [
        f"arch/[!{''.join(sorted({name[0] for name in ARCHITECTURES}))}]*",
        "arch/unicore32",
        "arch/xtensa",
    ]
    # Each pattern is tried on each of 80,000 names: no more of them than leave something out.
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
