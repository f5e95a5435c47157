"""What was built: find a guest kernel by name, list, remove, and keep one while a guest runs on it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from blklab.errors import KernelCacheError, KernelInUseError, KernelLacksError, UnknownNameError, UsageError
from blklab.guests.kernels.cache import (
    folder_size_bytes,
    kernel_cache,
    locked,
    pinned,
    remove_unless_pinned,
    replace_link,
)
from blklab.guests.kernels.configuration import read_configuration

DEFAULT_NAME = "stock"
"""Name of the kernel that is meant where none is named: the default source without patches."""

SCHEDULER_OPTIONS = {
    "mq-deadline": "CONFIG_MQ_IOSCHED_DEADLINE",
    "kyber": "CONFIG_MQ_IOSCHED_KYBER",
    "bfq": "CONFIG_IOSCHED_BFQ",
}
"""Schedulers of the multi-queue block layer by the option that builds them in; ``none`` needs no option."""

EXACT_CLOCK = "exact-clock"
"""Name of the instrument that lets a guest read its clock for nothing."""

USUAL_TICKS_PER_SECOND = 100
"""Of User-mode Linux, where its configuration does not say (arch/um/Kconfig)."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class PatchRecord(BaseModel):
    """A patch that went into a build."""

    model_config = ConfigDict(frozen=True)

    name: str
    sha256: str
    files: list[str]


class InstrumentRecord(PatchRecord):
    """A patch of blklab's own that improves the measuring, or was to."""

    complaint: str | None = None
    """What of it does not apply to this source, so that all of it was left out."""


class BuildRecord(BaseModel):
    """Where a build comes from: ``build.json``."""

    model_config = ConfigDict(frozen=True)

    format: Literal[1] = 1
    build_id: str
    version: str
    """Release of the kernel as ``uname -r`` prints it, for example ``6.1.192``."""
    source: str
    """The source as a person knows it: a path."""
    source_kind: Literal["debian", "tarball", "directory"]
    source_sha256: str
    patches: list[PatchRecord]
    instruments: list[InstrumentRecord] = []
    """Nothing if the build was asked to be without them."""
    fragments: list[str]
    """Configuration fragments of the person, after the shipped one, by name."""
    missing_options: list[str]
    """Optional options that this source does not know."""
    compiler: str
    recipe: int
    tree_id: str
    linux_sha256: str
    compiled_files: int
    built_at: str
    build_seconds: float


@dataclass(frozen=True)
class GuestClock:
    """How a guest kernel tells the time. Where it differs, the same scheduler gets different figures."""

    exact: str | None
    """Digest of the instrument ``exact-clock`` as built in: reading the clock takes no guest time."""
    ticks_per_second: int
    """What the kernel counts in ticks comes in steps of one (``CONFIG_HZ``)."""

    def __str__(self) -> str:
        how = "an exact clock" if self.exact is not None else "a clock that reading moves"
        return f"{how} and {self.ticks_per_second} ticks a second"


@dataclass(frozen=True)
class KernelBuild:
    """A guest kernel that can be started."""

    name: str
    folder: Path
    record: BuildRecord

    @property
    def linux(self) -> Path:
        """The kernel: a program."""
        return self.folder / "linux"

    @property
    def build_id(self) -> str:
        """Digest of all that decides: source, patches, instruments, configuration, compiler, recipe."""
        return self.record.build_id

    @property
    def instruments(self) -> tuple[str, ...]:
        """Instruments that are built in, by name: what it measures is comparable where they are the same."""
        return tuple(item.name for item in self.record.instruments if item.complaint is None)

    @property
    def lacks(self) -> tuple[str, ...]:
        """Instruments that were left out because they do not apply, in words for a person."""
        return tuple(
            f"without {item.name}: it does not apply to Linux {self.version} ({item.complaint})"
            for item in self.record.instruments
            if item.complaint is not None
        )

    @property
    def version(self) -> str:
        """Release, for example ``6.1.192``."""
        return self.record.version

    @cached_property
    def config(self) -> dict[str, str]:
        """The kernel's configuration: ``CONFIG_…`` to its value; what is off is absent."""
        return read_configuration(self.folder / "config")

    @property
    def clock(self) -> GuestClock:
        """How it tells the time."""
        built_in = [item for item in self.record.instruments if item.complaint is None]
        exact = next((item.sha256 for item in built_in if item.name == EXACT_CLOCK), None)
        return GuestClock(exact, int(self.config.get("CONFIG_HZ", USUAL_TICKS_PER_SECOND)))

    @property
    def schedulers(self) -> tuple[str, ...]:
        """Schedulers that it offers, ``none`` first."""
        return ("none", *(name for name, option in SCHEDULER_OPTIONS.items() if option in self.config))

    @property
    def has_ublk(self) -> bool:
        """Whether it can take a disk from user space (Linux 6.0 and later)."""
        return "CONFIG_BLK_DEV_UBLK" in self.config

    @property
    def has_time_travel(self) -> bool:
        """Whether it can run in virtual time."""
        return "CONFIG_UML_TIME_TRAVEL_SUPPORT" in self.config

    def require_scheduler(self, scheduler: str) -> None:
        """Makes sure that the kernel offers a scheduler.

        Raises:
            KernelLacksError: if it does not.
        """
        if scheduler not in self.schedulers:
            raise KernelLacksError(
                f"the kernel {self.name} ({self.version}) has no scheduler {scheduler}; "
                f"it has {', '.join(self.schedulers)}",
                hint=f"`blklab kernel show {self.name}` says what it was built from",
            )

    def require_option(self, option: str, purpose: str) -> None:
        """Makes sure that an option is built in.

        Args:
            option: Its name with ``CONFIG_``.
            purpose: What it is needed for, as in "… is needed for PURPOSE".

        Raises:
            KernelLacksError: if it is not.
        """
        if option not in self.config:
            raise KernelLacksError(
                f"the kernel {self.name} ({self.version}) was built without {option}, "
                f"which is needed for {purpose}",
                hint="an older source may not know it; otherwise build one with --config FRAGMENT",
            )

    @contextmanager
    def in_use(self) -> Iterator[KernelBuild]:
        """Keeps the build from being removed for as long as a guest runs on it.

        Raises:
            UnknownNameError: if it was removed since it was found.
        """
        with pinned(self.folder) as there:
            if not there:
                raise _unknown(self.name)
            yield self


def check_name(name: str) -> str:
    """Gives the name back if it may be one.

    Raises:
        UsageError: otherwise.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be the name of a kernel",
            hint="use up to 64 letters, digits, dots, dashes and underscores, a letter or digit first",
        )
    return name


def find(name: str = DEFAULT_NAME) -> KernelBuild:
    """Finds a kernel that was built.

    Raises:
        UsageError: if that cannot be a name.
        UnknownNameError: if there is none of that name.
        KernelCacheError: if its folder is damaged.
    """
    link = kernel_cache() / "names" / check_name(name)
    if not link.is_symlink():
        raise _unknown(name)
    # Resolved now, so that it stays the same kernel when the name is given to another build meanwhile.
    return _read(name, link.resolve())


def find_all() -> tuple[list[KernelBuild], list[KernelCacheError]]:
    """All kernels in alphabetical order, and what is wrong with those that are damaged."""
    results = [_find_or_say(name) for name in names()]
    found = [result for result in results if isinstance(result, KernelBuild)]
    damaged = [result for result in results if isinstance(result, KernelCacheError)]
    return found, damaged


def names() -> list[str]:
    """Names of all kernels in alphabetical order."""
    folder = kernel_cache() / "names"
    return sorted(link.name for link in folder.glob("*") if link.is_symlink() and _NAME.fullmatch(link.name))


def build_of_id(build_id: str, name: str) -> KernelBuild | None:
    """The build of that digest under a name that it need not have yet; nothing if it was never made."""
    folder = kernel_cache() / "builds" / build_id
    if not folder.is_dir():
        return None
    try:
        return _read(name, folder)
    except KernelCacheError:
        return None  # it is built anew


def give_name(name: str, build_id: str) -> None:
    """Makes a name mean a build, and removes builds that no name means any more.

    The caller holds the store's lock (`store_lock`).
    """
    root = kernel_cache()
    replace_link(root / "names" / name, root / "builds" / build_id)
    remove_unnamed()


@contextmanager
def store_lock() -> Iterator[None]:
    """Held for the moment in which builds, names or trees change."""
    with locked(kernel_cache() / "store.lock"):
        yield


def remove(name: str) -> None:
    """Removes a kernel; the build goes with the last of its names, and its tree with the last build of it.

    Raises:
        UnknownNameError: if there is none of that name.
        KernelInUseError: if a guest runs on it; nothing is removed then.
    """
    link = kernel_cache() / "names" / check_name(name)
    with store_lock():
        if not link.is_symlink():
            raise _unknown(name)
        build = link.resolve()
        if [other for other in names() if other != name and _target(other) == build]:
            link.unlink()
            return
        if not remove_unless_pinned(build, kernel_cache() / "work"):
            raise KernelInUseError(
                f"the kernel {name} is in use: a guest runs on it",
                hint="wait until that run has ended, or end it; nothing was removed",
            )
        link.unlink()
        remove_unnamed()


def remove_unnamed() -> None:
    """Removes builds that no name means, and trees that no build is of; what is in use stays.

    The caller holds the store's lock.
    """
    root = kernel_cache()
    named = {_target(name) for name in names()}
    trees: set[str] = set()
    for folder in sorted((root / "builds").glob("*")):
        if folder in named or not remove_unless_pinned(folder, root / "work"):
            try:
                trees.add(_read("", folder).record.tree_id)
            except KernelCacheError:
                continue
    for tree in sorted((root / "trees").glob("*")):
        if tree.name not in trees:
            remove_unless_pinned(tree, root / "work")


def remove_trees() -> int:
    """Removes all kept sources and objects, and gives the bytes that this freed; kernels stay usable."""
    root = kernel_cache()
    freed_bytes = 0
    with store_lock():
        for tree in sorted((root / "trees").glob("*")):
            size_bytes = folder_size_bytes(tree)
            if remove_unless_pinned(tree, root / "work"):
                freed_bytes += size_bytes
    return freed_bytes


def _find_or_say(name: str) -> KernelBuild | KernelCacheError | None:
    try:
        return find(name)
    except KernelCacheError as error:
        return error
    except UnknownNameError:
        return None  # removed by someone else just now


def _target(name: str) -> Path:
    return (kernel_cache() / "names" / name).resolve()


def _read(name: str, folder: Path) -> KernelBuild:
    hint = f"build it again with `blklab kernel build {name}`"
    try:
        record = BuildRecord.model_validate_json((folder / "build.json").read_bytes())
    except (OSError, ValidationError, ValueError) as error:
        reason = (
            error.strerror if isinstance(error, OSError) else "build.json is damaged or of another version"
        )
        raise KernelCacheError(
            f"the kernel {name} in {folder} cannot be read: {reason}", hint=hint
        ) from error
    if not (folder / "linux").is_file() or not (folder / "config").is_file():
        raise KernelCacheError(f"the kernel {name} in {folder} lacks its program or configuration", hint=hint)
    return KernelBuild(name, folder, record)


def _unknown(name: str) -> UnknownNameError:
    known = names()
    which = f"; there are {', '.join(known)}" if known else ""
    return UnknownNameError(
        f"there is no kernel {name}{which}",
        hint=f"`blklab kernel build {name}` builds it (minutes the first time)",
    )
